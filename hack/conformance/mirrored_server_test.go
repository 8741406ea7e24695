package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// What Kubernetes' own tests of the server and of the aggregator expect of kube-apiserver and of the sample server,
// expected of ours.

// get answers a request that no client library has touched.
func get(t *testing.T, config *rest.Config, path string) (int, string) {
	t.Helper()
	transport, err := rest.TransportFor(config)
	must(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	must(t, err)
	response, err := transport.RoundTrip(request)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, string(body)
}

// A timeout in the URL has to be one; what is longer than the server's, or none, is the server's.
func TestRequestTimeouts(t *testing.T) {
	for _, config := range []*rest.Config{administrator(t), ourServer(t)} {
		for _, path := range []string{"/version", "/apis/route.openshift.io/v1/routes"} {
			code, body := get(t, config, path+"?timeout=invalid")
			if code != http.StatusBadRequest || !strings.Contains(body, "invalid timeout specified in the request URL") {
				t.Errorf("%s of %s with a timeout that is none: %d %s", path, config.Host, code, body)
			}
			for _, timeout := range []string{"3m", "0s"} {
				if code, body := get(t, config, path+"?timeout="+timeout); code != http.StatusOK {
					t.Errorf("%s of %s in %s: %d %s", path, config.Host, timeout, code, body)
				}
			}
		}
	}
}

// Each probe names its checks, and they hold.
func TestProbes(t *testing.T) {
	for probe, checks := range map[string][]string{
		"healthz": {"ping", "storage"},
		"livez":   {"ping", "storage"},
		"readyz": {
			"ping", "storage", "informer-sync", "namespace-lifecycle-synced", "project-visibility-synced", "shutdown",
		},
	} {
		code, body := get(t, ourServer(t), "/"+probe+"?verbose=1")
		lines := map[string]bool{}
		for _, line := range strings.Split(body, "\n") {
			lines[line] = true
		}
		for _, check := range checks {
			if !lines["[+]"+check+" ok"] {
				t.Errorf("%s has no %s:\n%s", probe, check, body)
			}
		}
		if code != http.StatusOK || !lines[probe+" check passed"] {
			t.Errorf("%s: %d %s", probe, code, body)
		}
	}
}

// What is behind the aggregator is made, listed and deleted through it, by plain requests and by the dynamic client,
// which finds it by discovery.
func TestThroughTheAggregator(t *testing.T) {
	u := newTenant(t)
	path := fmt.Sprintf("/apis/route.openshift.io/v1/namespaces/%s/routes", u.project)
	client := anyPath(t, administrator(t))
	list := func() int {
		t.Helper()
		raw, err := client.Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(t.Context())
		must(t, err)
		var list unstructured.UnstructuredList
		must(t, list.UnmarshalJSON(raw))
		return len(list.Items)
	}
	body, err := json.Marshal(stored()[0].new("web", map[string]string{"made": "raw"}).Object)
	must(t, err)
	code := 0
	answer := client.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(body).Do(t.Context()).StatusCode(&code)
	raw, err := answer.Raw()
	must(t, err)
	var made unstructured.Unstructured
	must(t, made.UnmarshalJSON(raw))
	if code != http.StatusCreated || made.GetName() != "web" || made.GetKind() != "Route" || list() != 1 {
		t.Fatalf("%d %s", code, raw)
	}
	must(t, client.Delete().AbsPath(path, "web").Do(t.Context()).Error())
	if left := list(); left != 0 {
		t.Fatalf("%d are left", left)
	}

	names, err := discovery.NewDiscoveryClientForConfig(administrator(t))
	must(t, err)
	lists, err := discovery.ServerPreferredNamespacedResources(names)
	must(t, err)
	found, err := discovery.GroupVersionResources(lists)
	must(t, err)
	if _, ok := found[routeResource]; !ok {
		t.Fatalf("routes are not among %d preferred resources", len(found))
	}
	w := world{stored()[0], dynamicClient(t).Resource(routeResource).Namespace(u.project), dynamicClient(t).Resource(routeResource).Namespace(u.project)}
	w.create(t, "dynamic", nil)
	if count := list(); count != 1 {
		t.Fatalf("%d", count)
	}
	w.delete(t, "dynamic")
	if left := list(); left != 0 {
		t.Fatalf("%d are left", left)
	}
}

// Our APIServices are available, and what somebody writes to one does not make it less so.
func TestAPIServices(t *testing.T) {
	services := dynamicClient(t).Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	available := func(service *unstructured.Unstructured) string {
		conditions, _, err := unstructured.NestedSlice(service.Object, "status", "conditions")
		must(t, err)
		for _, condition := range conditions {
			if fields := condition.(map[string]any); fields["type"] == "Available" {
				return fmt.Sprint(fields["status"], " ", fields["message"])
			}
		}
		return ""
	}
	list, err := services.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	ours := 0
	for _, service := range list.Items {
		if group, _, _ := unstructured.NestedString(service.Object, "spec", "group"); served()[group] != nil {
			ours++
			if got := available(&service); got != "True all checks passed" {
				t.Errorf("%s: %s", service.GetName(), got)
			}
		}
	}
	if ours != len(served()) {
		t.Fatalf("%d APIServices are ours", ours)
	}

	const name = "v1.user.openshift.io"
	patch := func(text string, subresource ...string) *unstructured.Unstructured {
		t.Helper()
		changed, err := services.Patch(t.Context(), name, types.MergePatchType, []byte(text), metav1.PatchOptions{}, subresource...)
		must(t, err)
		return changed
	}
	before, err := services.Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	priority, _, err := unstructured.NestedInt64(before.Object, "spec", "versionPriority")
	must(t, err)
	t.Cleanup(func() { restore(t, services, name, before) })
	changed := patch(fmt.Sprintf(`{"metadata":{"labels":{"test":"patched"}},"spec":{"versionPriority":%d}}`, priority+1))
	expectFields(t, changed, map[string]any{"metadata.labels.test": "patched", "spec.versionPriority": priority + 1})
	eventually(t, "it is available all the same", func() string {
		service, err := services.Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		if got := available(service); got != "True all checks passed" {
			return got
		}
		if _, err := administratorOfUsers(t).UserV1().Users().List(t.Context(), metav1.ListOptions{Limit: 1}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// restore gives an APIService the labels and the priority that it had.
func restore(t *testing.T, services dynamic.NamespaceableResourceInterface, name string, before *unstructured.Unstructured) {
	priority, _, err := unstructured.NestedInt64(before.Object, "spec", "versionPriority")
	must(t, err)
	text := fmt.Sprintf(`{"metadata":{"labels":{"test":null}},"spec":{"versionPriority":%d}}`, priority)
	_, err = services.Patch(context.Background(), name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
	must(t, err)
}
