package main

import (
	"fmt"
	"math/rand"
	"sort"
)

// piece is a part of an object, and how a value for it is made.
type piece struct {
	path  string
	value func(*rand.Rand) any
}

func oneOf(values ...any) func(*rand.Rand) any {
	return func(r *rand.Rand) any { return values[r.Intn(len(values))] }
}

// some makes a list of items that are told apart by their names, in any order.
func some(names []string, item func(*rand.Rand, string) any) func(*rand.Rand) any {
	return func(r *rand.Rand) any {
		out := list{}
		for _, at := range r.Perm(len(names)) {
			if r.Intn(2) == 0 {
				out = append(out, item(r, names[at]))
			}
		}
		return out
	}
}

func plain(_ *rand.Rand, name string) any { return name }

var metadata = []piece{
	{"metadata/labels/a", oneOf("1", "2")}, {"metadata/labels/b", oneOf("1", "2")}, {"metadata/annotations/x.y", oneOf("1", "2")},
	{"metadata/annotations/z", oneOf("1", "2")}, {"metadata/finalizers", some([]string{"a/a", "b/b", "c/c"}, plain)},
	{"metadata/ownerReferences", some([]string{"u1", "u2"}, func(r *rand.Rand, uid string) any {
		return doc{"apiVersion": "v1", "kind": "K", "name": fmt.Sprint("n", r.Intn(2)), "uid": uid}
	})},
}

var pieces = map[string][]piece{
	"Route": {
		{"spec/host", oneOf("h1", "h2", "")}, {"spec/path", oneOf("/a", "/b")}, {"spec/wildcardPolicy", oneOf("None", "Subdomain")},
		{"spec/to", oneOf(backend("s", 1), backend("t", nil), backend("s", 2))}, {"spec/port/targetPort", oneOf(80, "http", 81)},
		{"spec/alternateBackends", some([]string{"b1", "b2", "b3"}, func(r *rand.Rand, name string) any { return backend(name, r.Intn(3)) })},
		{"spec/tls/termination", oneOf("edge", "passthrough")}, {"spec/tls/certificate", oneOf("c1", "c2")},
		{"spec/tls/externalCertificate", oneOf(doc{"name": "s1"}, doc{"name": "s2"})},
		{"spec/httpHeaders/actions/request", some([]string{"X-A", "X-B"}, func(r *rand.Rand, name string) any {
			return doc{"name": name, "action": doc{"type": "Set", "set": doc{"value": fmt.Sprint("v", r.Intn(2))}}}
		})},
		{"status/ingress", some([]string{"r1", "r2"}, func(r *rand.Rand, name string) any {
			return doc{"routerName": name, "host": fmt.Sprint("h", r.Intn(2))}
		})},
	},
	"ImageStream": {
		{"spec/lookupPolicy/local", oneOf(true, false)}, {"spec/dockerImageRepository", oneOf("r1", "r2")},
		{"spec/tags", some([]string{"t1", "t2", "t3", "t4"}, func(r *rand.Rand, name string) any {
			out := doc{"name": name}
			if r.Intn(2) == 0 {
				out["from"] = doc{"kind": "DockerImage", "name": fmt.Sprint("i", r.Intn(2))}
			}
			if r.Intn(2) == 0 {
				out["annotations"] = doc{fmt.Sprint("a", r.Intn(2)): "v"}
			}
			if r.Intn(3) == 0 {
				out["generation"] = r.Intn(3)
			}
			if r.Intn(3) == 0 {
				out["importPolicy"] = doc{"scheduled": r.Intn(2) == 0}
			}
			return out
		})},
		{"status/tags", some([]string{"t1", "t2"}, func(r *rand.Rand, name string) any {
			return doc{"tag": name, "items": list{doc{"created": "2024-01-01T00:00:00Z", "dockerImageReference": "d", "generation": r.Intn(2), "image": "i"}},
				"conditions": list{doc{"type": "ImportSuccess", "status": fmt.Sprint(r.Intn(2) == 0), "generation": 1}}}
		})},
	},
	"Image": {
		{"dockerImageReference", oneOf("a", "b")}, {"dockerImageMetadata", oneOf(doc{"kind": "DockerImage", "Size": 1}, doc{"kind": "DockerImage", "Size": 2})},
		{"dockerImageManifestMediaType", oneOf("m", "n")}, {"dockerImageLayers", some([]string{"l1", "l2"}, func(r *rand.Rand, name string) any {
			return doc{"name": name, "size": r.Intn(3), "mediaType": "m"}
		})},
		{"signatures", some([]string{"s1", "s2"}, func(r *rand.Rand, name string) any {
			return doc{"metadata": doc{"name": name}, "type": fmt.Sprint("t", r.Intn(2)), "content": "YQ=="}
		})},
	},
	"Group": {{"users", some([]string{"a", "b", "c"}, plain)}},
	"User":  {{"fullName", oneOf("A", "B")}, {"identities", some([]string{"i:a", "i:b"}, plain)}, {"groups", some([]string{"g"}, plain)}},
}

func bare(kind string) doc {
	return doc{"apiVersion": served[kind].gvk.GroupVersion().String(), "kind": kind, "metadata": doc{"name": "x"}}
}

// configuration has each piece with a chance.
func configuration(r *rand.Rand, kind string, chance float64) doc {
	out := bare(kind)
	for _, piece := range append(append([]piece{}, metadata...), pieces[kind]...) {
		value := piece.value(r)
		if r.Float64() < chance {
			set(piece.path, value)(out)
		}
	}
	return out
}

// mutate changes some pieces.
func mutate(r *rand.Rand, kind string, live doc) {
	all := append(append([]piece{}, metadata...), pieces[kind]...)
	for range 1 + r.Intn(3) {
		piece := all[r.Intn(len(all))]
		value := piece.value(r)
		if r.Intn(3) == 0 {
			value = nil
		}
		set(piece.path, value)(live)
	}
}

// generated are sequences by chance, the same at every run.
func generated() []plan {
	kinds := []string{}
	for kind := range pieces {
		kinds = append(kinds, kind)
	}
	sort.Strings(kinds)
	managers := []string{"one", "two", "three", "kubectl"}
	out := []plan{}
	for seed := range 75 {
		r := rand.New(rand.NewSource(int64(seed)))
		// The kinds with more to them come more often.
		kind := append([]string{"Route", "Route", "ImageStream", "ImageStream"}, kinds...)[seed%(4+len(kinds))]
		made := plan{name: fmt.Sprint("generated ", seed), kind: kind}
		for at := range 8 {
			manager := managers[r.Intn(len(managers))]
			step := update(manager, func(live doc) {
				if at == 0 {
					put(configuration(r, kind, 0.5))(live)
				} else {
					mutate(r, kind, live)
				}
			})
			if r.Intn(3) > 0 {
				step = apply(manager, configuration(r, kind, 0.2+0.4*r.Float64()))
			}
			if r.Intn(3) == 0 {
				step = force(step)
			}
			switch r.Intn(6) {
			case 0:
				step = on("status", []string{"spec"}, step)
			case 1:
				step = on("", []string{"status"}, step)
			}
			made.steps = append(made.steps, step)
		}
		out = append(out, made)
	}
	return out
}
