// Records what OpenShift's SCC admission decides about pods; the tests of scc-engine replay it.
//
//	go run -C hack/scc-decisions -mod=mod . >scc-engine/fixtures/decisions.json
//
// In: nothing but ../../deploy/scc/sccs.yaml. Out: one JSON document, the same at every run. It takes ten seconds, for which
// the library waits for annotations of namespaces that have none.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"sort"
	"sync"

	securityv1 "github.com/openshift/api/security/v1"
	"github.com/openshift/apiserver-library-go/pkg/securitycontextconstraints/sccdefaults"
)

// Document is what a run records.
type Document struct {
	Worlds   map[string]*World `json:"worlds"`
	Defaults []Defaulted       `json:"defaults"`
	Cases    []*Case           `json:"cases"`
}

// Defaulted is an SCC before and after its defaults.
type Defaulted struct {
	Given     json.RawMessage                        `json:"given"`
	Completed *securityv1.SecurityContextConstraints `json:"completed"`
}

// World is what a cluster has: SCCs, annotations of namespaces, and who may use which SCC by RBAC.
type World struct {
	SCCs       []*securityv1.SecurityContextConstraints `json:"sccs"`
	Namespaces map[string]map[string]string             `json:"namespaces"`
	Grants     []Grant                                  `json:"grants"`
}

// Grant lets a user or a group use an SCC; in all namespaces where it names none.
type Grant struct {
	Subject   string `json:"subject"`
	Namespace string `json:"namespace,omitempty"`
	SCC       string `json:"scc"`
}

// Case is one request and its outcome: an error, or the pod as it then is; without both, the pod stays as it is.
type Case struct {
	Name        string            `json:"name"`
	World       string            `json:"world"`
	Phase       string            `json:"phase"`
	Operation   string            `json:"operation"`
	Subresource string            `json:"subresource,omitempty"`
	Namespace   string            `json:"namespace"`
	User        string            `json:"user"`
	Groups      []string          `json:"groups"`
	Pod         json.RawMessage   `json:"pod"`
	Old         json.RawMessage   `json:"old,omitempty"`
	Error       string            `json:"error,omitempty"`
	Result      json.RawMessage   `json:"result,omitempty"`
	Audit       map[string]string `json:"audit,omitempty"`
}

func main() {
	log.SetFlags(0)
	document := Document{Worlds: worlds(), Defaults: defaults()}
	document.Cases = decide(document.Worlds, creations())
	document.Cases = append(document.Cases, decide(document.Worlds, followUps(document.Cases))...)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	// A line for each case, so that changes can be read.
	fmt.Fprintf(out, "{\"worlds\":%s,\n\"defaults\":%s,\n\"cases\":[\n", encoded(document.Worlds), encoded(document.Defaults))
	for i, c := range document.Cases {
		if i > 0 {
			fmt.Fprint(out, ",\n")
		}
		fmt.Fprintf(out, "%s", encoded(c))
	}
	fmt.Fprint(out, "\n]}\n")
}

// decide asks the library about each case.
func decide(worlds map[string]*World, cases []*Case) []*Case {
	names := make([]string, 0, len(worlds))
	for name := range worlds {
		names = append(names, name)
	}
	sort.Strings(names)
	judges := map[string]*Judge{}
	for _, name := range names {
		judges[name] = newJudge(worlds[name])
	}
	var group sync.WaitGroup
	for _, c := range cases {
		group.Add(1)
		go func() {
			defer group.Done()
			if err := judges[c.World].decide(context.Background(), c); err != nil {
				log.Fatal(c.Name, ": ", err)
			}
		}()
	}
	group.Wait()
	return cases
}

// defaults are SCCs whose defaults are not plain.
func defaults() []Defaulted {
	var all []Defaulted
	for _, given := range []string{
		`{}`,
		`{"allowHostDirVolumePlugin":true}`,
		`{"allowHostDirVolumePlugin":true,"volumes":[]}`,
		`{"volumes":[]}`,
		`{"volumes":null,"users":["u"],"groups":null}`,
		`{"volumes":["*"]}`,
		`{"volumes":["*"],"allowHostDirVolumePlugin":true}`,
		`{"volumes":["secret","hostPath","configMap"]}`,
		`{"volumes":["secret","configMap"],"allowHostDirVolumePlugin":true}`,
		`{"fsGroup":{"type":"MustRunAs"},"supplementalGroups":{"ranges":[{"min":1,"max":2}]}}`,
		`{"allowPrivilegeEscalation":false,"volumes":["none"]}`,
	} {
		scc := &securityv1.SecurityContextConstraints{}
		if err := json.Unmarshal([]byte(given), scc); err != nil {
			log.Fatal(err)
		}
		sccdefaults.SetDefaults_SCC(scc)
		all = append(all, Defaulted{Given: json.RawMessage(given), Completed: scc})
	}
	return all
}

func encoded(value any) json.RawMessage {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		log.Fatal(fmt.Errorf("cannot encode: %w", err))
	}
	return bytes.TrimSpace(text.Bytes())
}
