package conformance

import (
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"

	routeclient "github.com/openshift/client-go/route/clientset/versioned"
)

func TestTypedRoutes(t *testing.T) {
	u := newTenant(t)
	routes := u.routes.RouteV1().Routes(u.project)
	created := u.createRoute(t, "web")
	if created.Spec.Host == "" || !admitted(created) {
		t.Fatalf("not admitted in the answer: %+v", created)
	}
	if created.Spec.To.Weight == nil || *created.Spec.To.Weight != 100 || created.Spec.WildcardPolicy != "None" {
		t.Fatalf("defaults are missing: %+v", created.Spec)
	}

	got, err := routes.Get(t.Context(), "web", metav1.GetOptions{})
	must(t, err)
	got.Spec.Path = "/shop"
	updated, err := routes.Update(t.Context(), got, metav1.UpdateOptions{})
	must(t, err)
	if updated.Generation != 2 || !admitted(updated) || updated.Spec.Host != created.Spec.Host {
		t.Fatalf("after update: %+v", updated)
	}
	if _, err := routes.Update(t.Context(), got, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Fatalf("an old resourceVersion: %v", err)
	}

	merge := []byte(`{"metadata":{"labels":{"team":"a"}}}`)
	labelled, err := routes.Patch(t.Context(), "web", types.MergePatchType, merge, metav1.PatchOptions{})
	must(t, err)
	if labelled.Labels["team"] != "a" || labelled.Generation != 2 {
		t.Fatalf("after merge patch: %+v", labelled.ObjectMeta)
	}
	jsonPatch := []byte(`[{"op":"test","path":"/metadata/labels/team","value":"a"},{"op":"replace","path":"/spec/path","value":"/x"}]`)
	moved, err := routes.Patch(t.Context(), "web", types.JSONPatchType, jsonPatch, metav1.PatchOptions{})
	must(t, err)
	if moved.Spec.Path != "/x" || moved.Generation != 3 {
		t.Fatalf("after JSON patch: %+v", moved)
	}

	dry := newRoute("dry")
	if _, err := routes.Create(t.Context(), dry, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatal(err)
	}
	if _, err := routes.Get(t.Context(), "dry", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("a dry run was written: %v", err)
	}
	if _, err := routes.Create(t.Context(), newRoute("web"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("a second one of the name: %v", err)
	}

	wrong := types.UID("00000000-0000-0000-0000-000000000000")
	precondition := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}}
	if err := routes.Delete(t.Context(), "web", precondition); !apierrors.IsConflict(err) {
		t.Fatalf("delete with another uid: %v", err)
	}
	must(t, routes.Delete(t.Context(), "web", metav1.DeleteOptions{}))
	if _, err := routes.Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("after delete: %v", err)
	}
}

func TestDeleteCollection(t *testing.T) {
	u := newTenant(t)
	routes := u.routes.RouteV1().Routes(u.project)
	for _, name := range []string{"a", "b", "c"} {
		route := newRoute(name)
		route.Labels = map[string]string{"keep": map[bool]string{true: "yes", false: "no"}[name == "c"]}
		_, err := routes.Create(t.Context(), route, metav1.CreateOptions{})
		must(t, err)
	}
	selected := metav1.ListOptions{LabelSelector: "keep=no"}
	must(t, routes.DeleteCollection(t.Context(), metav1.DeleteOptions{}, selected))
	left, err := routes.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(left.Items) != 1 || left.Items[0].Name != "c" {
		t.Fatalf("left: %+v", left.Items)
	}
}

func TestRouteStatusOfAnotherRouter(t *testing.T) {
	u := newTenant(t)
	route := u.createRoute(t, "web")
	admin, err := routeclient.NewForConfig(administrator(t))
	must(t, err)
	route.Status.Ingress = append(route.Status.Ingress, routev1.RouteIngress{
		Host:       route.Spec.Host,
		RouterName: "sharded",
		Conditions: []routev1.RouteIngressCondition{{Type: routev1.RouteAdmitted, Status: corev1.ConditionTrue}},
	})
	route.Spec.Path = "/ignored"
	updated, err := admin.RouteV1().Routes(u.project).UpdateStatus(t.Context(), route, metav1.UpdateOptions{})
	must(t, err)
	if len(updated.Status.Ingress) != 2 || updated.Spec.Path != "" || !admitted(updated) {
		t.Fatalf("after status update: %+v", updated)
	}
}

func TestRouteWatch(t *testing.T) {
	u := newTenant(t)
	routes := u.routes.RouteV1().Routes(u.project)
	before, err := routes.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	u.createRoute(t, "web")
	_, err = routes.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"path":"/a"}}`), metav1.PatchOptions{})
	must(t, err)
	must(t, routes.Delete(t.Context(), "web", metav1.DeleteOptions{}))

	watcher, err := routes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: before.ResourceVersion})
	must(t, err)
	defer watcher.Stop()
	last := revision(t, before.ResourceVersion)
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		event := next(t, watcher)
		route, ok := event.Object.(*routev1.Route)
		if !ok || event.Type != want || route.Name != "web" {
			t.Fatalf("wanted %s, got %s %T", want, event.Type, event.Object)
		}
		if now := revision(t, route.ResourceVersion); now <= last {
			t.Fatalf("%s at %d after %d", event.Type, now, last)
		} else {
			last = now
		}
	}
}

func TestRetryOnConflict(t *testing.T) {
	u := newTenant(t)
	u.createRoute(t, "web")
	routes := u.routes.RouteV1().Routes(u.project)
	const writers, rounds = 4, 5
	done := make(chan error, writers)
	// Conflicts are likely with four writers; none of their steps may be lost.
	backoff := retry.DefaultBackoff
	backoff.Steps = 40
	for range writers {
		go func() {
			for range rounds {
				if err := retry.RetryOnConflict(backoff, func() error {
					route, err := routes.Get(t.Context(), "web", metav1.GetOptions{})
					if err != nil {
						return err
					}
					route.Spec.Path += "/x"
					_, err = routes.Update(t.Context(), route, metav1.UpdateOptions{})
					return err
				}); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range writers {
		must(t, <-done)
	}
	route, err := routes.Get(t.Context(), "web", metav1.GetOptions{})
	must(t, err)
	if len(route.Spec.Path) != 2*writers*rounds || route.Generation != 1+writers*rounds {
		t.Fatalf("path %q, generation %d", route.Spec.Path, route.Generation)
	}
}
