package conformance

import (
	"context"
	"fmt"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// next is the next event that is no bookmark.
func next(t *testing.T, watcher watch.Interface) watch.Event {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case event, open := <-watcher.ResultChan():
			if !open {
				t.Fatal("the watch ended")
			}
			if event.Type != watch.Bookmark {
				return event
			}
		case <-deadline:
			t.Fatal("no event came")
		}
	}
}

// A watcher that reconnects by the last resourceVersion sees every change once, in order, although the server
// was killed in between.
func TestWatchAcrossACrash(t *testing.T) {
	u := newTenant(t)
	routes := u.routes.RouteV1().Routes(u.project)
	list, err := routes.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	source := &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return routes.Watch(ctx, options)
		},
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return routes.List(ctx, options)
		},
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.ResourceVersion, source)
	must(t, err)
	defer watcher.Stop()

	const half = 25
	for number := range 2 * half {
		if number == half {
			crashOurServer(t)
			startOurServer(t)
		}
		u.createRoute(t, fmt.Sprintf("r%03d", number))
	}
	last := revision(t, list.ResourceVersion)
	for number := range 2 * half {
		event := next(t, watcher)
		route, ok := event.Object.(*routev1.Route)
		if !ok || event.Type != watch.Added {
			t.Fatalf("event %d is %s: %+v", number, event.Type, event.Object)
		}
		now := revision(t, route.ResourceVersion)
		if want := fmt.Sprintf("r%03d", number); route.Name != want || now <= last {
			t.Fatalf("event %d is %s at %d after %d, not %s", number, route.Name, now, last, want)
		}
		last = now
	}
}
