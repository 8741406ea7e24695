package conformance

import (
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	imageapply "github.com/openshift/client-go/image/applyconfigurations/image/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned"
	routeapply "github.com/openshift/client-go/route/applyconfigurations/route/v1"
	routeclient "github.com/openshift/client-go/route/clientset/versioned"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func webRoute(namespace, service string) *routeapply.RouteApplyConfiguration {
	to := routeapply.RouteTargetReference().WithKind("Service").WithName(service)
	return routeapply.Route("web", namespace).WithSpec(routeapply.RouteSpec().WithTo(to))
}

// Apply configurations of client-go: create, meet a conflict, win it, and find again what one has applied.
func TestApplyConfigurations(t *testing.T) {
	u := newTenant(t)
	routes := u.routes.RouteV1().Routes(u.project)
	options := func(manager string, force bool) metav1.ApplyOptions {
		return metav1.ApplyOptions{FieldManager: manager, Force: force}
	}
	_, err := routes.Apply(t.Context(), webRoute(u.project, "a"), options("one", false))
	must(t, err)
	_, err = routes.Apply(t.Context(), webRoute(u.project, "b"), options("two", false))
	if !apierrors.IsConflict(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		t.Fatalf("no conflict: %v", err)
	}
	route, err := routes.Apply(t.Context(), webRoute(u.project, "b"), options("two", true))
	must(t, err)
	if route.Spec.To.Name != "b" {
		t.Fatalf("%+v", route.Spec)
	}
	mine, err := routeapply.ExtractRoute(route, "two")
	must(t, err)
	if mine.Spec == nil || mine.Spec.To == nil || *mine.Spec.To.Name != "b" || mine.Spec.Host != nil {
		t.Fatalf("extracted %+v", mine)
	}

	// A router's status is a manager's of its own.
	ingress := routeapply.RouteIngress().WithRouterName("other").WithHost("h.example")
	status := routeapply.Route("web", u.project).WithStatus(routeapply.RouteStatus().WithIngress(ingress))
	admin := administrator(t)
	routers := routesOf(t, admin).RouteV1().Routes(u.project)
	route, err = routers.ApplyStatus(t.Context(), status, options("router", false))
	must(t, err)
	found := false
	for _, entry := range route.ManagedFields {
		found = found || entry.Manager == "router" && entry.Subresource == "status" && entry.Operation == metav1.ManagedFieldsOperationApply
	}
	if !found || len(route.Status.Ingress) != 2 {
		t.Fatalf("%+v\n%+v", route.ManagedFields, route.Status)
	}
}

// Tags of a stream are a list with keys: two managers have one each.
func TestApplyOfListItems(t *testing.T) {
	u := newTenant(t)
	images, err := imageclient.NewForConfig(u.config)
	must(t, err)
	streams := images.ImageV1().ImageStreams(u.project)
	tag := func(name string) *imageapply.TagReferenceApplyConfiguration {
		return imageapply.TagReference().WithName(name).WithReference(true)
	}
	apply := func(manager string, tags ...*imageapply.TagReferenceApplyConfiguration) string {
		config := imageapply.ImageStream("s", u.project).WithSpec(imageapply.ImageStreamSpec().WithTags(tags...))
		stream, err := streams.Apply(t.Context(), config, metav1.ApplyOptions{FieldManager: manager})
		must(t, err)
		names := []string{}
		for _, tag := range stream.Spec.Tags {
			names = append(names, tag.Name)
		}
		return strings.Join(names, " ")
	}
	if got := apply("one", tag("a"), tag("b")); got != "a b" {
		t.Fatal(got)
	}
	if got := apply("two", tag("c")); got != "a b c" {
		t.Fatal(got)
	}
	if got := apply("one", tag("b")); got != "b c" {
		t.Fatal(got)
	}
}

// What an operator does with controller-runtime.
func TestControllerRuntimeApply(t *testing.T) {
	u := newTenant(t)
	scheme := runtime.NewScheme()
	must(t, routev1.Install(scheme))
	// Apply configurations have no protobuf form.
	live, err := client.New(inJSON(u.config), client.Options{Scheme: scheme})
	must(t, err)
	must(t, live.Apply(t.Context(), webRoute(u.project, "a"), client.FieldOwner("operator")))
	var before, after routev1.Route
	key := client.ObjectKey{Namespace: u.project, Name: "web"}
	must(t, live.Get(t.Context(), key, &before))
	must(t, live.Apply(t.Context(), webRoute(u.project, "a"), client.FieldOwner("operator")))
	must(t, live.Get(t.Context(), key, &after))
	if before.ResourceVersion != after.ResourceVersion {
		t.Fatalf("an apply that changes nothing was a write: %s, %s", before.ResourceVersion, after.ResourceVersion)
	}
	// A writer that knows nothing of managed fields takes nothing from anybody.
	after.ManagedFields = nil
	after.Labels = map[string]string{"a": "b"}
	must(t, live.Update(t.Context(), &after))
	if len(after.ManagedFields) != 2 {
		t.Fatalf("%+v", after.ManagedFields)
	}
	err = live.Apply(t.Context(), webRoute(u.project, "a").WithLabels(map[string]string{"a": "c"}), client.FieldOwner("operator"))
	if !apierrors.IsConflict(err) {
		t.Fatalf("no conflict: %v", err)
	}
	must(t, live.Apply(t.Context(), webRoute(u.project, "a").WithLabels(map[string]string{"a": "c"}), client.FieldOwner("operator"), client.ForceOwnership))
}

func routesOf(t *testing.T, config *rest.Config) routeclient.Interface {
	t.Helper()
	routes, err := routeclient.NewForConfig(config)
	must(t, err)
	return routes
}
