package conformance

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
)

// What Kubernetes' own tests of the garbage collector expect of controllers, Pods and custom resources, expected of ours
// as owners and as dependents, among themselves and together with ConfigMaps.

// family is a project and clients for the kinds in it that own each other.
type family struct {
	streams, routes, maps dynamic.ResourceInterface
}

func newFamily(t *testing.T) family {
	t.Helper()
	client, project := dynamicClient(t), newTenant(t).project
	return family{
		client.Resource(streamResource).Namespace(project), client.Resource(routeResource).Namespace(project),
		client.Resource(configMapResource).Namespace(project),
	}
}

// owned makes an object with these owners; whoever deletes them in the foreground has to wait for it.
func owned(t *testing.T, in dynamic.ResourceInterface, object *unstructured.Unstructured, owners ...*unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	var references []metav1.OwnerReference
	for _, owner := range owners {
		references = append(references, reference(owner))
	}
	object.SetOwnerReferences(references)
	made, err := in.Create(t.Context(), object, metav1.CreateOptions{})
	must(t, err)
	return made
}

func reference(owner *unstructured.Unstructured) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), BlockOwnerDeletion: ptr.To(true),
	}
}

func stream(name string) *unstructured.Unstructured { return stored()[1].new(name, nil) }

func route(name string) *unstructured.Unstructured { return stored()[0].new(name, nil) }

func configMap(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	object.SetName(name)
	return object
}

func end(t *testing.T, in dynamic.ResourceInterface, object *unstructured.Unstructured, policy *metav1.DeletionPropagation) {
	t.Helper()
	options := metav1.DeleteOptions{PropagationPolicy: policy, Preconditions: metav1.NewUIDPreconditions(string(object.GetUID()))}
	must(t, in.Delete(t.Context(), object.GetName(), options))
}

// untilGone waits for the garbage collector.
func untilGone(t *testing.T, in dynamic.ResourceInterface, names ...string) {
	t.Helper()
	for _, name := range names {
		eventually(t, name+" goes", func() string {
			object, err := in.Get(t.Context(), name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return ""
			}
			must(t, err)
			return fmt.Sprintf("%v %v", object.GetDeletionTimestamp(), object.GetFinalizers())
		})
	}
}

// untilOwnedBy waits until an object has just these owners, and is not being deleted.
func untilOwnedBy(t *testing.T, in dynamic.ResourceInterface, name string, owners ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is owned by %v", name, owners), func() string {
		object, err := in.Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		names := []string{}
		for _, reference := range object.GetOwnerReferences() {
			names = append(names, reference.Name)
		}
		if object.GetDeletionTimestamp() != nil {
			t.Fatalf("%s is being deleted", name)
		}
		if fmt.Sprint(names) != fmt.Sprint(owners) {
			return fmt.Sprint(names)
		}
		return ""
	})
}

// Dependents go with their owner, also when nothing is said about them and when they are of another server.
func TestDependentsGo(t *testing.T) {
	f := newFamily(t)
	for _, policy := range []*metav1.DeletionPropagation{nil, ptr.To(metav1.DeletePropagationBackground)} {
		owner := owned(t, f.streams, stream("owner"))
		owned(t, f.routes, route("one"), owner)
		owned(t, f.routes, route("two"), owner)
		owned(t, f.maps, configMap("theirs"), owner)
		end(t, f.streams, owner, policy)
		untilGone(t, f.routes, "one", "two")
		untilGone(t, f.maps, "theirs")
	}
	theirs := owned(t, f.maps, configMap("owner"))
	owned(t, f.routes, route("ours"), theirs)
	owned(t, f.routes, route("free"))
	end(t, f.maps, theirs, ptr.To(metav1.DeletePropagationBackground))
	untilGone(t, f.routes, "ours")
	untilOwnedBy(t, f.routes, "free")
}

// Orphans stay and have no owner any more.
func TestOrphansStay(t *testing.T) {
	f := newFamily(t)
	owner := owned(t, f.streams, stream("owner"))
	owned(t, f.routes, route("one"), owner)
	owned(t, f.maps, configMap("two"), owner)
	theirs := owned(t, f.maps, configMap("owner"))
	owned(t, f.routes, route("three"), theirs)
	end(t, f.streams, owner, ptr.To(metav1.DeletePropagationOrphan))
	end(t, f.maps, theirs, ptr.To(metav1.DeletePropagationOrphan))
	untilGone(t, f.streams, "owner")
	untilGone(t, f.maps, "owner")
	untilOwnedBy(t, f.routes, "one")
	untilOwnedBy(t, f.maps, "two")
	untilOwnedBy(t, f.routes, "three")
}

// In the foreground an owner stays until its dependents are gone.
func TestOwnersWaitInTheForeground(t *testing.T) {
	f := newFamily(t)
	owner := owned(t, f.streams, stream("owner"))
	body := route("slow")
	body.SetFinalizers([]string{"example.com/slow"})
	owned(t, f.routes, body, owner)
	owned(t, f.routes, route("quick"), owner)
	end(t, f.streams, owner, ptr.To(metav1.DeletePropagationForeground))
	untilGone(t, f.routes, "quick")
	waiting, err := f.streams.Get(t.Context(), "owner", metav1.GetOptions{})
	must(t, err)
	if finalizers := waiting.GetFinalizers(); waiting.GetDeletionTimestamp() == nil || len(finalizers) != 1 || finalizers[0] != metav1.FinalizerDeleteDependents {
		t.Fatalf("the owner: %v %v", waiting.GetDeletionTimestamp(), finalizers)
	}
	_, err = f.routes.Patch(t.Context(), "slow", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	must(t, err)
	untilGone(t, f.routes, "slow")
	untilGone(t, f.streams, "owner")
}

// Who has another owner, and one who waits for it to go, stays and is rid of the latter.
func TestAnotherOwnerKeeps(t *testing.T) {
	f := newFamily(t)
	leaving, staying := owned(t, f.streams, stream("leaving")), owned(t, f.streams, stream("staying"))
	owned(t, f.routes, route("one"), leaving)
	owned(t, f.routes, route("both"), leaving, staying)
	end(t, f.streams, leaving, ptr.To(metav1.DeletePropagationForeground))
	untilGone(t, f.streams, "leaving")
	untilGone(t, f.routes, "one")
	untilOwnedBy(t, f.routes, "both", "staying")
}

// Objects that own each other in a circle are deleted all the same.
func TestACircleOfOwners(t *testing.T) {
	f := newFamily(t)
	one := owned(t, f.routes, route("one"))
	two := owned(t, f.streams, stream("two"), one)
	three := owned(t, f.routes, route("three"), two)
	one.SetOwnerReferences([]metav1.OwnerReference{reference(three)})
	one, err := f.routes.Update(t.Context(), one, metav1.UpdateOptions{})
	must(t, err)
	end(t, f.routes, one, ptr.To(metav1.DeletePropagationForeground))
	untilGone(t, f.routes, "one", "three")
	untilGone(t, f.streams, "two")
}
