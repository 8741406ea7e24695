package conformance

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/kube-openapi/pkg/spec3"
)

// What Kubernetes' own tests of discovery and of OpenAPI expect of built-in and custom resources, expected of ours.

// served has the resources of each of our groups, all of version v1.
func served() map[string][]string {
	return map[string][]string{
		"route.openshift.io":   {"routes"},
		"project.openshift.io": {"projects", "projectrequests"},
		"user.openshift.io":    {"users", "groups", "identities", "useridentitymappings"},
		"oauth.openshift.io": {
			"oauthclients", "oauthaccesstokens", "oauthauthorizetokens", "oauthclientauthorizations", "useroauthaccesstokens",
			"tokenreviews",
		},
		"image.openshift.io": {
			"images", "imagesignatures", "imagestreams", "imagestreamtags", "imagetags", "imagestreamimages", "imagestreamimports",
			"imagestreammappings",
		},
	}
}

// Every group has one version, which it prefers, and a list of its resources.
func TestGroupsAndTheirResources(t *testing.T) {
	client := anyPath(t, administrator(t))
	read := func(path string, into any) {
		t.Helper()
		raw, err := client.Get().AbsPath(path).DoRaw(t.Context())
		must(t, err)
		must(t, json.Unmarshal(raw, into))
	}
	var all metav1.APIGroupList
	read("/apis", &all)
	listed := map[string]metav1.APIGroup{}
	for _, group := range all.Groups {
		listed[group.Name] = group
	}
	names, err := discovery.NewDiscoveryClientForConfig(administrator(t))
	must(t, err)
	enabled := func(group, resource string) bool {
		t.Helper()
		ok, err := discovery.IsResourceEnabled(names, schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource})
		must(t, err)
		return ok
	}
	for name, resources := range served() {
		var group metav1.APIGroup
		read("/apis/"+name, &group)
		want := metav1.GroupVersionForDiscovery{GroupVersion: name + "/v1", Version: "v1"}
		if group.PreferredVersion != want || !reflect.DeepEqual(group.Versions, []metav1.GroupVersionForDiscovery{want}) {
			t.Errorf("%s: %+v", name, group)
		}
		if !reflect.DeepEqual(listed[name].Versions, group.Versions) || listed[name].PreferredVersion != want {
			t.Errorf("%s in the list: %+v", name, listed[name])
		}
		var list metav1.APIResourceList
		read("/apis/"+name+"/v1", &list)
		found := map[string]bool{}
		for _, resource := range list.APIResources {
			found[resource.Name] = true
		}
		for _, resource := range resources {
			if !found[resource] || !enabled(name, resource) {
				t.Errorf("%s has no %s: %v", name, resource, found)
			}
		}
		if list.GroupVersion != want.GroupVersion || enabled(name, "nosuch") {
			t.Errorf("%s: %+v", name, list)
		}
	}
	if enabled("nosuch.openshift.io", "routes") {
		t.Error("a group that is not there")
	}
}

// What is stored says how, by the hash that kube-apiserver makes of it.
func TestStorageVersionHashes(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(administrator(t))
	must(t, err)
	for _, k := range stored() {
		list, err := client.ServerResourcesForGroupVersion(k.resource.GroupVersion().String())
		must(t, err)
		sum := sha256.Sum256([]byte(k.resource.Group + "/" + k.resource.Version + "/" + k.name))
		want := base64.StdEncoding.EncodeToString(sum[:8])
		for _, resource := range list.APIResources {
			if resource.Name == k.resource.Resource && resource.StorageVersionHash != want {
				t.Errorf("%s: %q, not %q", resource.Name, resource.StorageVersionHash, want)
			}
		}
	}
}

// The document that has everything has our groups, from kube-apiserver and from our server, raw and by the client.
func TestAggregatedDiscovery(t *testing.T) {
	for _, config := range []struct {
		what  string
		ofAll bool
	}{{"kube-apiserver", true}, {"our server", false}} {
		client := anyPath(t, administrator(t))
		if !config.ofAll {
			client = anyPath(t, ourServer(t))
		}
		accept := "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
		raw, err := client.Get().AbsPath("/apis").SetHeader("Accept", accept).DoRaw(t.Context())
		must(t, err)
		var document apidiscoveryv2.APIGroupDiscoveryList
		must(t, json.Unmarshal(raw, &document))
		found := map[schema.GroupVersionResource]apidiscoveryv2.APIResourceDiscovery{}
		for _, group := range document.Items {
			for _, version := range group.Versions {
				if version.Freshness == apidiscoveryv2.DiscoveryFreshnessStale {
					t.Errorf("%s: %s is stale", config.what, group.Name)
				}
				for _, resource := range version.Resources {
					found[schema.GroupVersionResource{Group: group.Name, Version: version.Version, Resource: resource.Resource}] = resource
				}
			}
		}
		for group, resources := range served() {
			for _, name := range resources {
				resource, ok := found[schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}]
				if !ok || len(resource.Verbs) == 0 || resource.ResponseKind == nil || resource.ResponseKind.Kind == "" {
					t.Errorf("%s: %s of %s: %+v", config.what, name, group, resource)
				}
			}
		}
	}
	client, err := discovery.NewDiscoveryClientForConfig(administrator(t))
	must(t, err)
	groups, resources, failed, err := client.GroupsAndMaybeResources()
	must(t, err)
	versions := map[string]bool{}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			versions[version.GroupVersion] = true
		}
	}
	for group := range served() {
		version := schema.GroupVersion{Group: group, Version: "v1"}
		if !versions[version.String()] || resources[version] == nil || failed[version] != nil {
			t.Errorf("%s: %v", version, failed[version])
		}
	}
}

// The OpenAPI document of each of our groups is there, is whole, and is the same when it was read and written again.
func TestOpenAPIV3(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(administrator(t))
	must(t, err)
	root := openapi3.NewRoot(client.OpenAPIV3())
	versions, err := root.GroupVersions()
	must(t, err)
	there := map[schema.GroupVersion]bool{}
	for _, version := range versions {
		there[version] = true
	}
	for group, resources := range served() {
		version := schema.GroupVersion{Group: group, Version: "v1"}
		if !there[version] {
			t.Fatalf("%s is not among %v", version, versions)
		}
		once, err := root.GVSpec(version)
		must(t, err)
		raw, err := json.Marshal(once)
		must(t, err)
		var again spec3.OpenAPI
		must(t, json.Unmarshal(raw, &again))
		if !reflect.DeepEqual(*once, again) {
			t.Errorf("%s is another when read again", version)
		}
		for _, resource := range resources {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(once.Paths.Paths)), func(path string) bool {
				return strings.Contains(path+"/", "/"+resource+"/")
			}) {
				t.Errorf("%s has no path of %s", version, resource)
			}
		}
	}
	_, err = root.GVSpec(schema.GroupVersion{Group: "nosuch.openshift.io", Version: "v1"})
	if _, ok := err.(*openapi3.GroupVersionNotFoundError); !ok {
		t.Errorf("a group that is not there: %v", err)
	}
}
