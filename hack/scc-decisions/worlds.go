package main

import (
	"bytes"
	"encoding/json"
	"log"
	"os"

	securityv1 "github.com/openshift/api/security/v1"
	"github.com/openshift/apiserver-library-go/pkg/securitycontextconstraints/sccdefaults"
	"sigs.k8s.io/yaml"
)

const (
	uidRange = securityv1.UIDRangeAnnotation
	groups   = securityv1.SupplementalGroupsAnnotation
	mcs      = securityv1.MCSAnnotation
)

// worlds are the clusters that are asked about.
func worlds() map[string]*World {
	sccs := deployed()
	namespaces := map[string]map[string]string{
		"demo":      {uidRange: "1000660000/10000", groups: "1000660000/10000", mcs: "s0:c26,c5"},
		"dashes":    {uidRange: "2000-2999", groups: "3000-3999,5000/10", mcs: "s0:c1,c0"},
		"no-groups": {uidRange: "7000/100", mcs: "s0:c3,c2"},
		"granted":   {uidRange: "8000/100", groups: "8000/100", mcs: "s0:c4,c2"},
		"bare":      {},
		"no-mcs":    {uidRange: "7000/100"},
		"empty":     {uidRange: "", mcs: ""},
		"bad-uid":   {uidRange: "lots", groups: "1/1", mcs: "s0"},
		"bad-short": {uidRange: "1000", groups: "1/1", mcs: "s0"},
		"bad-sep":   {uidRange: "1000:20", groups: "1/1", mcs: "s0"},
		"bad-large": {uidRange: "5000000000/10", groups: "1/1", mcs: "s0"},
		"bad-huge":  {uidRange: "1-99999999999999999999999", groups: "1/1", mcs: "s0"},
		"bad-end":   {uidRange: "10/", groups: "1/1", mcs: "s0"},
		"bad-group": {uidRange: "1/10", groups: "1/1,,2/2", mcs: "s0"},
		"no-group":  {uidRange: "1/10", groups: "", mcs: "s0"},
	}
	grants := []Grant{
		{Subject: "system:authenticated", SCC: "restricted-v2"},
		{Subject: "system:authenticated", SCC: "restricted-v3"},
		{Subject: "v1-user", SCC: "restricted"},
		{Subject: "everything", SCC: "*"},
		{Subject: "local", Namespace: "granted", SCC: "anyuid"},
		{Subject: "system:serviceaccount:demo:any", SCC: "anyuid"},
		{Subject: "system:serviceaccount:demo:host", SCC: "hostaccess"},
		{Subject: "system:serviceaccount:demo:net", SCC: "hostnetwork-v2"},
		{Subject: "system:serviceaccount:demo:nonroot", SCC: "nonroot-v2"},
		{Subject: "system:serviceaccount:demo:nest", SCC: "nested-container"},
		{Subject: "system:serviceaccounts:granted", SCC: "hostmount-anyuid"},
		{Subject: "special", SCC: "special-*"},
	}
	all := map[string]*World{
		"default": {SCCs: sccs, Namespaces: namespaces, Grants: grants},
		"broken":  {SCCs: sccs[2:], Namespaces: namespaces, Grants: grants},
	}
	for name, text := range specials {
		special := &securityv1.SecurityContextConstraints{}
		if err := json.Unmarshal([]byte(text), special); err != nil {
			log.Fatal(name, ": ", err)
		}
		special.Name = "special-" + name
		sccdefaults.SetDefaults_SCC(special)
		world := &World{Namespaces: namespaces, Grants: []Grant{{Subject: "special", SCC: special.Name}}}
		world.SCCs = append(append(world.SCCs, sccs...), special)
		all[name] = world
	}
	return all
}

// specials are SCCs with what the deployed ones have not; each comes in a world of its own, beside those.
var specials = map[string]string{
	"caps": `{"runAsUser":{"type":"RunAsAny"},"seLinuxContext":{"type":"RunAsAny"},"defaultAddCapabilities":["NET_ADMIN","SYS_TIME"],
		"requiredDropCapabilities":["KILL"],"allowedCapabilities":["SYS_PTRACE"],"volumes":["secret"]}`,
	"readonly": `{"runAsUser":{"type":"MustRunAs","uid":42},"seLinuxContext":{"type":"RunAsAny"},"readOnlyRootFilesystem":true,
		"defaultAllowPrivilegeEscalation":true,"allowPrivilegedContainer":true,"allowedCapabilities":["CAP_SYS_ADMIN"]}`,
	"labels": `{"runAsUser":{"type":"RunAsAny"},"seLinuxContext":{"type":"MustRunAs","seLinuxOptions":
		{"user":"u","role":"r","type":"t","level":"s0:c9,c8"}},"fsGroup":{"type":"MustRunAs","ranges":[{"min":5,"max":9},{"min":20,"max":20}]},
		"supplementalGroups":{"type":"MustRunAs","ranges":[{"min":7,"max":8}]}}`,
	"seccomp":    `{"runAsUser":{"type":"RunAsAny"},"seLinuxContext":{"type":"RunAsAny"},"seccompProfiles":["localhost/a.json","docker/default"]}`,
	"anyseccomp": `{"runAsUser":{"type":"RunAsAny"},"seLinuxContext":{"type":"RunAsAny"},"seccompProfiles":["*","unconfined"]}`,
	"sysctls": `{"runAsUser":{"type":"RunAsAny"},"seLinuxContext":{"type":"RunAsAny"},"allowedUnsafeSysctls":["kernel.msg*","net.core.somaxconn"],
		"forbiddenSysctls":["net.ipv4.tcp_sync*","kernel.shm_rmid_forced"]}`,
	"flex": `{"runAsUser":{"type":"RunAsAny"},"seLinuxContext":{"type":"RunAsAny"},"volumes":["flexVolume","secret"],
		"allowedFlexVolumes":[{"driver":"a/b"},{"driver":"c/d"}]}`,
	"priority": `{"priority":20,"runAsUser":{"type":"MustRunAsRange"},"seLinuxContext":{"type":"MustRunAs"},"groups":["system:authenticated"],
		"supplementalGroups":{"type":"MustRunAs"}}`,
	"half":    `{"runAsUser":{"type":"MustRunAsRange","uidRangeMin":5},"seLinuxContext":{"type":"RunAsAny"}}`,
	"unknown": `{"runAsUser":{"type":"Never"},"seLinuxContext":{"type":"Never"}}`,
	"nouid":   `{"runAsUser":{"type":"MustRunAs"},"seLinuxContext":{"type":"RunAsAny"}}`,
}

// deployed are the SCCs that a cluster gets, after their defaults.
func deployed() []*securityv1.SecurityContextConstraints {
	text, err := os.ReadFile("../../deploy/scc/sccs.yaml")
	if err != nil {
		log.Fatal(err)
	}
	var all []*securityv1.SecurityContextConstraints
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		scc := &securityv1.SecurityContextConstraints{}
		if err := yaml.UnmarshalStrict(document, scc); err != nil {
			log.Fatal(err)
		}
		sccdefaults.SetDefaults_SCC(scc)
		all = append(all, scc)
	}
	return all
}
