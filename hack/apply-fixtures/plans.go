package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// plan is a sequence before it is played. Each step is made from what is live.
type plan struct {
	name  string
	kind  string
	steps []func(live map[string]any) Step
}

type doc = map[string]any
type list = []any

// apply is a step that applies a configuration.
func apply(manager string, config doc) func(doc) Step {
	return func(doc) Step { return Step{Op: "apply", Manager: manager, Given: encode(config)} }
}

func force(step func(doc) Step) func(doc) Step {
	return func(live doc) Step {
		made := step(live)
		made.Force = true
		return made
	}
}

func on(subresource string, ignored []string, step func(doc) Step) func(doc) Step {
	return func(live doc) Step {
		made := step(live)
		made.Subresource, made.Ignored = subresource, ignored
		return made
	}
}

// update is a step that changes what is live.
func update(manager string, change func(doc)) func(doc) Step {
	return func(live doc) Step {
		change(live)
		return Step{Op: "update", Manager: manager, Given: encode(live)}
	}
}

// put replaces all but the metadata that says which object it is.
func put(object doc) func(doc) {
	return func(live doc) {
		had, _ := live["metadata"].(doc)
		for key := range live {
			delete(live, key)
		}
		for key, value := range clone(object) {
			live[key] = value
		}
		for _, field := range []string{"uid", "managedFields"} {
			if value, ok := had[field]; ok {
				live["metadata"].(doc)[field] = value
			}
		}
	}
}

// set changes one field, named by a path with slashes.
func set(path string, value any) func(doc) {
	return func(live doc) {
		parts := strings.Split(path, "/")
		at := live
		for _, part := range parts[:len(parts)-1] {
			next, ok := at[part].(doc)
			if !ok {
				next = doc{}
				at[part] = next
			}
			at = next
		}
		if value == nil {
			delete(at, parts[len(parts)-1])
			return
		}
		var copied any
		if err := json.Unmarshal(encode(value), &copied); err != nil {
			panic(err)
		}
		at[parts[len(parts)-1]] = copied
	}
}

func route(parts doc) doc {
	out := doc{"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": doc{"name": "x", "namespace": "ns"}}
	for path, value := range parts {
		set(path, value)(out)
	}
	return out
}

func stream(parts doc) doc {
	out := doc{"apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": doc{"name": "x", "namespace": "ns"}}
	for path, value := range parts {
		set(path, value)(out)
	}
	return out
}

func backend(name string, weight any) doc {
	out := doc{"kind": "Service", "name": name}
	if weight != nil {
		out["weight"] = weight
	}
	return out
}

const to = "spec/to"
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// written are the sequences that show one rule each.
func written() []plan {
	base := route(doc{to: backend("a", 1), "spec/host": "h", "metadata/labels": doc{"a": "1", "b": "2"}})
	other := route(doc{"spec/host": "i"})
	tags := func(names ...string) list {
		out := list{}
		for _, name := range names {
			out = append(out, doc{"name": name, "from": doc{"kind": "DockerImage", "name": "r/" + name}})
		}
		return out
	}
	config := route(doc{to: backend("a", 1), "spec/host": "h"})
	withLast := func(object doc, last doc) doc {
		out := clone(object)
		set("metadata/annotations", doc{lastApplied: string(encode(last)) + "\n"})(out)
		return out
	}
	plans := []plan{
		{"conflict, force, give up", "Route", []func(doc) Step{
			apply("one", base), apply("two", other), force(apply("two", other)), apply("one", base),
			apply("one", route(doc{to: backend("a", 1)})), apply("two", route(nil)), apply("two", route(nil)),
		}},
		{"shared values and no-ops", "Route", []func(doc) Step{
			apply("one", base), apply("one", base), apply("two", base), apply("three", route(doc{"spec/host": "h"})),
			apply("one", route(nil)), apply("two", route(nil)), apply("three", route(nil)),
		}},
		{"updates are owners too", "Route", []func(doc) Step{
			update("curl", put(base)), apply("one", other), apply("one", config), update("edit", set("spec/host", "j")),
			apply("one", config), update("edit", set("spec/host", nil)), update("curl", set("metadata/labels", nil)),
			update("curl", set("metadata/labels/c", "3")), update("curl", func(doc) {}),
		}},
		{"before the first apply", "Route", []func(doc) Step{
			update("curl", put(base)), update("curl", set("metadata/managedFields", list{})),
			update("edit", set("spec/path", "/p")), apply("one", other), apply("one", config), force(apply("one", other)),
			update("edit", set("spec/path", "/q")),
		}},
		{"forgetting all owners", "Route", []func(doc) Step{
			apply("one", base), update("x", set("metadata/managedFields", list{doc{}})), apply("one", base),
			on("status", nil, update("x", set("metadata/managedFields", list{}))),
		}},
		{"owners that a client sends", "Route", []func(doc) Step{
			update("curl", put(base)),
			update("curl", set("metadata/managedFields", list{doc{"manager": "m", "operation": "Apply",
				"apiVersion": "route.openshift.io/v1", "fieldsType": "FieldsV1", "time": "2020-01-01T00:00:00Z",
				"fieldsV1": doc{"f:spec": doc{"f:host": doc{}, "f:nothing": doc{"f:below": doc{}}}}}})),
			apply("other", other),
			update("curl", set("metadata/managedFields", list{doc{"manager": "m", "operation": "Guess"}})),
			update("curl", set("metadata/managedFields", list{doc{"manager": "m", "operation": "Update",
				"apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": doc{"f:spec": doc{}}},
				doc{"operation": "Update", "apiVersion": "route.openshift.io/v1", "fieldsType": "FieldsV1"}})),
			update("curl", set("spec/path", "/a")),
			apply("m", config),
		}},
		{"a granular field that has become atomic", "Route", []func(doc) Step{
			update("curl", put(route(doc{to: backend("a", 1), "spec/tls": doc{"termination": "edge",
				"externalCertificate": doc{"name": "s"}}}))),
			update("curl", set("metadata/managedFields", list{doc{"manager": "m", "operation": "Apply",
				"apiVersion": "route.openshift.io/v1", "fieldsType": "FieldsV1",
				"fieldsV1": doc{"f:spec": doc{"f:tls": doc{"f:externalCertificate": doc{"f:name": doc{}}}}}}})),
			apply("other", route(doc{"spec/tls/externalCertificate": doc{"name": "t"}})),
			apply("m", route(nil)),
		}},
		{"lists with keys", "Route", []func(doc) Step{
			apply("one", route(doc{to: backend("a", 1), "spec/alternateBackends": list{backend("b", 1), backend("c", 2)}})),
			apply("two", route(doc{"spec/alternateBackends": list{backend("d", 3)}})),
			apply("two", route(doc{"spec/alternateBackends": list{backend("c", 2), backend("b", 1)}})),
			apply("one", route(doc{to: backend("a", 1), "spec/alternateBackends": list{backend("c", 5)}})),
			force(apply("one", route(doc{to: backend("a", 1), "spec/alternateBackends": list{backend("c", 5)}}))),
			apply("one", route(doc{to: backend("a", 1)})), apply("two", route(nil)),
		}},
		{"keys with defaults", "Route", []func(doc) Step{
			apply("one", route(doc{to: backend("a", 1), "spec/alternateBackends": list{doc{"name": "b", "weight": 1}}})),
			apply("one", route(doc{"spec/alternateBackends": list{backend("b", 2)}})),
			apply("two", route(doc{"spec/alternateBackends": list{doc{"weight": 1}}})),
			apply("two", route(doc{"spec/alternateBackends": list{nil}})),
			apply("two", route(doc{"spec/alternateBackends": list{"b"}})),
			apply("two", route(doc{"spec/alternateBackends": list{backend("z", 1), backend("z", 2)}})),
		}},
		{"items in order", "ImageStream", []func(doc) Step{
			apply("one", stream(doc{"spec/tags": tags("a", "b", "c", "d")})), apply("two", stream(doc{"spec/tags": tags("x", "b", "y")})),
			apply("two", stream(doc{"spec/tags": tags("d", "x", "b", "a")})), apply("one", stream(doc{"spec/tags": tags("c", "a")})),
			apply("three", stream(doc{"spec/tags": tags("q", "c", "a", "b", "d", "x", "y")})), apply("one", stream(nil)),
			apply("two", stream(nil)), apply("three", stream(doc{"spec/tags": list{}})), apply("three", stream(nil)),
		}},
		{"items that are there twice", "ImageStream", []func(doc) Step{
			update("curl", put(stream(doc{"spec/tags": append(tags("a", "b"), tags("a")...)}))),
			apply("one", stream(doc{"spec/tags": tags("a")})), update("curl", set("spec/tags", tags("a", "b"))),
			update("edit", set("spec/tags", append(tags("b", "b"), doc{"name": "b", "reference": true}))),
			update("edit", set("spec/tags", tags("b", "b"))), apply("one", stream(doc{"spec/tags": tags("b", "b")})),
			apply("one", stream(doc{"spec/tags": tags("b", "c")})), update("edit", set("spec/tags", list{})),
		}},
		{"the status", "Route", []func(doc) Step{
			update("curl", put(base)),
			on("status", []string{"spec"}, update("router", set("status/ingress", list{doc{"host": "h", "routerName": "r"}}))),
			on("status", []string{"spec"}, apply("own", route(doc{"spec/host": "z", "status/ingress": list{doc{"host": "h"}}}))),
			on("status", []string{"spec"}, force(apply("own", route(doc{"spec/host": "z", "status/ingress": list{doc{"host": "h"}}})))),
			on("", []string{"status"}, apply("main", route(doc{"spec/path": "/", "status/ingress": list{doc{"host": "q"}}}))),
			on("", []string{"status"}, update("main", set("status/ingress", list{}))),
			on("status", nil, update("curl", set("metadata/labels/x", "y"))),
			on("", nil, apply("own", route(doc{"metadata/labels/x": "z"}))),
			on("status", nil, apply("own", route(nil))),
		}},
		{"client-side apply and back", "Route", []func(doc) Step{
			update("kubectl-client-side-apply", put(withLast(base, config))), apply("kubectl", config),
			apply("kubectl", route(doc{to: backend("b", 1), "spec/host": "k"})),
			update("kubectl-client-side-apply", set("spec/host", "l")),
			apply("kubectl", route(doc{to: backend("b", 1), "spec/host": "m"})),
			apply("kubectl", route(doc{to: backend("b", 1), "spec/host": "l", "metadata/labels/a": "5"})),
			apply("someone", route(doc{"spec/host": "n"})),
		}},
		{"client-side apply of what has changed since", "Route", []func(doc) Step{
			update("kubectl-client-side-apply", put(withLast(base, config))), update("edit", set("spec/host", "moved")),
			apply("kubectl", route(doc{"spec/host": "k", to: backend("c", 9)})),
			force(apply("kubectl", route(doc{"spec/host": "k", to: backend("c", 9)}))),
		}},
		{"annotations that tell nothing", "Route", []func(doc) Step{
			update("kubectl-client-side-apply", put(withLast(base, doc{"a": "b"}))), apply("kubectl", other),
			update("kubectl-client-side-apply", put(withLast(base, doc{"apiVersion": "v1", "kind": "Route"}))), apply("kubectl", other),
			update("kubectl-client-side-apply", set("metadata/annotations", doc{lastApplied: "{"})), apply("kubectl", other),
			update("kubectl-client-side-apply", set("metadata/annotations", doc{lastApplied: ""})), apply("kubectl", other),
			update("kubectl-client-side-apply", put(withLast(base, other))), apply("kubectl", route(doc{"spec/host": "<&>"})),
		}},
		{"configurations that do not fit", "Route", []func(doc) Step{
			update("curl", put(base)),
			apply("one", route(doc{"spec/unknown": 1})), apply("one", route(doc{"spec/host": 1})),
			apply("one", route(doc{"spec/host": doc{"a": list{1, "b", nil}}})), apply("one", route(doc{"spec/to/weight": "x"})),
			apply("one", route(doc{"spec/to/weight": list{1}})), apply("one", route(doc{"spec": list{}})),
			apply("one", route(doc{"spec/alternateBackends": doc{"a": 1.5}})),
			apply("one", route(doc{"metadata/managedFields": list{}})), apply("one", route(doc{"metadata/managedFields": list{doc{}}})),
			apply("one", route(doc{"metadata/managedFields": "x"})), apply("one", route(doc{"metadata/finalizers": list{doc{}}})),
			apply("one", route(doc{"metadata/finalizers": list{"a/b", "a/b"}})), apply("one", route(doc{"metadata/labels": doc{"a": 1}})),
			apply("one", doc{"kind": "Route"}), apply("one", doc{"apiVersion": "route.openshift.io/v1"}), apply("one", doc{}),
			apply("one", doc{"apiVersion": "a/b/c", "kind": "Route"}), apply("one", doc{"apiVersion": "v1", "kind": "Route"}),
			apply("one", doc{"apiVersion": "route.openshift.io/v1", "kind": "Router", "metadata": doc{"name": "x"}}),
			apply("", other), apply("one", route(doc{"metadata/ownerReferences": list{doc{"uid": "1", "kind": "K", "name": "n", "apiVersion": "v1"}}})),
			apply("one", route(doc{"spec/tls/externalCertificate": list{}})), apply("one", route(doc{"metadata": "x"})),
		}},
		{"metadata", "Route", []func(doc) Step{
			apply("one", route(doc{"metadata/finalizers": list{"a/b", "c/d"}, to: backend("a", 1)})),
			apply("two", route(doc{"metadata/finalizers": list{"e/f", "c/d"}})), apply("one", route(doc{to: backend("a", 1)})),
			update("curl", set("metadata/finalizers", list{"x/y"})), update("curl", set("metadata/ownerReferences", list{
				doc{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "1"}, doc{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "2"}})),
			apply("one", route(doc{"metadata/ownerReferences": list{doc{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "2", "controller": true}}})),
			update("curl", set("metadata/generation", 5)), update("curl", set("metadata/deletionTimestamp", "2024-01-01T00:00:00Z")),
		}},
		{"nulls and emptiness", "ImageStream", []func(doc) Step{
			apply("one", stream(doc{"metadata/labels": doc{}, "spec/tags": list{doc{"name": "a", "annotations": nil, "from": nil}}})),
			func(doc) Step {
				return Step{Op: "apply", Manager: "two", Given: json.RawMessage(`{"apiVersion":"image.openshift.io/v1","kind":"ImageStream",
					"metadata":{"name":"x","labels":null,"annotations":{}},"spec":{"tags":[{"name":"a","annotations":null,"generation":null}]}}`)}
			},
			func(doc) Step {
				return Step{Op: "apply", Manager: "two", Given: json.RawMessage(`{"apiVersion":"image.openshift.io/v1","kind":"ImageStream",
					"metadata":{"name":"x"},"spec":null,"status":{"tags":null}}`)}
			},
			apply("two", stream(nil)),
		}},
	}
	many := plan{name: "many updaters", kind: "Route"}
	many.steps = append(many.steps, update("u0", put(base)))
	for at := range 13 {
		many.steps = append(many.steps, update(fmt.Sprintf("u%d", (at*5)%13), set(fmt.Sprintf("metadata/annotations/k%d", at), "v")))
	}
	many.steps = append(many.steps, apply("one", route(doc{"metadata/annotations/k0": "w"})))
	return append(plans, many)
}
