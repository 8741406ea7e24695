package conformance

import (
	"context"
	"fmt"
	"testing"

	projectv1 "github.com/openshift/api/project/v1"
	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What an operator does: read from a cache with an index, write by a client, see its own writes come back.
func TestControllerRuntime(t *testing.T) {
	u := newTenant(t)
	scheme := runtime.NewScheme()
	must(t, routev1.Install(scheme))
	must(t, projectv1.Install(scheme))
	live, err := client.New(u.config, client.Options{Scheme: scheme})
	must(t, err)
	cached, err := cache.New(u.config, cache.Options{
		Scheme:            scheme,
		DefaultNamespaces: map[string]cache.Config{u.project: {}},
	})
	must(t, err)
	must(t, cached.IndexField(t.Context(), &routev1.Route{}, "spec.to.name", func(object client.Object) []string {
		return []string{object.(*routev1.Route).Spec.To.Name}
	}))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cached.Start(ctx) }()
	defer func() {
		stop()
		must(t, <-ended)
	}()
	if !cached.WaitForCacheSync(ctx) {
		t.Fatal("the cache did not sync")
	}

	for number := range 5 {
		route := newRoute(fmt.Sprintf("r%d", number))
		route.Namespace = u.project
		route.Spec.To.Name = []string{"even", "odd"}[number%2]
		must(t, live.Create(t.Context(), route))
	}
	eventually(t, "the index finds the odd ones", func() string {
		var routes routev1.RouteList
		must(t, cached.List(t.Context(), &routes, client.InNamespace(u.project), client.MatchingFields{"spec.to.name": "odd"}))
		if len(routes.Items) == 2 {
			return ""
		}
		return fmt.Sprintf("%d", len(routes.Items))
	})

	var route routev1.Route
	key := client.ObjectKey{Namespace: u.project, Name: "r0"}
	must(t, live.Get(t.Context(), key, &route))
	before := route.DeepCopy()
	route.Labels = map[string]string{"touched": "yes"}
	must(t, live.Patch(t.Context(), &route, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
	eventually(t, "the change comes back", func() string {
		var seen routev1.Route
		must(t, cached.Get(t.Context(), key, &seen))
		if seen.ResourceVersion == route.ResourceVersion {
			return ""
		}
		return seen.ResourceVersion
	})

	crashOurServer(t)
	startOurServer(t)
	must(t, live.DeleteAllOf(t.Context(), &routev1.Route{}, client.InNamespace(u.project), client.MatchingLabels{"touched": "yes"}))
	eventually(t, "the cache goes on after the crash", func() string {
		var routes routev1.RouteList
		must(t, cached.List(t.Context(), &routes, client.InNamespace(u.project)))
		if len(routes.Items) == 4 {
			return ""
		}
		return fmt.Sprintf("%d routes", len(routes.Items))
	})

	var projects projectv1.ProjectList
	must(t, live.List(t.Context(), &projects))
	if len(projects.Items) != 1 || projects.Items[0].Name != u.project {
		t.Fatalf("projects: %+v", projects.Items)
	}
	var metadata metav1.PartialObjectMetadata
	metadata.SetGroupVersionKind(routev1.GroupVersion.WithKind("Route"))
	must(t, live.Get(t.Context(), client.ObjectKey{Namespace: u.project, Name: "r1"}, &metadata))
	if metadata.UID == "" {
		t.Fatal("no uid in the metadata")
	}
}
