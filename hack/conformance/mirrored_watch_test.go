package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// What Kubernetes' own tests of watches expect of ConfigMaps and Secrets, expected of ours.

// watched is a watch of a kind that knows which events it must tell.
type watched struct {
	world
	watch.Interface
}

func (w world) watch(t *testing.T, options metav1.ListOptions) watched {
	t.Helper()
	watcher, err := w.reader.Watch(t.Context(), options)
	must(t, err)
	t.Cleanup(watcher.Stop)
	return watched{w, watcher}
}

// tells takes the next event. A Namespace is changed by controllers too, so there others may come before it.
func (w watched) tells(t *testing.T, kind watch.EventType, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	for {
		event := next(t, w.Interface)
		got, ok := event.Object.(*unstructured.Unstructured)
		if ok && event.Type == kind && got.GetName() == object.GetName() &&
			(kind == watch.Deleted || got.GetResourceVersion() == object.GetResourceVersion()) {
			return got
		}
		if !ok || w.writtenKind == "" || event.Type == watch.Error {
			t.Fatalf("wanted %s of %s at %s, got %s: %+v", kind, object.GetName(), object.GetResourceVersion(), event.Type, event.Object)
		}
	}
}

func labelled(values string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: "watched in (" + values + ")"}
}

func relabel(value string) string {
	return fmt.Sprintf(`{"metadata":{"labels":{"watched":%q}}}`, value)
}

func note(text string) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{"openshift.io/description":%q}}}`, text)
}

func (w world) delete(t *testing.T, name string) {
	t.Helper()
	must(t, w.writer.Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// Each watcher sees what its selector selects, and nothing else.
func TestWatchersBySelector(t *testing.T) {
	eachKind(t, shown(), func(t *testing.T, w world) {
		a, b := unique("a"), unique("b")
		ofA, ofB, ofBoth := w.watch(t, labelled(a)), w.watch(t, labelled(b)), w.watch(t, labelled(a+","+b))
		made := w.create(t, unique("made"), map[string]string{"watched": a})
		ofA.tells(t, watch.Added, made)
		ofBoth.tells(t, watch.Added, made)
		for _, text := range []string{"one", "two"} {
			changed := w.merge(t, made.GetName(), note(text))
			ofA.tells(t, watch.Modified, changed)
			ofBoth.tells(t, watch.Modified, changed)
		}
		w.delete(t, made.GetName())
		ofA.tells(t, watch.Deleted, made)
		ofBoth.tells(t, watch.Deleted, made)

		other := w.create(t, unique("made"), map[string]string{"watched": b})
		ofB.tells(t, watch.Added, other)
		ofBoth.tells(t, watch.Added, other)
		w.delete(t, other.GetName())
		ofB.tells(t, watch.Deleted, other)
		ofBoth.tells(t, watch.Deleted, other)
		// The one of the first value has seen nothing of it: this is the next that it sees.
		last := w.create(t, unique("made"), map[string]string{"watched": a})
		ofA.tells(t, watch.Added, last)
	})
}

// A watch begins after the version that it names, and one that was closed goes on where it was.
func TestWatchFromAVersion(t *testing.T) {
	eachKind(t, shown(), func(t *testing.T, w world) {
		label := unique("v")
		first := w.watch(t, labelled(label))
		made := w.create(t, unique("made"), map[string]string{"watched": label})
		first.tells(t, watch.Added, made)
		seen := first.tells(t, watch.Modified, w.merge(t, made.GetName(), note("one")))
		first.Stop()

		second := w.merge(t, made.GetName(), note("two"))
		options := labelled(label)
		options.ResourceVersion = seen.GetResourceVersion()
		again := w.watch(t, options)
		w.delete(t, made.GetName())
		late := w.watch(t, options)
		for _, watcher := range []watched{again, late} {
			watcher.tells(t, watch.Modified, second)
			watcher.tells(t, watch.Deleted, made)
		}
	})
}

// What a selector selects no longer is deleted for its watchers, and added when it is selected again.
func TestWatchOfWhatIsSelectedNoMore(t *testing.T) {
	eachKind(t, shown(), func(t *testing.T, w world) {
		label := unique("s")
		watcher := w.watch(t, labelled(label))
		made := w.create(t, unique("made"), map[string]string{"watched": label})
		changed := w.merge(t, made.GetName(), note("one"))
		w.merge(t, made.GetName(), relabel("other"))
		watcher.tells(t, watch.Added, made)
		watcher.tells(t, watch.Modified, changed)
		watcher.tells(t, watch.Deleted, made)
		w.merge(t, made.GetName(), note("two"))
		back := w.merge(t, made.GetName(), relabel(label))
		third := w.merge(t, made.GetName(), note("three"))
		w.delete(t, made.GetName())
		watcher.tells(t, watch.Added, back)
		watcher.tells(t, watch.Modified, third)
		watcher.tells(t, watch.Deleted, made)
	})
}

// Watches that begin one after the other amid writes see the same events in the same order.
func TestConcurrentWatches(t *testing.T) {
	const watches = 100
	w := worldOf(t, stored()[0])
	list, err := w.reader.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	written := make(chan error, 1)
	go func() { written <- w.write(ctx) }()
	defer func() {
		stop()
		must(t, <-written)
	}()
	source := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		return w.reader.Watch(ctx, options)
	}}
	version := list.GetResourceVersion()
	var watchers []watch.Interface
	for range watches {
		watcher, err := watchtools.NewRetryWatcherWithContext(t.Context(), version, source)
		must(t, err)
		defer watcher.Stop()
		watchers = append(watchers, watcher)
		version = ""
		for number, watcher := range watchers {
			event := next(t, watcher)
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				t.Fatalf("watch %d: %s: %+v", number, event.Type, event.Object)
			}
			if now := object.GetResourceVersion(); version == "" {
				version = now
			} else if version != now {
				t.Fatalf("watch %d is at %s, the first at %s", number, now, version)
			}
		}
	}
}

// write makes, changes and deletes objects until it is told to stop.
func (w world) write(ctx context.Context) error {
	var names []string
	for number := 0; ctx.Err() == nil; number++ {
		var err error
		choice := rand.Intn(3)
		switch {
		case len(names) == 0 || choice == 0:
			names = append(names, fmt.Sprintf("w%05d", number))
			_, err = w.writer.Create(ctx, w.new(names[len(names)-1], nil), metav1.CreateOptions{})
		case choice == 1:
			name := names[rand.Intn(len(names))]
			_, err = w.writer.Patch(ctx, name, "application/merge-patch+json", []byte(note(fmt.Sprint(number))), metav1.PatchOptions{})
		default:
			last := len(names) - 1
			err = w.writer.Delete(ctx, names[last], metav1.DeleteOptions{})
			names = names[:last]
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// Whatever a client accepts, it can read the events that come.
func TestWatchInEachEncoding(t *testing.T) {
	w := worldOf(t, stored()[0])
	list, err := w.reader.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	made := w.create(t, "web", nil)
	for _, accept := range []string{
		"application/json", protobufType, protobufType + ",application/json", "application/json," + protobufType,
	} {
		config := administrator(t)
		config.AcceptContentTypes = accept
		watcher, err := routesOf(t, config).RouteV1().Routes(made.GetNamespace()).Watch(t.Context(), metav1.ListOptions{
			ResourceVersion: list.GetResourceVersion(), FieldSelector: fields.OneTermEqualSelector("metadata.name", "web").String(),
		})
		must(t, err)
		event := next(t, watcher)
		watcher.Stop()
		if object, ok := event.Object.(metav1.Object); !ok || event.Type != watch.Added || object.GetUID() != made.GetUID() {
			t.Fatalf("%s: %s: %+v", accept, event.Type, event.Object)
		}
	}
}

// A watch that begins with what is there can come in tables: the columns once, and a bookmark when all has come.
func TestWatchListInTables(t *testing.T) {
	eachKind(t, stored(), func(t *testing.T, w world) {
		label := unique("t")
		names := map[string]bool{}
		for range 5 {
			names[w.create(t, unique("made"), map[string]string{"watched": label}).GetName()] = true
		}
		config := dynamic.ConfigFor(administrator(t))
		config.AcceptContentTypes = "application/json;as=Table;v=v1;g=meta.k8s.io"
		config.GroupVersion = &schema.GroupVersion{}
		client, err := rest.RESTClientFor(config)
		must(t, err)
		options := labelled(label)
		initial := true
		options.SendInitialEvents, options.AllowWatchBookmarks = &initial, true
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		watcher, err := dynamic.New(client).Resource(w.resource).Watch(t.Context(), options)
		must(t, err)
		defer watcher.Stop()
		for number := 0; ; number++ {
			event, open := <-watcher.ResultChan()
			if !open {
				t.Fatal("the watch ended")
			}
			table := asTable(t, event.Object)
			if (number == 0) != (len(table.ColumnDefinitions) > 0) || len(table.Rows) != 1 {
				t.Fatalf("event %d: %+v", number, table)
			}
			var row metav1.PartialObjectMetadata
			must(t, json.Unmarshal(table.Rows[0].Object.Raw, &row))
			if event.Type == watch.Bookmark {
				if len(names) != 0 || row.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
					t.Fatalf("a bookmark while %v did not come: %+v", names, row)
				}
				return
			}
			if event.Type != watch.Added || !names[row.Name] || table.Rows[0].Cells[0] != row.Name {
				t.Fatalf("%s: %+v", event.Type, table.Rows)
			}
			delete(names, row.Name)
		}
	})
}

func asTable(t *testing.T, object runtime.Object) metav1.Table {
	t.Helper()
	raw, err := json.Marshal(object)
	must(t, err)
	var table metav1.Table
	must(t, json.Unmarshal(raw, &table))
	if table.Kind != "Table" {
		t.Fatalf("not a table: %s", raw)
	}
	return table
}
