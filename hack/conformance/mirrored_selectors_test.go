package conformance

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// What Kubernetes' own test of selectable fields expects of custom resources, expected of Routes.

// story is which objects somebody saw come and go.
type story struct {
	sync.Mutex
	added, deleted []string
}

func (s *story) note(list *[]string, object any) {
	s.Lock()
	defer s.Unlock()
	*list = append(*list, object.(*unstructured.Unstructured).GetName())
}

func (s *story) expect(t *testing.T, what string, added, deleted []string) {
	t.Helper()
	eventually(t, what, func() string {
		s.Lock()
		defer s.Unlock()
		slices.Sort(s.added)
		slices.Sort(s.deleted)
		if slices.Equal(s.added, added) && slices.Equal(s.deleted, deleted) {
			return ""
		}
		return fmt.Sprintf("added %v, deleted %v", s.added, s.deleted)
	})
}

// byWatch notes what a watch tells.
func (w world) byWatch(t *testing.T, options metav1.ListOptions) *story {
	t.Helper()
	watcher, noted := w.watch(t, options), &story{}
	go func() {
		for event := range watcher.ResultChan() {
			switch event.Type {
			case watch.Added:
				noted.note(&noted.added, event.Object)
			case watch.Deleted:
				noted.note(&noted.deleted, event.Object)
			}
		}
	}()
	return noted
}

// byInformer notes what an informer tells.
func (w world) byInformer(t *testing.T, namespace string, options metav1.ListOptions) *story {
	t.Helper()
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamicClient(t), 0, namespace, func(all *metav1.ListOptions) {
		all.FieldSelector = options.FieldSelector
	})
	informer, noted := factory.ForResource(w.resource).Informer(), &story{}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { noted.note(&noted.added, object) },
		DeleteFunc: func(object any) { noted.note(&noted.deleted, object) },
	})
	must(t, err)
	factory.Start(t.Context().Done())
	t.Cleanup(factory.Shutdown)
	waitForSync(t, informer.HasSynced)
	return noted
}

// Lists, watches, informers and deletions go by the fields of a Route, and what changes them away is gone.
func TestFieldSelectors(t *testing.T) {
	w := worldOf(t, stored()[0])
	host := unique("h") + ".example"
	byHost := metav1.ListOptions{FieldSelector: "spec.host=" + host}
	byPath := metav1.ListOptions{FieldSelector: "spec.host=" + host + ",spec.path=/a"}
	namespace := w.create(t, "first", nil).GetNamespace()
	stories := map[string]*story{
		"watch by host": w.byWatch(t, byHost), "informer by host": w.byInformer(t, namespace, byHost),
		"watch by path": w.byWatch(t, byPath), "informer by path": w.byInformer(t, namespace, byPath),
	}
	for name, spec := range map[string][2]string{"a": {host, "/a"}, "b": {host, "/b"}, "c": {"other." + host, "/a"}} {
		object := w.new(name, nil)
		must(t, unstructured.SetNestedField(object.Object, spec[0], "spec", "host"))
		must(t, unstructured.SetNestedField(object.Object, spec[1], "spec", "path"))
		_, err := w.writer.Create(t.Context(), object, metav1.CreateOptions{})
		must(t, err)
	}
	lists := func(options metav1.ListOptions, want ...string) {
		t.Helper()
		list, err := w.reader.List(t.Context(), options)
		must(t, err)
		names := []string{}
		for _, item := range list.Items {
			names = append(names, item.GetName())
		}
		if fmt.Sprint(names) != fmt.Sprint(want) {
			t.Fatalf("%s lists %v, not %v", options.FieldSelector, names, want)
		}
	}
	lists(byHost, "a", "b")
	lists(byPath, "a")
	lists(metav1.ListOptions{FieldSelector: "spec.to.name=web,spec.path!=/a"}, "b", "first")
	for what, told := range stories {
		if what == "watch by host" || what == "informer by host" {
			told.expect(t, what, []string{"a", "b"}, nil)
		} else {
			told.expect(t, what, []string{"a"}, nil)
		}
	}
	must(t, w.writer.DeleteCollection(t.Context(), metav1.DeleteOptions{}, byPath))
	w.merge(t, "b", `{"spec":{"host":"another.`+host+`"}}`)
	lists(byHost)
	lists(byPath)
	for what, told := range stories {
		if what == "watch by host" || what == "informer by host" {
			told.expect(t, what, []string{"a", "b"}, []string{"a", "b"})
		} else {
			told.expect(t, what, []string{"a"}, []string{"a"})
		}
	}
}
