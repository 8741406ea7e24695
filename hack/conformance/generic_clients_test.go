package conformance

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/pager"
)

var (
	routeResource   = schema.GroupVersionResource{Group: "route.openshift.io", Version: "v1", Resource: "routes"}
	projectResource = schema.GroupVersionResource{Group: "project.openshift.io", Version: "v1", Resource: "projects"}
)

// The metadata client asks for protobuf first: kube-controller-manager lives on it.
func TestMetadataClient(t *testing.T) {
	u := newTenant(t)
	u.createRoute(t, "web")
	client, err := metadata.NewForConfig(u.config)
	must(t, err)
	routes := client.Resource(routeResource).Namespace(u.project)

	one, err := routes.Get(t.Context(), "web", metav1.GetOptions{})
	must(t, err)
	if one.Name != "web" || one.UID == "" || one.Annotations["openshift.io/host.generated"] != "true" {
		t.Fatalf("got %+v", one)
	}
	list, err := routes.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(list.Items) != 1 || list.Items[0].UID != one.UID || list.ResourceVersion == "" {
		t.Fatalf("list: %+v", list)
	}
	watcher, err := routes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	must(t, err)
	defer watcher.Stop()
	patch := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
	patched, err := routes.Patch(t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
	if patched.Labels["a"] != "b" {
		t.Fatalf("patched: %+v", patched)
	}
	must(t, routes.Delete(t.Context(), "web", metav1.DeleteOptions{}))
	for _, want := range []watch.EventType{watch.Modified, watch.Deleted} {
		event := next(t, watcher)
		object, ok := event.Object.(*metav1.PartialObjectMetadata)
		if !ok || event.Type != want || object.Name != "web" || object.UID != one.UID {
			t.Fatalf("wanted %s, got %s: %+v", want, event.Type, event.Object)
		}
	}
	u.createRoute(t, "again")
	must(t, routes.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))

	projects, err := client.Resource(projectResource).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(projects.Items) != 1 || projects.Items[0].Name != u.project {
		t.Fatalf("projects: %+v", projects)
	}
}

func TestMetadataInformers(t *testing.T) {
	u := newTenant(t)
	u.createRoute(t, "web")
	client, err := metadata.NewForConfig(administrator(t))
	must(t, err)
	factory := metadatainformer.NewSharedInformerFactory(client, 0)
	routes, projects := factory.ForResource(routeResource), factory.ForResource(projectResource)
	ctx, stop := context.WithCancel(t.Context())
	defer factory.Shutdown()
	routesSynced, projectsSynced := routes.Informer().HasSynced, projects.Informer().HasSynced
	defer stop()
	factory.Start(ctx.Done())
	waitForSync(t, routesSynced, projectsSynced)
	if _, err := routes.Lister().ByNamespace(u.project).Get("web"); err != nil {
		t.Fatal(err)
	}
	if _, err := projects.Lister().Get(u.project); err != nil {
		t.Fatal(err)
	}
}

func TestDynamicClient(t *testing.T) {
	u := newTenant(t)
	client, err := dynamic.NewForConfig(u.config)
	must(t, err)
	routes := client.Resource(routeResource).Namespace(u.project)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "route.openshift.io/v1", "kind": "Route",
		"metadata": map[string]any{"generateName": "gen-"},
		"spec":     map[string]any{"to": map[string]any{"kind": "Service", "name": "web"}},
	}}
	created, err := routes.Create(t.Context(), object, metav1.CreateOptions{})
	must(t, err)
	host, _, err := unstructured.NestedString(created.Object, "spec", "host")
	must(t, err)
	if !strings.HasPrefix(created.GetName(), "gen-") || !strings.HasPrefix(host, created.GetName()+"-"+u.project+".") {
		t.Fatalf("created %s with host %s", created.GetName(), host)
	}
	must(t, unstructured.SetNestedField(created.Object, "/x", "spec", "path"))
	updated, err := routes.Update(t.Context(), created, metav1.UpdateOptions{})
	must(t, err)
	if updated.GetGeneration() != 2 {
		t.Fatalf("generation %d", updated.GetGeneration())
	}
	strict := updated.DeepCopy()
	must(t, unstructured.SetNestedField(strict.Object, "?", "spec", "nosuch"))
	_, err = routes.Update(t.Context(), strict, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err == nil || !strings.Contains(err.Error(), `unknown field "spec.nosuch"`) {
		t.Fatalf("an unknown field under strict validation: %v", err)
	}
	// Ignored is pruned: what no schema knows is not kept.
	strict.SetLabels(map[string]string{"a": "b"})
	pruned, err := routes.Update(t.Context(), strict, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationIgnore})
	must(t, err)
	if _, found, _ := unstructured.NestedFieldNoCopy(pruned.Object, "spec", "nosuch"); found {
		t.Fatalf("an unknown field was kept: %+v", pruned.Object["spec"])
	}
}

func TestDiscovery(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(user(t, unique("reader")))
	must(t, err)
	check := func(lists []*metav1.APIResourceList) {
		t.Helper()
		found := map[string]metav1.APIResource{}
		for _, list := range lists {
			for _, resource := range list.APIResources {
				found[list.GroupVersion+"/"+resource.Name] = resource
			}
		}
		for name, kind := range map[string]string{
			"route.openshift.io/v1/routes": "Route", "route.openshift.io/v1/routes/status": "Route",
			"project.openshift.io/v1/projects": "Project", "project.openshift.io/v1/projectrequests": "ProjectRequest",
		} {
			if found[name].Kind != kind {
				t.Errorf("%s is of kind %q", name, found[name].Kind)
			}
		}
		if resource := found["project.openshift.io/v1/projects"]; resource.Namespaced || resource.SingularName != "project" {
			t.Errorf("projects: %+v", resource)
		}
		for _, verb := range routeVerbs() {
			if !strings.Contains(fmt.Sprint(found["route.openshift.io/v1/routes"].Verbs), verb) {
				t.Errorf("routes lack %s: %v", verb, found["route.openshift.io/v1/routes"].Verbs)
			}
		}
	}
	_, aggregated, err := client.ServerGroupsAndResources()
	must(t, err)
	check(aggregated)
	_, legacy, err := client.WithLegacy().ServerGroupsAndResources()
	must(t, err)
	check(legacy)

	document, err := client.OpenAPISchema()
	must(t, err)
	for _, definition := range document.GetDefinitions().GetAdditionalProperties() {
		if definition.GetName() == "com.github.openshift.api.route.v1.Route" {
			return
		}
	}
	t.Fatal("Route is not in /openapi/v2")
}

func routeVerbs() []string {
	return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}

func TestPager(t *testing.T) {
	u := newTenant(t)
	const count = 57
	for number := range count {
		u.createRoute(t, fmt.Sprintf("r%03d", number))
	}
	requests, routes := 0, u.routes.RouteV1().Routes(u.project)
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		requests++
		if requests == 2 {
			// What is written between two pages is not in them.
			if _, err := routes.Create(ctx, newRoute("zz-late"), metav1.CreateOptions{}); err != nil {
				return nil, err
			}
		}
		return routes.List(ctx, options)
	})
	pages.PageSize = 10
	pages.PageBufferSize = 0
	seen := map[string]int{}
	must(t, pages.EachListItem(t.Context(), metav1.ListOptions{}, func(object runtime.Object) error {
		accessor, ok := object.(metav1.ObjectMetaAccessor)
		if !ok {
			return fmt.Errorf("%T has no metadata", object)
		}
		seen[accessor.GetObjectMeta().GetName()]++
		return nil
	}))
	if requests != 6 || len(seen) != count {
		t.Fatalf("%d requests gave %d routes: %v", requests, len(seen), seen)
	}
}
