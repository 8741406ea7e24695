// Records what the Go library and kube-apiserver make of updates and applies; the tests of structured-merge replay it.
//
//	go run -C hack/apply-fixtures . library >structured-merge/fixtures/library.json
//	hack/with-control-plane go run -C hack/apply-fixtures . server >structured-merge/fixtures/server.json
//
// In: nothing, or KUBECONFIG of a cluster where a CRD may be made. Out: one JSON document. The library's part is the same
// at every run.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"
)

// Document is what a run records.
type Document struct {
	Definitions map[string]any  `json:"definitions"`
	Kinds       map[string]Kind `json:"kinds"`
	Sequences   []Sequence      `json:"sequences"`
}

// Kind says how objects of a kind are typed.
type Kind struct {
	Schema string          `json:"schema"`
	Empty  json.RawMessage `json:"empty"`
}

// Sequence is a life of one object: each step begins with what the last successful one left.
type Sequence struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Steps []Step `json:"steps"`
}

// Step is one write and its outcome.
type Step struct {
	Op          string          `json:"op"`
	Manager     string          `json:"manager"`
	Subresource string          `json:"subresource,omitempty"`
	Ignored     []string        `json:"ignored,omitempty"`
	Force       bool            `json:"force,omitempty"`
	Now         string          `json:"now,omitempty"`
	Given       json.RawMessage `json:"given"`
	Object      json.RawMessage `json:"object,omitempty"`
	Managed     json.RawMessage `json:"managed,omitempty"`
	Error       *Failure        `json:"error,omitempty"`
}

// Failure is why a write was refused.
type Failure struct {
	Reason  string      `json:"reason,omitempty"`
	Message string      `json:"message"`
	Causes  [][2]string `json:"causes,omitempty"`
}

func main() {
	log.SetFlags(0)
	var document *Document
	var err error
	switch strings.Join(os.Args[1:], " ") {
	case "library":
		document, err = recordLibrary()
	case "server":
		document, err = recordServer()
	default:
		err = fmt.Errorf("usage: apply-fixtures library|server")
	}
	if err != nil {
		log.Fatal(err)
	}
	steps := 0
	for _, sequence := range document.Sequences {
		steps += len(sequence.Steps)
	}
	log.Printf("%d steps", steps)
	out, err := json.Marshal(document)
	if err != nil {
		log.Fatal(err)
	}
	os.Stdout.Write(append(out, '\n'))
}

func encode(value any) json.RawMessage {
	out, err := json.Marshal(value)
	if err != nil {
		log.Fatal(err)
	}
	return out
}

// clone copies JSON.
func clone(value map[string]any) map[string]any {
	var out map[string]any
	if err := json.Unmarshal(encode(value), &out); err != nil {
		log.Fatal(err)
	}
	return out
}
