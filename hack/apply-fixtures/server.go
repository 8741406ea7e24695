package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	group     = "apply.example.com"
	plural    = "things"
	kindThing = "Thing"
)

// crd has every kind of list and map that a schema can name, in the shape of a Route.
const crd = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.apply.example.com"},
"spec":{"group":"apply.example.com","scope":"Namespaced","names":{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"},
"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","properties":{
 "host":{"type":"string"},"path":{"type":"string"},
 "to":{"type":"object","properties":{"kind":{"type":"string"},"name":{"type":"string"},"weight":{"type":"integer","format":"int32"}}},
 "alternateBackends":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name","kind"],
  "items":{"type":"object","required":["name","kind"],"properties":{"kind":{"type":"string"},"name":{"type":"string"},"weight":{"type":"integer"}}}},
 "set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
 "numbers":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"integer"}},
 "list":{"type":"array","items":{"type":"string"}},
 "whole":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"a":{"type":"string"},"b":{"type":"string"}}},
 "map":{"type":"object","additionalProperties":{"type":"string"}},
 "port":{"x-kubernetes-int-or-string":true},
 "any":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
 "flag":{"type":"boolean"}}},
"status":{"type":"object","properties":{
 "conditions":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["type"],
  "items":{"type":"object","required":["type"],"properties":{"type":{"type":"string"},"status":{"type":"string"}}}},
 "ingress":{"type":"array","x-kubernetes-list-type":"atomic","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}}}}]}}`

type server struct {
	client *http.Client
	host   string
}

// do makes a request and answers its body, parsed, and its code.
func (s *server) do(method, path, contentType string, body []byte) (int, map[string]any, error) {
	request, err := http.NewRequest(method, s.host+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", contentType)
	response, err := s.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, err
	}
	var out map[string]any
	// What is no JSON is told by its code.
	_ = json.Unmarshal(text, &out)
	return response.StatusCode, out, nil
}

func connect() (*server, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &server{client: client, host: config.Host}, nil
}

// schemas makes the CRD and waits until its definitions are published.
func (s *server) schemas() (map[string]any, error) {
	code, _, err := s.do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json", []byte(crd))
	if err != nil || code != http.StatusCreated {
		return nil, fmt.Errorf("creating the CRD: %d, %v", code, err)
	}
	for range 300 {
		_, document, err := s.do("GET", "/openapi/v3/apis/"+group+"/v1", "application/json", nil)
		if err != nil {
			return nil, err
		}
		components, _ := document["components"].(map[string]any)
		if schemas, ok := components["schemas"].(map[string]any); ok {
			if _, ok := schemas["com.example.apply.v1.Thing"]; ok {
				return withoutTexts(schemas, &[]string{}).(map[string]any), nil
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil, fmt.Errorf("the schema of the CRD is not published")
}

func thing(name string, parts doc) doc {
	out := doc{"apiVersion": group + "/v1", "kind": kindThing, "metadata": doc{"name": name}}
	for path, value := range parts {
		set(path, value)(out)
	}
	return out
}

var thingPieces = []piece{
	{"metadata/labels/a", oneOf("1", "2")}, {"metadata/labels/b", oneOf("1", "2")}, {"metadata/annotations/x", oneOf("1", "2")},
	{"metadata/finalizers", oneOf(list{"a/a"}, list{"a/a", "b/b"}, list{"b/b"})},
	{"spec/host", oneOf("h", "i")}, {"spec/path", oneOf("/a", "/b")}, {"spec/to", oneOf(backend("s", 1), backend("t", 2))},
	{"spec/to/weight", oneOf(1, 2)}, {"spec/alternateBackends", some([]string{"b1", "b2", "b3"}, func(r *rand.Rand, name string) any {
		return backend(name, r.Intn(3))
	})},
	{"spec/set", some([]string{"a", "b<c", "d"}, plain)}, {"spec/numbers", oneOf(list{1, 2}, list{2, 3}, list{3, 1})},
	{"spec/list", some([]string{"a", "b"}, plain)}, {"spec/whole", oneOf(doc{"a": "1"}, doc{"a": "1", "b": "2"}, doc{"b": "3"})},
	{"spec/map/k", oneOf("1", "2")}, {"spec/map/l", oneOf("1", "2")}, {"spec/port", oneOf(80, "http")},
	{"spec/any/x", oneOf(1, list{1, "a"}, doc{"deep": doc{"er": true}})}, {"spec/any/y", oneOf("a", doc{"z": 1})},
	{"spec/flag", oneOf(true, false)}, {"status/ingress", oneOf(list{doc{"host": "h"}}, list{doc{"host": "i", "n": 1}})},
	{"status/conditions", some([]string{"A", "B"}, func(r *rand.Rand, name string) any {
		return doc{"type": name, "status": fmt.Sprint(r.Intn(2) == 0)}
	})},
}

func thingConfiguration(r *rand.Rand, name string, chance float64) doc {
	out := thing(name, nil)
	for _, piece := range thingPieces {
		value := piece.value(r)
		if r.Float64() < chance {
			set(piece.path, value)(out)
		}
	}
	return out
}

func thingPlans() []plan {
	out := []plan{}
	for seed := range 24 {
		r := rand.New(rand.NewSource(int64(1000 + seed)))
		name := fmt.Sprint("thing-", seed)
		made := plan{name: name}
		managers := []string{"one", "two", "kubectl"}
		for at := range 8 {
			manager := managers[r.Intn(len(managers))]
			step := update(manager, func(live doc) {
				if at == 0 {
					put(thingConfiguration(r, name, 0.4))(live)
				}
				for range 2 {
					piece := thingPieces[r.Intn(len(thingPieces))]
					value := piece.value(r)
					if r.Intn(3) == 0 {
						value = nil
					}
					set(piece.path, value)(live)
				}
				if r.Intn(12) == 0 {
					set("metadata/managedFields", list{doc{}})(live)
				}
			})
			if r.Intn(3) > 0 {
				config := thingConfiguration(r, name, 0.1+0.4*r.Float64())
				if r.Intn(12) == 0 {
					set([]string{"spec/unknown", "spec/host", "spec/set", "metadata/managedFields"}[r.Intn(4)], list{"a", "a"})(config)
				}
				step = apply(manager, config)
			}
			if r.Intn(3) == 0 {
				step = force(step)
			}
			if at > 0 && r.Intn(4) == 0 {
				step = on("status", nil, step)
			}
			made.steps = append(made.steps, step)
		}
		out = append(out, made)
	}
	return out
}

// write sends one step.
func (s *server) write(name string, exists bool, step *Step) (int, map[string]any, error) {
	collection := "/apis/" + group + "/v1/namespaces/default/" + plural
	path := collection + "/" + name
	if step.Subresource != "" {
		path += "/" + step.Subresource
	}
	query := "?fieldManager=" + step.Manager
	if step.Op == "apply" {
		if step.Force {
			query += "&force=true"
		}
		return s.do("PATCH", path+query, "application/apply-patch+yaml", step.Given)
	}
	if !exists {
		return s.do("POST", collection+query, "application/json", step.Given)
	}
	return s.do("PUT", path+query, "application/json", step.Given)
}

func recordServer() (*Document, error) {
	s, err := connect()
	if err != nil {
		return nil, err
	}
	schemas, err := s.schemas()
	if err != nil {
		return nil, err
	}
	document := &Document{Definitions: schemas, Kinds: map[string]Kind{kindThing: {
		Schema: "com.example.apply.v1.Thing",
		Empty:  encode(doc{"apiVersion": group + "/v1", "kind": kindThing}),
	}}}
	for _, plan := range thingPlans() {
		sequence := Sequence{Name: plan.name, Kind: kindThing}
		live := map[string]any{}
		for _, make := range plan.steps {
			step := make(clone(live))
			// What the endpoints of custom resources set back.
			step.Ignored = []string{"status"}
			if step.Subresource == "status" {
				step.Ignored = []string{"spec"}
			}
			code, answer, err := s.write(plan.name, len(live) > 0, &step)
			if err != nil {
				return nil, err
			}
			if code >= 300 {
				step.Error = refusal(answer)
				if step.Op == "update" || step.Error.Reason == "Invalid" || step.Error.Reason == "NotFound" {
					// An object that is not valid, or not there, says nothing about owners.
					continue
				}
			} else {
				live = answer
				metadata := answer["metadata"].(map[string]any)
				entries := metadata["managedFields"]
				step.Managed, step.Now = encode(entries), newest(entries)
				kept := clone(answer)
				delete(kept["metadata"].(map[string]any), "managedFields")
				step.Object = encode(kept)
			}
			sequence.Steps = append(sequence.Steps, step)
		}
		document.Sequences = append(document.Sequences, sequence)
	}
	return document, nil
}

func refusal(status map[string]any) *Failure {
	text := func(value any) string { out, _ := value.(string); return out }
	out := &Failure{Reason: text(status["reason"]), Message: text(status["message"])}
	details, _ := status["details"].(map[string]any)
	causes, _ := details["causes"].([]any)
	for _, cause := range causes {
		cause, _ := cause.(map[string]any)
		out.Causes = append(out.Causes, [2]string{text(cause["message"]), text(cause["field"])})
	}
	return out
}

// newest is the time of the last write that is recorded.
func newest(entries any) string {
	out := ""
	all, _ := entries.([]any)
	for _, entry := range all {
		entry, _ := entry.(map[string]any)
		if at, _ := entry["time"].(string); strings.Compare(at, out) > 0 {
			out = at
		}
	}
	return out
}
