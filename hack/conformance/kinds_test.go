package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

var (
	streamResource    = schema.GroupVersionResource{Group: "image.openshift.io", Version: "v1", Resource: "imagestreams"}
	imageResource     = schema.GroupVersionResource{Group: "image.openshift.io", Version: "v1", Resource: "images"}
	userResource      = schema.GroupVersionResource{Group: "user.openshift.io", Version: "v1", Resource: "users"}
	groupResource     = schema.GroupVersionResource{Group: "user.openshift.io", Version: "v1", Resource: "groups"}
	namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMapResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// kind is one of ours, as the tests see it that are the same for each.
type kind struct {
	resource schema.GroupVersionResource
	name     string
	// namespaced ones are made in a project.
	namespaced bool
	// written is what has to be written to change it, when that is something else.
	written     schema.GroupVersionResource
	writtenKind string
}

// stored are the kinds that our server stores.
func stored() []kind {
	return []kind{
		{resource: routeResource, name: "Route", namespaced: true},
		{resource: streamResource, name: "ImageStream", namespaced: true},
		{resource: imageResource, name: "Image"},
		{resource: userResource, name: "User"},
		{resource: groupResource, name: "Group"},
	}
}

// shown are the stored kinds and Projects, which are Namespaces.
func shown() []kind {
	return append(stored(), kind{resource: projectResource, name: "Project", written: namespaceResource, writtenKind: "Namespace"})
}

// new is an object of the kind that the server takes.
func (k kind) new(name string, labels map[string]string) *unstructured.Unstructured {
	version, kind := k.resource.GroupVersion().String(), k.name
	if k.writtenKind != "" {
		version, kind = k.written.GroupVersion().String(), k.writtenKind
	}
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion(version)
	object.SetKind(kind)
	object.SetName(name)
	object.SetLabels(labels)
	switch kind {
	case "Route":
		object.Object["spec"] = map[string]any{"to": map[string]any{"kind": "Service", "name": "web"}}
	case "Image":
		object.Object["dockerImageReference"] = "quay.io/lab/" + name
	}
	return object
}

// world is where objects of a kind are: read by one client and written by another.
type world struct {
	kind
	reader, writer dynamic.ResourceInterface
}

// worldOf gives an administrator the kind, in a project of its own where it is namespaced.
func worldOf(t *testing.T, k kind) world {
	t.Helper()
	client := dynamicClient(t)
	written := k.resource
	if k.writtenKind != "" {
		written = k.written
	}
	if !k.namespaced {
		return world{k, client.Resource(k.resource), client.Resource(written)}
	}
	project := newTenant(t).project
	return world{k, client.Resource(k.resource).Namespace(project), client.Resource(written).Namespace(project)}
}

// create makes an object, which goes away with the test.
func (w world) create(t *testing.T, name string, labels map[string]string) *unstructured.Unstructured {
	t.Helper()
	made, err := w.writer.Create(t.Context(), w.new(name, labels), metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		err := w.writer.Delete(context.Background(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete %s %s: %v", w.name, name, err)
		}
	})
	return made
}

// merge changes an object by a merge patch.
func (w world) merge(t *testing.T, name, patch string) *unstructured.Unstructured {
	t.Helper()
	changed, err := w.writer.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
	return changed
}

// eachKind runs a test for each of the kinds.
func eachKind(t *testing.T, kinds []kind, test func(*testing.T, world)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { test(t, worldOf(t, k)) })
	}
}

func dynamicClient(t *testing.T) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(administrator(t))
	must(t, err)
	return client
}

// anyPath is a client for requests that typed clients do not make.
func anyPath(t *testing.T, config *rest.Config) rest.Interface {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(inJSON(config))
	must(t, err)
	return client.RESTClient()
}

// ourServer is the configuration by which the administrator speaks to our server itself. Where it is and how to know
// it is what kube-apiserver goes by: the APIService.
func ourServer(t *testing.T) *rest.Config {
	t.Helper()
	raw, err := anyPath(t, administrator(t)).Get().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices/v1.route.openshift.io").DoRaw(t.Context())
	must(t, err)
	var service struct {
		Spec struct {
			CABundle []byte
			Service  struct {
				Name, Namespace string
				Port            int
			}
		}
	}
	must(t, json.Unmarshal(raw, &service))
	config := administrator(t)
	config.Host = fmt.Sprintf("https://127.0.0.1:%d", service.Spec.Service.Port)
	config.CAData, config.CAFile = service.Spec.CABundle, ""
	config.ServerName = service.Spec.Service.Name + "." + service.Spec.Service.Namespace + ".svc"
	return config
}
