package conformance

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	projectclient "github.com/openshift/client-go/project/clientset/versioned"
	projectinformers "github.com/openshift/client-go/project/informers/externalversions"
	routeinformers "github.com/openshift/client-go/route/informers/externalversions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// history keeps what an informer told: for each object its changes by resourceVersion.
type history struct {
	sync.Mutex
	seen    map[string]int
	deleted map[string]bool
}

func (h *history) note(route *routev1.Route) {
	h.Lock()
	defer h.Unlock()
	h.seen[route.Name+"@"+route.ResourceVersion]++
}

func (h *history) handlers() cache.ResourceEventHandlerFuncs {
	h.seen, h.deleted = map[string]int{}, map[string]bool{}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { h.note(object.(*routev1.Route)) },
		UpdateFunc: func(old, object any) {
			// A relist or resync hands out the object as it is: no change, no event of the server.
			if before, after := old.(*routev1.Route), object.(*routev1.Route); before.ResourceVersion != after.ResourceVersion {
				h.note(after)
			}
		},
		DeleteFunc: func(object any) {
			if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = tombstone.Obj
			}
			h.Lock()
			defer h.Unlock()
			h.deleted[object.(*routev1.Route).Name] = true
		},
	}
}

func waitForSync(t *testing.T, synced ...cache.InformerSynced) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		t.Fatal("an informer did not sync")
	}
}

func TestRouteInformerAcrossACrash(t *testing.T) {
	u := newTenant(t)
	for number := range 30 {
		u.createRoute(t, fmt.Sprintf("before-%02d", number))
	}
	factory := routeinformers.NewSharedInformerFactoryWithOptions(u.routes, time.Second, routeinformers.WithNamespace(u.project))
	informer := factory.Route().V1().Routes()
	told := &history{}
	_, err := informer.Informer().AddEventHandler(told.handlers())
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer stop()
	factory.Start(ctx.Done())
	waitForSync(t, informer.Informer().HasSynced)

	same := func() string { return compareRoutes(t, u, informer.Lister().Routes(u.project).List) }
	eventually(t, "lister and server agree", same)
	crashOurServer(t)
	startOurServer(t)
	routes := u.routes.RouteV1().Routes(u.project)
	for number := range 10 {
		u.createRoute(t, fmt.Sprintf("after-%02d", number))
		patch := []byte(fmt.Sprintf(`{"spec":{"path":"/p%d"}}`, number))
		name := fmt.Sprintf("before-%02d", number)
		_, err := routes.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		must(t, err)
		must(t, routes.Delete(t.Context(), fmt.Sprintf("before-%02d", 20+number), metav1.DeleteOptions{}))
	}
	eventually(t, "lister and server agree after the crash", same)
	eventually(t, "every deletion was told", func() string {
		told.Lock()
		defer told.Unlock()
		if len(told.deleted) == 10 {
			return ""
		}
		return fmt.Sprint(told.deleted)
	})
	told.Lock()
	defer told.Unlock()
	for change, times := range told.seen {
		if times != 1 {
			t.Errorf("%s was told %d times", change, times)
		}
	}
	if len(told.seen) != 30+10+10 {
		t.Errorf("%d changes were told, not 50: %v", len(told.seen), told.seen)
	}
}

func compareRoutes(t *testing.T, u tenant, list func(labels.Selector) ([]*routev1.Route, error)) string {
	t.Helper()
	cached, err := list(labels.Everything())
	must(t, err)
	live, err := u.routes.RouteV1().Routes(u.project).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	versions := map[string]string{}
	for _, route := range cached {
		versions[route.Name] = route.ResourceVersion
	}
	for _, route := range live.Items {
		if versions[route.Name] != route.ResourceVersion {
			return fmt.Sprintf("%s is %q in the cache and %q on the server", route.Name, versions[route.Name], route.ResourceVersion)
		}
	}
	if len(cached) != len(live.Items) {
		return fmt.Sprintf("%d in the cache, %d on the server", len(cached), len(live.Items))
	}
	return ""
}

func TestProjectInformerAcrossACrash(t *testing.T) {
	u := newTenant(t)
	client, err := projectclient.NewForConfig(u.config)
	must(t, err)
	factory := projectinformers.NewSharedInformerFactory(client, 0)
	informer := factory.Project().V1().Projects()
	ctx, stop := context.WithCancel(t.Context())
	defer factory.Shutdown()
	hasSynced := informer.Informer().HasSynced
	defer stop()
	factory.Start(ctx.Done())
	waitForSync(t, hasSynced)
	sees := func(text string) func() string {
		return func() string {
			projects, err := informer.Lister().List(labels.Everything())
			must(t, err)
			if len(projects) != 1 || projects[0].Name != u.project {
				return fmt.Sprintf("sees %d projects", len(projects))
			}
			if got := projects[0].Annotations["openshift.io/description"]; got != text {
				return fmt.Sprintf("description is %q", got)
			}
			return ""
		}
	}
	eventually(t, "she sees her project", sees(""))
	crashOurServer(t)
	startOurServer(t)
	patch := []byte(`{"metadata":{"annotations":{"openshift.io/description":"changed"}}}`)
	_, err = client.ProjectV1().Projects().Patch(t.Context(), u.project, types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
	eventually(t, "she sees the change", sees("changed"))
}

func TestManyInformersAtOnce(t *testing.T) {
	u := newTenant(t)
	for number := range 20 {
		u.createRoute(t, fmt.Sprintf("r%02d", number))
	}
	const informers = 200
	ctx, stop := context.WithCancel(t.Context())
	var factories []routeinformers.SharedInformerFactory
	var synced []cache.InformerSynced
	for range informers {
		factory := routeinformers.NewSharedInformerFactoryWithOptions(u.routes, 0, routeinformers.WithNamespace(u.project))
		synced = append(synced, factory.Route().V1().Routes().Informer().HasSynced)
		factories = append(factories, factory)
		factory.Start(ctx.Done())
	}
	defer func() {
		stop()
		for _, factory := range factories {
			factory.Shutdown()
		}
	}()
	waitForSync(t, synced...)
	u.createRoute(t, "last")
	eventually(t, "all see the last one", func() string {
		missing := 0
		for _, factory := range factories {
			if _, err := factory.Route().V1().Routes().Lister().Routes(u.project).Get("last"); err != nil {
				missing++
			}
		}
		if missing == 0 {
			return ""
		}
		return fmt.Sprintf("%d do not", missing)
	})
}
