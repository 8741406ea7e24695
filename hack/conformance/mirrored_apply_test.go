package conformance

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// What Kubernetes' own tests of server-side apply expect of Deployments and custom resources, expected of ours.

// applier sends applies to one object, as text.
type applier struct {
	client rest.Interface
	path   string
}

func applyTo(t *testing.T, path string, arguments ...any) applier {
	t.Helper()
	return applier{anyPath(t, administrator(t)), fmt.Sprintf(path, arguments...)}
}

func (a applier) send(t *testing.T, manager, body string, options ...string) (*unstructured.Unstructured, error) {
	t.Helper()
	return a.do(t, a.client.Patch(types.ApplyPatchType).AbsPath(a.path).Param("fieldManager", manager), body, options)
}

// merge is a merge patch of somebody who names no manager.
func (a applier) merge(t *testing.T, body string) (*unstructured.Unstructured, error) {
	t.Helper()
	return a.do(t, a.client.Patch(types.MergePatchType).AbsPath(a.path), body, nil)
}

// do sends a body; options are parameters of the form name=value.
func (a applier) do(t *testing.T, request *rest.Request, body string, options []string) (*unstructured.Unstructured, error) {
	t.Helper()
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		request = request.Param(name, value)
	}
	result := request.Body([]byte(body)).Do(t.Context())
	if err := result.Error(); err != nil {
		return nil, err
	}
	raw, err := result.Raw()
	must(t, err)
	object := &unstructured.Unstructured{}
	must(t, object.UnmarshalJSON(raw))
	return object, nil
}

// ok is an apply that has to succeed.
func (a applier) ok(t *testing.T, manager, body string, options ...string) *unstructured.Unstructured {
	t.Helper()
	object, err := a.send(t, manager, body, options...)
	must(t, err)
	return object
}

// conflicts is an apply that has to meet this many conflicts.
func (a applier) conflicts(t *testing.T, count int, manager, body string) {
	t.Helper()
	_, err := a.send(t, manager, body)
	status, ok := err.(*apierrors.StatusError)
	if !ok || !apierrors.IsConflict(err) || len(status.Status().Details.Causes) != count {
		t.Fatalf("not %d conflicts: %v", count, err)
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			t.Fatalf("another cause: %+v", cause)
		}
	}
}

// expectFields fails unless the fields at dotted paths have these values; nil means that it is not there.
func expectFields(t *testing.T, object *unstructured.Unstructured, want map[string]any) {
	t.Helper()
	for path, value := range want {
		got, found, err := unstructured.NestedFieldNoCopy(object.Object, strings.Split(path, ".")...)
		must(t, err)
		if found != (value != nil) || fmt.Sprint(got) != fmt.Sprint(value) {
			t.Fatalf("%s is %v, not %v", path, got, value)
		}
	}
}

func routeYAML(spec string) string {
	return "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: web}\nspec: {" + spec + "}\n"
}

func streamYAML(metadata, spec string) string {
	return "apiVersion: image.openshift.io/v1\nkind: ImageStream\nmetadata: {name: web" + metadata + "}\nspec: {" + spec + "}\n"
}

const toWeb = "to: {kind: Service, name: web}"

// Two managers apply the same to what is not there yet: it is made, and each owns just what it sent.
func TestApplyCreatesAndTwoOwnTheSame(t *testing.T) {
	u := newTenant(t)
	cases := []struct{ path, body, owned string }{{
		"/apis/route.openshift.io/v1/namespaces/%s/routes/web", routeYAML(toWeb),
		`{"f:spec":{"f:to":{"f:kind":{},"f:name":{}}}}`,
	}, {
		"/apis/image.openshift.io/v1/namespaces/%s/imagestreams/web", streamYAML("", "tags: [{name: a, reference: true}]"),
		`{"f:spec":{"f:tags":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:reference":{}}}}}`,
	}}
	for _, c := range cases {
		a := applyTo(t, c.path, u.project)
		a.ok(t, "one", c.body)
		object := a.ok(t, "two", c.body)
		owners := 0
		for _, entry := range object.GetManagedFields() {
			if entry.Manager == "one" || entry.Manager == "two" {
				owners++
				if got := entry.FieldsV1.String(); got != c.owned {
					t.Errorf("%s owns %s, not %s", entry.Manager, got, c.owned)
				}
			}
		}
		if owners != 2 {
			t.Errorf("%d owners: %+v", owners, object.GetManagedFields())
		}
	}
}

// A status counts only where it is applied to the status.
func TestApplyOfAStatus(t *testing.T) {
	u := newTenant(t)
	main := applyTo(t, "/apis/route.openshift.io/v1/namespaces/%s/routes/web", u.project)
	main.ok(t, "one", routeYAML(toWeb))
	status := "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: web}\n" +
		"status: {ingress: [{routerName: mine, host: h.example}]}\n"
	routers := func(object *unstructured.Unstructured) string {
		list, _, err := unstructured.NestedSlice(object.Object, "status", "ingress")
		must(t, err)
		names := []string{}
		for _, item := range list {
			names = append(names, fmt.Sprint(item.(map[string]any)["routerName"]))
		}
		return strings.Join(names, " ")
	}
	if got := routers(main.ok(t, "two", status)); got != "default" {
		t.Fatalf("routers after an apply to the Route: %s", got)
	}
	atStatus := main
	atStatus.path += "/status"
	// Unlike those of built-in kinds, OpenShift's endpoints do not forget what they ignore: it is owned by the first apply.
	atStatus.conflicts(t, 1, "two", status)
	if got := routers(atStatus.ok(t, "two", status, "force=true")); !strings.Contains(got, "mine") || !strings.Contains(got, "default") {
		t.Fatalf("routers after an apply to the status: %s", got)
	}
}

// What its only owner names no more is removed; what another owns too stays, also where it has a default.
func TestApplyOfLess(t *testing.T) {
	u := newTenant(t)
	a := applyTo(t, "/apis/route.openshift.io/v1/namespaces/%s/routes/web", u.project)
	backends := ", alternateBackends: [{kind: Service, name: b, weight: 1}]"
	a.ok(t, "one", routeYAML(toWeb+", path: /a"+backends))
	object := a.ok(t, "one", routeYAML(toWeb))
	expectFields(t, object, map[string]any{"spec.path": nil, "spec.alternateBackends": nil})

	shared := routeYAML(toWeb + ", path: /a, port: {targetPort: http}, wildcardPolicy: None")
	a.ok(t, "one", shared)
	a.ok(t, "two", shared)
	object = a.ok(t, "one", routeYAML(toWeb))
	expectFields(t, object, map[string]any{"spec.path": "/a", "spec.port.targetPort": "http", "spec.wildcardPolicy": "None"})
	object = a.ok(t, "two", routeYAML(toWeb))
	expectFields(t, object, map[string]any{"spec.path": nil, "spec.port": nil, "spec.wildcardPolicy": "None"})
}

// What a patch changed is a conflict, and force takes it back; what an update took and the applier names no more stays.
func TestApplyAgainstUpdates(t *testing.T) {
	u := newTenant(t)
	a := applyTo(t, "/apis/route.openshift.io/v1/namespaces/%s/routes/web", u.project)
	body := routeYAML(toWeb + ", path: /a")
	a.ok(t, "one", body)
	_, err := a.merge(t, `{"spec":{"path":"/b"}}`)
	must(t, err)
	a.conflicts(t, 1, "one", body)
	expectFields(t, a.ok(t, "one", body, "force=true"), map[string]any{"spec.path": "/a"})

	routes := u.routes.RouteV1().Routes(u.project)
	route, err := routes.Get(t.Context(), "web", metav1.GetOptions{})
	must(t, err)
	route.Spec.Path = "/c"
	_, err = routes.Update(t.Context(), route, metav1.UpdateOptions{FieldManager: "controller"})
	must(t, err)
	expectFields(t, a.ok(t, "one", routeYAML(toWeb)), map[string]any{"spec.path": "/c"})
}

// Lists are merged by what they are: finalizers are a set, tags have keys, users of a Group are one value.
func TestApplyOfSetsKeysAndAtoms(t *testing.T) {
	u := newTenant(t)
	a := applyTo(t, "/apis/image.openshift.io/v1/namespaces/%s/imagestreams/web", u.project)
	count := func(object *unstructured.Unstructured, finalizers, tags int) {
		t.Helper()
		list, _, err := unstructured.NestedSlice(object.Object, "spec", "tags")
		must(t, err)
		if len(object.GetFinalizers()) != finalizers || len(list) != tags {
			t.Fatalf("finalizers %v, tags %v", object.GetFinalizers(), list)
		}
	}
	body := streamYAML(", finalizers: [example.com/a]", "lookupPolicy: {local: false}, tags: [{name: x, reference: true}]")
	count(a.ok(t, "one", body), 1, 1)
	t.Cleanup(func() {
		must(t, a.client.Patch(types.MergePatchType).AbsPath(a.path).Body([]byte(`{"metadata":{"finalizers":[]}}`)).Do(context.Background()).Error())
	})
	both, err := a.merge(t, `{"metadata":{"finalizers":["example.com/a","example.com/b"]}}`)
	must(t, err)
	count(both, 2, 1)
	count(a.ok(t, "one", body), 2, 1)

	_, err = a.merge(t, `{"spec":{"lookupPolicy":{"local":true}}}`)
	must(t, err)
	a.conflicts(t, 1, "one", body)
	expectFields(t, a.ok(t, "one", body, "force=true"), map[string]any{"spec.lookupPolicy.local": false})

	a.conflicts(t, 1, "two", streamYAML("", "tags: [{name: x, reference: false}]"))
	count(a.ok(t, "two", streamYAML("", "tags: [{name: other, reference: true}]")), 2, 2)

	missing := a.client.Put().AbsPath(strings.TrimSuffix(a.path, "web")+"missing").SetHeader("Content-Type", "application/yaml")
	_, err = a.do(t, missing, strings.Replace(body, "name: web", "name: missing", 1), nil)
	if !apierrors.IsNotFound(err) {
		t.Fatalf("an update of what is not there: %v", err)
	}

	group := unique("atoms")
	atoms := applyTo(t, "/apis/user.openshift.io/v1/groups/%s", group)
	users := func(name string) string {
		return "apiVersion: user.openshift.io/v1\nkind: Group\nmetadata: {name: " + group + "}\nusers: [" + name + "]\n"
	}
	expectFields(t, atoms.ok(t, "one", users("a")), map[string]any{"users": []any{"a"}})
	t.Cleanup(func() {
		must(t, administratorOfUsers(t).UserV1().Groups().Delete(context.Background(), group, metav1.DeleteOptions{}))
	})
	atoms.conflicts(t, 1, "two", users("b"))
	expectFields(t, atoms.ok(t, "two", users("b"), "force=true"), map[string]any{"users": []any{"b"}})
}
