package conformance

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	projectv1 "github.com/openshift/api/project/v1"
	routev1 "github.com/openshift/api/route/v1"
	userv1 "github.com/openshift/api/user/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned"
	imageinformers "github.com/openshift/client-go/image/informers/externalversions"
	projectclient "github.com/openshift/client-go/project/clientset/versioned"
	projectinformers "github.com/openshift/client-go/project/informers/externalversions"
	routeclient "github.com/openshift/client-go/route/clientset/versioned"
	routeinformers "github.com/openshift/client-go/route/informers/externalversions"
	userclient "github.com/openshift/client-go/user/clientset/versioned"
	userinformers "github.com/openshift/client-go/user/informers/externalversions"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

const protobufType = "application/vnd.kubernetes.protobuf"

// protobufOnly sees that what comes back is in protobuf.
type protobufOnly struct {
	t    *testing.T
	next http.RoundTripper
}

func (p protobufOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(request)
	if err == nil && !strings.HasPrefix(response.Header.Get("Content-Type"), protobufType) {
		p.t.Errorf("%s %s answered %d in %q", request.Method, request.URL, response.StatusCode, response.Header.Get("Content-Type"))
	}
	return response, err
}

// inProtobuf is the same configuration, for clients that read and write protobuf.
func inProtobuf(t *testing.T, config *rest.Config) *rest.Config {
	t.Helper()
	config = rest.CopyConfig(config)
	config.AcceptContentTypes = protobufType + ",application/json"
	config.ContentType = protobufType
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return protobufOnly{t, next} })
	return config
}

// inJSON is the same configuration, for clients that read and write JSON.
func inJSON(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.AcceptContentTypes, config.ContentType = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	return config
}

// same compares what two clients got; an empty list and none are one in protobuf.
func same[T any](t *testing.T, what string, protobuf, json T) {
	t.Helper()
	if !equality.Semantic.DeepEqual(protobuf, json) {
		t.Errorf("%s: protobuf and JSON differ\n%+v\n%+v", what, protobuf, json)
	}
}

// both gets something by two clients and compares it.
func both[C, T any](t *testing.T, what string, protobuf, json C, get func(C) (T, error)) T {
	t.Helper()
	inProtobuf, err := get(protobuf)
	must(t, err)
	inJSON, err := get(json)
	must(t, err)
	same(t, what, inProtobuf, inJSON)
	return inProtobuf
}

func fullRoute(name string) *routev1.Route {
	route := newRoute(name)
	route.Labels, route.Annotations = map[string]string{"b": "2", "a": ""}, map[string]string{"note": "größe"}
	route.Spec.To.Weight = ptr.To[int32](7)
	route.Spec.AlternateBackends = []routev1.RouteTargetReference{{Kind: "Service", Name: "other", Weight: ptr.To[int32](0)}}
	route.Spec.Port = &routev1.RoutePort{TargetPort: intstr.FromString("http")}
	route.Spec.TLS = &routev1.TLSConfig{Termination: routev1.TLSTerminationEdge}
	route.Spec.HTTPHeaders = &routev1.RouteHTTPHeaders{Actions: routev1.RouteHTTPHeaderActions{
		Response: []routev1.RouteHTTPHeader{{Name: "x", Action: routev1.RouteHTTPHeaderActionUnion{
			Type: routev1.Set, Set: &routev1.RouteSetHTTPHeader{Value: "1"},
		}}},
	}}
	return route
}

func TestProtobufRoutes(t *testing.T) {
	u := newTenant(t)
	client, err := routeclient.NewForConfig(inProtobuf(t, u.config))
	must(t, err)
	jsonClient, err := routeclient.NewForConfig(inJSON(u.config))
	must(t, err)
	routes, inJSON := client.RouteV1().Routes(u.project), jsonClient.RouteV1().Routes(u.project)

	made, err := routes.Create(t.Context(), fullRoute("full"), metav1.CreateOptions{})
	must(t, err)
	if !reflect.DeepEqual(made.Spec.HTTPHeaders, fullRoute("").Spec.HTTPHeaders) || !admitted(made) || made.CreationTimestamp.IsZero() {
		t.Fatalf("created: %+v", made)
	}
	type one = interface {
		Get(context.Context, string, metav1.GetOptions) (*routev1.Route, error)
		List(context.Context, metav1.ListOptions) (*routev1.RouteList, error)
	}
	get := func(client one) (*routev1.Route, error) { return client.Get(t.Context(), "full", metav1.GetOptions{}) }
	list := func(client one) (*routev1.RouteList, error) {
		return client.List(t.Context(), metav1.ListOptions{Limit: 1})
	}
	same(t, "the answer to the create", made, both[one](t, "a Route", routes, inJSON, get))
	list2 := both[one](t, "Routes", routes, inJSON, list)

	watcher, err := routes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list2.ResourceVersion})
	must(t, err)
	defer watcher.Stop()
	made.Spec.Port.TargetPort = intstr.FromInt32(8080)
	updated, err := routes.Update(t.Context(), made, metav1.UpdateOptions{})
	must(t, err)
	event := next(t, watcher)
	same(t, "the event", event.Object.(*routev1.Route), updated)
	_, err = routes.Update(t.Context(), made, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) {
		t.Fatalf("an old version: %v", err)
	}
	patched, err := routes.Patch(t.Context(), "full", types.MergePatchType, []byte(`{"spec":{"path":"/p"}}`), metav1.PatchOptions{})
	must(t, err)
	if patched.Spec.Path != "/p" || next(t, watcher).Type != watch.Modified {
		t.Fatalf("patched: %+v", patched)
	}
	updated.Spec.To.Name = ""
	updated.ResourceVersion = patched.ResourceVersion
	// The spec stays; but who wrote it is noted, as by every server without reset fields.
	if _, err = routes.UpdateStatus(t.Context(), updated, metav1.UpdateOptions{}); err != nil && !apierrors.IsForbidden(err) {
		t.Fatalf("status: %v", err)
	} else if err == nil && next(t, watcher).Type != watch.Modified {
		t.Fatal("the status update is not seen")
	}
	if _, err = routes.Create(t.Context(), &routev1.Route{ObjectMeta: metav1.ObjectMeta{Name: "bad"}}, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Fatalf("an invalid Route: %v", err)
	}
	wrong := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID("wrong"))}}
	if err := routes.Delete(t.Context(), "full", wrong); !apierrors.IsConflict(err) {
		t.Fatalf("a wrong uid: %v", err)
	}
	must(t, routes.Delete(t.Context(), "full", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
	if event := next(t, watcher); event.Type != watch.Deleted {
		t.Fatalf("the last event: %+v", event)
	}
	if _, err := routes.Get(t.Context(), "full", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("after the delete: %v", err)
	}
	_, err = routes.Create(t.Context(), fullRoute("last"), metav1.CreateOptions{})
	must(t, err)
	must(t, routes.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "b=2"}))
}

func TestProtobufImages(t *testing.T) {
	plain, namespace := images(t)
	client, err := imageclient.NewForConfig(inProtobuf(t, administrator(t)))
	must(t, err)
	jsonClient, err := imageclient.NewForConfig(inJSON(administrator(t)))
	must(t, err)
	protobuf, json := client.ImageV1(), jsonClient.ImageV1()
	streams := protobuf.ImageStreams(namespace)
	made, err := streams.Create(t.Context(), newStream("app", dockerTag("1", "quay.io/lab/app:1"), followingTag("alias", "1")), metav1.CreateOptions{})
	must(t, err)
	got, err := json.ImageStreams(namespace).Get(t.Context(), "app", metav1.GetOptions{})
	must(t, err)
	same(t, "an ImageStream", made, got)
	image := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	push(t, client, namespace, "app", "pushed", image)

	ctx, none := t.Context(), metav1.GetOptions{}
	check := func(what string, get func(imageclient.Interface) (runtime.Object, error)) {
		t.Helper()
		both[imageclient.Interface](t, what, client, jsonClient, get)
	}
	check("an Image", func(c imageclient.Interface) (runtime.Object, error) {
		return c.ImageV1().Images().Get(ctx, image, none)
	})
	check("Images", func(c imageclient.Interface) (runtime.Object, error) {
		return c.ImageV1().Images().List(ctx, metav1.ListOptions{Limit: 3})
	})
	check("ImageStreams", func(c imageclient.Interface) (runtime.Object, error) {
		return c.ImageV1().ImageStreams(namespace).List(ctx, metav1.ListOptions{})
	})
	check("layers", func(c imageclient.Interface) (runtime.Object, error) {
		return c.ImageV1().ImageStreams(namespace).Layers(ctx, "app", none)
	})
	// Their version goes on with every Secret of the cluster.
	both[imageclient.Interface](t, "secrets", client, jsonClient, func(c imageclient.Interface) ([]corev1.Secret, error) {
		list, err := c.ImageV1().ImageStreams(namespace).Secrets(ctx, "app", none)
		return list.Items, err
	})
	check("an ImageStreamTag", func(c imageclient.Interface) (runtime.Object, error) {
		return c.ImageV1().ImageStreamTags(namespace).Get(ctx, "app:pushed", none)
	})
	check("ImageStreamTags", func(c imageclient.Interface) (runtime.Object, error) {
		return c.ImageV1().ImageStreamTags(namespace).List(ctx, metav1.ListOptions{})
	})
	check("an ImageTag", func(c imageclient.Interface) (runtime.Object, error) {
		return c.ImageV1().ImageTags(namespace).Get(ctx, "app:1", none)
	})
	check("ImageTags", func(c imageclient.Interface) (runtime.Object, error) {
		return c.ImageV1().ImageTags(namespace).List(ctx, metav1.ListOptions{})
	})
	check("an ImageStreamImage", func(c imageclient.Interface) (runtime.Object, error) {
		return c.ImageV1().ImageStreamImages(namespace).Get(ctx, "app@"+image, none)
	})

	tag, err := protobuf.ImageStreamTags(namespace).Update(ctx, newStreamTag("app", "2", "quay.io/lab/app:2"), metav1.UpdateOptions{})
	must(t, err)
	if tag.Image.DockerImageReference != "quay.io/lab/app:2" {
		t.Fatalf("a tag: %+v", tag)
	}
	signature := &imagev1.ImageSignature{ObjectMeta: metav1.ObjectMeta{Name: image + "@one"}, Type: "AtomicImageV1", Content: []byte{0, 255, 1}}
	_, err = protobuf.ImageSignatures().Create(ctx, signature, metav1.CreateOptions{})
	must(t, err)
	signed, err := json.Images().Get(ctx, image, none)
	must(t, err)
	if len(signed.Signatures) != 1 || string(signed.Signatures[0].Content) != "\x00\xff\x01" {
		t.Fatalf("signatures: %+v", signed.Signatures)
	}
	// Not reachable: the answer has the failure in its status.
	request := &imagev1.ImageStreamImport{
		ObjectMeta: metav1.ObjectMeta{Name: "app"},
		Spec: imagev1.ImageStreamImportSpec{Images: []imagev1.ImageImportSpec{{
			From: corev1.ObjectReference{Kind: "DockerImage", Name: "127.0.0.1:1/a/b:c"}, To: &corev1.LocalObjectReference{Name: "c"},
		}}},
	}
	answer, err := protobuf.ImageStreamImports(namespace).Create(ctx, request, metav1.CreateOptions{})
	must(t, err)
	if len(answer.Status.Images) != 1 || answer.Status.Images[0].Status.Status != metav1.StatusFailure {
		t.Fatalf("an import: %+v", answer.Status)
	}
	must(t, plain.ImageV1().Images().Delete(ctx, image, metav1.DeleteOptions{}))
}

func TestProtobufUsers(t *testing.T) {
	client, err := userclient.NewForConfig(inProtobuf(t, administrator(t)))
	must(t, err)
	jsonClient, err := userclient.NewForConfig(inJSON(administrator(t)))
	must(t, err)
	ctx := t.Context()
	name, provider := unique("pat"), unique("idp")
	newUser(t, client, name)
	identity := &userv1.Identity{
		ProviderName: provider, ProviderUserName: "p", Extra: map[string]string{"email": "p@x"},
	}
	_, err = client.UserV1().Identities().Create(ctx, identity, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		must(t, client.UserV1().Identities().Delete(context.Background(), provider+":p", metav1.DeleteOptions{}))
	})
	mapping := &userv1.UserIdentityMapping{
		User: corev1.ObjectReference{Name: name}, Identity: corev1.ObjectReference{Name: provider + ":p"},
	}
	_, err = client.UserV1().UserIdentityMappings().Create(ctx, mapping, metav1.CreateOptions{})
	must(t, err)
	for _, users := range []userv1.OptionalNames{nil, {}, {name, "b"}} {
		group := &userv1.Group{ObjectMeta: metav1.ObjectMeta{Name: unique("group")}, Users: users}
		made, err := client.UserV1().Groups().Create(ctx, group, metav1.CreateOptions{})
		must(t, err)
		if !reflect.DeepEqual(made.Users, users) {
			t.Errorf("users of a group: %#v, not %#v", made.Users, users)
		}
		defer func() {
			must(t, client.UserV1().Groups().Delete(context.Background(), group.Name, metav1.DeleteOptions{}))
		}()
	}
	check := func(what string, get func(userclient.Interface) (runtime.Object, error)) {
		t.Helper()
		both[userclient.Interface](t, what, client, jsonClient, get)
	}
	all := metav1.ListOptions{}
	check("Users", func(c userclient.Interface) (runtime.Object, error) { return c.UserV1().Users().List(ctx, all) })
	check("Groups", func(c userclient.Interface) (runtime.Object, error) { return c.UserV1().Groups().List(ctx, all) })
	check("Identities", func(c userclient.Interface) (runtime.Object, error) { return c.UserV1().Identities().List(ctx, all) })
	check("the caller", func(c userclient.Interface) (runtime.Object, error) {
		return c.UserV1().Users().Get(ctx, "~", metav1.GetOptions{})
	})
	check("a mapping", func(c userclient.Interface) (runtime.Object, error) {
		return c.UserV1().UserIdentityMappings().Get(ctx, provider+":p", metav1.GetOptions{})
	})
}

func TestProtobufProjects(t *testing.T) {
	config := user(t, unique("pb"))
	client, err := projectclient.NewForConfig(inProtobuf(t, config))
	must(t, err)
	jsonClient, err := projectclient.NewForConfig(inJSON(config))
	must(t, err)
	request := &projectv1.ProjectRequest{ObjectMeta: metav1.ObjectMeta{Name: unique("protobuf")}, DisplayName: "D", Description: "d"}
	made, err := client.ProjectV1().ProjectRequests().Create(t.Context(), request, metav1.CreateOptions{})
	must(t, err)
	defer func() {
		must(t, client.ProjectV1().Projects().Delete(context.Background(), made.Name, metav1.DeleteOptions{}))
	}()
	both[projectclient.Interface](t, "Projects", client, jsonClient, func(c projectclient.Interface) ([]projectv1.Project, error) {
		// The list's version goes on with every namespace of the cluster.
		list, err := c.ProjectV1().Projects().List(t.Context(), metav1.ListOptions{})
		return list.Items, err
	})
	_, err = client.ProjectV1().Projects().Get(t.Context(), "kube-system", metav1.GetOptions{})
	if !apierrors.IsForbidden(err) {
		t.Fatalf("a project of others: %v", err)
	}
}

// With KUBE_FEATURE_WatchListClient on or off, as the suite is run.
func TestProtobufInformers(t *testing.T) {
	u := newTenant(t)
	config := inProtobuf(t, administrator(t))
	routes, err := routeclient.NewForConfig(config)
	must(t, err)
	projects, err := projectclient.NewForConfig(config)
	must(t, err)
	images, err := imageclient.NewForConfig(config)
	must(t, err)
	users, err := userclient.NewForConfig(config)
	must(t, err)
	name := unique("informed")
	newUser(t, users, name)
	_, err = routes.RouteV1().Routes(u.project).Create(t.Context(), fullRoute("before"), metav1.CreateOptions{})
	must(t, err)

	ofRoutes := routeinformers.NewSharedInformerFactory(routes, 0)
	ofProjects := projectinformers.NewSharedInformerFactory(projects, 0)
	ofImages := imageinformers.NewSharedInformerFactory(images, 0)
	ofUsers := userinformers.NewSharedInformerFactory(users, 0)
	informers := []cache.SharedIndexInformer{
		ofRoutes.Route().V1().Routes().Informer(), ofProjects.Project().V1().Projects().Informer(),
		ofImages.Image().V1().ImageStreams().Informer(), ofImages.Image().V1().Images().Informer(),
		ofUsers.User().V1().Users().Informer(), ofUsers.User().V1().Groups().Informer(), ofUsers.User().V1().Identities().Informer(),
	}
	ctx, stop := context.WithCancel(t.Context())
	type factory interface {
		Start(<-chan struct{})
		Shutdown()
	}
	factories := []factory{ofRoutes, ofProjects, ofImages, ofUsers}
	var synced []cache.InformerSynced
	for _, informer := range informers {
		synced = append(synced, informer.HasSynced)
	}
	for _, factory := range factories {
		factory.Start(ctx.Done())
	}
	defer func() {
		stop()
		for _, factory := range factories {
			factory.Shutdown()
		}
	}()
	waitForSync(t, synced...)
	made, err := routes.RouteV1().Routes(u.project).Create(t.Context(), fullRoute("after"), metav1.CreateOptions{})
	must(t, err)
	_, err = images.ImageV1().ImageStreams(u.project).Create(t.Context(), newStream("after"), metav1.CreateOptions{})
	must(t, err)
	lister := ofRoutes.Route().V1().Routes().Lister().Routes(u.project)
	eventually(t, "the informers see all", func() string {
		after, err := lister.Get("after")
		if err != nil {
			return err.Error()
		}
		if !reflect.DeepEqual(after, made) {
			return fmt.Sprintf("%+v is not %+v", after, made)
		}
		if _, err := lister.Get("before"); err != nil {
			return err.Error()
		}
		if _, err := ofProjects.Project().V1().Projects().Lister().Get(u.project); err != nil {
			return err.Error()
		}
		if _, err := ofImages.Image().V1().ImageStreams().Lister().ImageStreams(u.project).Get("after"); err != nil {
			return err.Error()
		}
		if _, err := ofUsers.User().V1().Users().Lister().Get(name); err != nil {
			return err.Error()
		}
		return ""
	})
}
