package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	imageclient "github.com/openshift/client-go/image/clientset/versioned"
	imageinformers "github.com/openshift/client-go/image/informers/externalversions"
	oauthclient "github.com/openshift/client-go/oauth/clientset/versioned"
	oauthinformers "github.com/openshift/client-go/oauth/informers/externalversions"
	projectclient "github.com/openshift/client-go/project/clientset/versioned"
	projectinformers "github.com/openshift/client-go/project/informers/externalversions"
	routeclient "github.com/openshift/client-go/route/clientset/versioned"
	routeinformers "github.com/openshift/client-go/route/informers/externalversions"
	userclient "github.com/openshift/client-go/user/clientset/versioned"
	userinformers "github.com/openshift/client-go/user/informers/externalversions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// telling is one event that an informer told: the number of the write, or that the object went.
type telling struct {
	number int
	gone   bool
	at     time.Time
}

// journal is what an informer told of the numbered objects of one namespace, by name.
type journal struct {
	sync.Mutex
	namespace string
	told      map[string][]telling
	events    int
}

func (j *journal) note(object any, event telling) {
	var metadata metav1.Object
	switch object := object.(type) {
	case metav1.Object:
		metadata = object
	case cache.DeletedFinalStateUnknown:
		metadata, _ = object.Obj.(metav1.Object)
	}
	if metadata == nil || metadata.GetNamespace() != j.namespace {
		return
	}
	number, err := strconv.Atoi(metadata.GetAnnotations()[numberAnnotation])
	if err != nil {
		return
	}
	if !event.gone {
		event.number = number
	}
	event.at = time.Now()
	j.Lock()
	defer j.Unlock()
	j.events++
	told := j.told[metadata.GetName()]
	// A change that is nobody's write, such as a Route's admission, has the number of the write before.
	if last := len(told) - 1; last >= 0 && told[last].number == event.number && told[last].gone == event.gone {
		return
	}
	j.told[metadata.GetName()] = append(told, event)
}

func (j *journal) handlers() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { j.note(object, telling{}) },
		UpdateFunc: func(old, object any) {
			before, after := old.(metav1.Object), object.(metav1.Object)
			if before.GetUID() != after.GetUID() {
				// A list found another one of that name: this is how an informer tells that the first went.
				j.note(old, telling{gone: true})
			}
			j.note(object, telling{})
		},
		DeleteFunc: func(object any) { j.note(object, telling{gone: true}) },
	}
}

// observed is a kind that an observer watches.
type observed struct {
	resource schema.GroupVersionResource
	informer cache.SharedIndexInformer
}

func (o observed) path() string {
	if o.resource.Group == "" {
		return "/api/" + o.resource.Version + "/" + o.resource.Resource
	}
	return "/apis/" + o.resource.Group + "/" + o.resource.Version + "/" + o.resource.Resource
}

// observer is a program with informers of many kinds, as one caller.
type observer struct {
	name     string
	kinds    []observed
	journals map[string]*journal
	live     dynamic.Interface
	requests *requests
	start    []func(<-chan struct{})
	shutdown []func()
}

// requests counts what informers ask for, by path.
type requests struct {
	sync.Mutex
	next http.RoundTripper
	// lists are those that were answered, streamed ones as well.
	lists   map[string][]*listing
	watches map[string]int
}

func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	began, query := time.Now(), request.URL.Query()
	response, err := r.next.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusOK {
		r.Lock()
		defer r.Unlock()
		if query.Get("watch") == "" || query.Get("sendInitialEvents") == "true" {
			list := &listing{began: began}
			r.lists[request.URL.Path] = append(r.lists[request.URL.Path], list)
			streamed := query.Get("sendInitialEvents") == "true"
			response.Body = &listingBody{ReadCloser: response.Body, streamed: streamed, whole: func() { r.whole(list) }}
		} else {
			r.watches[request.URL.Path]++
		}
	}
	return response, err
}

// newObserver makes informers of a caller, not started yet. Of the numbered objects in the namespace it keeps a journal.
func newObserver(t *testing.T, name string, config *rest.Config, namespace string) *observer {
	t.Helper()
	o := &observer{name: name, journals: map[string]*journal{}}
	live, err := dynamic.NewForConfig(config)
	must(t, err)
	o.live = live
	o.requests = &requests{lists: map[string][]*listing{}, watches: map[string]int{}}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		// Each client has the same transport.
		o.requests.next = next
		return o.requests
	})
	o.observeKubernetes(t, config)
	o.observeOpenShift(t, config)
	for _, kind := range o.kinds {
		kept := &journal{namespace: namespace, told: map[string][]telling{}}
		o.journals[kind.resource.Resource] = kept
		_, err := kind.informer.AddEventHandler(kept.handlers())
		must(t, err)
	}
	return o
}

func (o *observer) observeKubernetes(t *testing.T, config *rest.Config) {
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	factory := informers.NewSharedInformerFactory(client, 0)
	o.start, o.shutdown = append(o.start, factory.Start), append(o.shutdown, factory.Shutdown)
	for group, resources := range map[schema.GroupVersion][]string{
		{Version: "v1"}: {"configmaps", "namespaces", "secrets", "serviceaccounts"},
		{Group: "rbac.authorization.k8s.io", Version: "v1"}: {"clusterroles", "rolebindings"},
	} {
		for _, name := range resources {
			informer, err := factory.ForResource(group.WithResource(name))
			must(t, err)
			o.kinds = append(o.kinds, observed{group.WithResource(name), informer.Informer()})
		}
	}
}

func (o *observer) observeOpenShift(t *testing.T, config *rest.Config) {
	add := func(group, resource string, informer cache.SharedIndexInformer) {
		version := schema.GroupVersion{Group: group + ".openshift.io", Version: "v1"}
		o.kinds = append(o.kinds, observed{version.WithResource(resource), informer})
	}
	started := func(start func(<-chan struct{}), shutdown func()) {
		o.start, o.shutdown = append(o.start, start), append(o.shutdown, shutdown)
	}
	routes, err := routeclient.NewForConfig(config)
	must(t, err)
	ofRoutes := routeinformers.NewSharedInformerFactory(routes, 0)
	started(ofRoutes.Start, ofRoutes.Shutdown)
	add("route", "routes", ofRoutes.Route().V1().Routes().Informer())
	images, err := imageclient.NewForConfig(config)
	must(t, err)
	ofImages := imageinformers.NewSharedInformerFactory(images, 0)
	started(ofImages.Start, ofImages.Shutdown)
	add("image", "imagestreams", ofImages.Image().V1().ImageStreams().Informer())
	projects, err := projectclient.NewForConfig(config)
	must(t, err)
	ofProjects := projectinformers.NewSharedInformerFactory(projects, 0)
	started(ofProjects.Start, ofProjects.Shutdown)
	add("project", "projects", ofProjects.Project().V1().Projects().Informer())
	users, err := userclient.NewForConfig(config)
	must(t, err)
	ofUsers := userinformers.NewSharedInformerFactory(users, 0)
	started(ofUsers.Start, ofUsers.Shutdown)
	add("user", "users", ofUsers.User().V1().Users().Informer())
	add("user", "groups", ofUsers.User().V1().Groups().Informer())
	oauth, err := oauthclient.NewForConfig(config)
	must(t, err)
	ofOAuth := oauthinformers.NewSharedInformerFactory(oauth, 0)
	started(ofOAuth.Start, ofOAuth.Shutdown)
	add("oauth", "oauthclients", ofOAuth.Oauth().V1().OAuthClients().Informer())
	add("oauth", "oauthaccesstokens", ofOAuth.Oauth().V1().OAuthAccessTokens().Informer())
}

// differs says where a cache is not what a fresh list has.
func (o *observer) differs(t *testing.T) string {
	for _, kind := range o.kinds {
		list, err := o.live.Resource(kind.resource).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		versions := map[string]string{}
		for _, item := range list.Items {
			versions[item.GetNamespace()+"/"+item.GetName()] = item.GetResourceVersion()
		}
		cached := kind.informer.GetStore().List()
		for _, object := range cached {
			metadata := object.(metav1.Object)
			key := metadata.GetNamespace() + "/" + metadata.GetName()
			if live := versions[key]; live != metadata.GetResourceVersion() {
				return fmt.Sprintf("%s of %s: %s is %q in the cache and %q on the server", kind.resource.Resource, o.name, key, metadata.GetResourceVersion(), live)
			}
		}
		if len(cached) != len(versions) {
			return fmt.Sprintf("%s of %s: %d in the cache, %d on the server", kind.resource.Resource, o.name, len(cached), len(versions))
		}
	}
	return ""
}

// listing is an answered list: what is written before it is whole may be passed over by it. A list that breaks off never is.
type listing struct{ began, whole time.Time }

func (r *requests) whole(list *listing) {
	r.Lock()
	defer r.Unlock()
	if list.whole.IsZero() {
		list.whole = time.Now()
	}
}

// endOfInitialEvents is in the bookmark that ends the list part of a watch, in every encoding.
var endOfInitialEvents = []byte(metav1.InitialEventsAnnotationKey)

// listingBody sees when a list is whole: at its end, or at that bookmark.
type listingBody struct {
	io.ReadCloser
	streamed bool
	tail     []byte
	whole    func()
}

func (b *listingBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if !b.streamed {
		if errors.Is(err, io.EOF) {
			b.whole()
		}
		return n, err
	}
	b.tail = append(b.tail, into[:n]...)
	if bytes.Contains(b.tail, endOfInitialEvents) {
		b.whole()
	}
	b.tail = append([]byte(nil), b.tail[max(0, len(b.tail)-len(endOfInitialEvents)):]...)
	return n, err
}

// relisted tells whether an informer listed a path, whole, within that time or on both sides of its beginning.
func (r *requests) relisted(path string, from, to time.Time) bool {
	r.Lock()
	defer r.Unlock()
	for _, list := range r.lists[path] {
		if list.whole.After(from) && list.began.Before(to) {
			return true
		}
	}
	return false
}
