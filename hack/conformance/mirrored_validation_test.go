package conformance

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// What Kubernetes' own tests of field validation expect of Deployments and custom resources, expected of ours.

const strict = "fieldValidation=Strict"

// A create under strict validation names every field that no schema knows or that comes twice, in metadata too.
func TestStrictCreates(t *testing.T) {
	u := newTenant(t)
	a := applyTo(t, "/apis/route.openshift.io/v1/namespaces/%s/routes", u.project)
	create := func(metadata, spec string) error {
		body := fmt.Sprintf(`{"apiVersion":"route.openshift.io/v1","kind":"Route","metadata":{"name":"web"%s},`+
			`"spec":{"to":{"kind":"Service","name":"web"}%s}}`, metadata, spec)
		_, err := a.do(t, a.client.Post().AbsPath(a.path).SetHeader("Content-Type", "application/json"), body, []string{strict})
		return err
	}
	refused := func(err error, want string) {
		t.Helper()
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), want) {
			t.Fatalf("%v, not: %s", err, want)
		}
	}
	refused(create("", `,"nosuch":"a","path":"/a","path":"/b"`),
		`strict decoding error: unknown field "spec.nosuch", duplicate field "spec.path"`)
	refused(create(`,"nosuch":"a"`, ""), `strict decoding error: unknown field "metadata.nosuch"`)
	must(t, create("", ""))
}

// An apply under strict validation takes what the schema knows and nothing else.
func TestStrictApplies(t *testing.T) {
	u := newTenant(t)
	route := applyTo(t, "/apis/route.openshift.io/v1/namespaces/%s/routes/web", u.project)
	stream := applyTo(t, "/apis/image.openshift.io/v1/namespaces/%s/imagestreams/web", u.project)
	route.ok(t, "one", routeYAML(toWeb+", alternateBackends: [{kind: Service, name: b, weight: 1}]"), strict)
	stream.ok(t, "one", streamYAML("", "tags: [{name: a, reference: true}]"), strict)

	refused := func(a applier, body string, wants ...string) {
		t.Helper()
		_, err := a.send(t, "one", body, strict)
		if err == nil {
			t.Fatalf("taken: %s", body)
		}
		for _, want := range wants {
			if strings.Contains(err.Error(), want) {
				return
			}
		}
		t.Fatalf("%v, not: %v", err, wants)
	}
	known := routeYAML(toWeb)
	refused(route, known+"nosuch: a\n", ".nosuch: field not declared in schema")
	refused(route, routeYAML(toWeb+", nosuch: a"), ".spec.nosuch: field not declared in schema")
	refused(route, strings.Replace(known, "name: web}", "name: web, nosuch: a}", 1), ".metadata.nosuch: field not declared in schema")
	refused(stream, streamYAML("", "tags: [{name: a, reference: true, nosuch: a}]"), `.spec.tags[name="a"].nosuch: field not declared in schema`)
	refused(stream, streamYAML("", "lookupPolicy: {local: false, nosuch: a}"), ".spec.lookupPolicy.nosuch: field not declared in schema")
	refused(route, routeYAML(toWeb+",\n  path: /a,\n  path: /b"), `line 6: key "path" already set in map`)
	expectFields(t, route.ok(t, "one", known, strict), map[string]any{"spec.path": nil, "spec.nosuch": nil})
}
