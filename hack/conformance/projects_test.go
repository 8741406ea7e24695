package conformance

import (
	"testing"

	projectv1 "github.com/openshift/api/project/v1"
	projectclient "github.com/openshift/client-go/project/clientset/versioned"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

func TestTypedProjects(t *testing.T) {
	alice, bob := unique("alice"), unique("bob")
	hers, err := projectclient.NewForConfig(user(t, alice))
	must(t, err)
	his, err := projectclient.NewForConfig(user(t, bob))
	must(t, err)
	watcher, err := hers.ProjectV1().Projects().Watch(t.Context(), metav1.ListOptions{})
	must(t, err)
	defer watcher.Stop()

	name := unique("typed")
	request := &projectv1.ProjectRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, DisplayName: "Typed"}
	created, err := hers.ProjectV1().ProjectRequests().Create(t.Context(), request, metav1.CreateOptions{})
	must(t, err)
	if created.Annotations["openshift.io/requester"] != alice || created.Status.Phase != "Active" {
		t.Fatalf("created: %+v", created)
	}
	expect(t, watcher, watch.Added, name)

	list, err := hers.ProjectV1().Projects().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(list.Items) != 1 || list.Items[0].Name != name || list.ResourceVersion == "" {
		t.Fatalf("her list: %+v", list)
	}
	list, err = his.ProjectV1().Projects().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(list.Items) != 0 {
		t.Fatalf("his list: %+v", list)
	}
	if _, err := his.ProjectV1().Projects().Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("he gets it: %v", err)
	}

	project, err := hers.ProjectV1().Projects().Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	project.Annotations["openshift.io/description"] = "by update"
	project, err = hers.ProjectV1().Projects().Update(t.Context(), project, metav1.UpdateOptions{})
	must(t, err)
	expect(t, watcher, watch.Modified, name)
	patch := []byte(`{"metadata":{"annotations":{"openshift.io/display-name":"by patch"}}}`)
	_, err = hers.ProjectV1().Projects().Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
	if event := expect(t, watcher, watch.Modified, name); event.ResourceVersion == project.ResourceVersion {
		t.Fatalf("two changes at one resourceVersion: %s", event.ResourceVersion)
	}

	// She lets him in by a plain RoleBinding.
	kube, err := kubernetes.NewForConfig(user(t, alice))
	must(t, err)
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "view"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: bob}},
	}
	_, err = kube.RbacV1().RoleBindings(name).Create(t.Context(), binding, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "he sees it", func() string {
		list, err := his.ProjectV1().Projects().List(t.Context(), metav1.ListOptions{})
		must(t, err)
		if len(list.Items) == 1 {
			return ""
		}
		return "his list is empty"
	})

	must(t, hers.ProjectV1().Projects().Delete(t.Context(), name, metav1.DeleteOptions{}))
	for {
		event := next(t, watcher)
		if project, ok := event.Object.(*projectv1.Project); ok && event.Type == watch.Deleted && project.Name == name {
			return
		}
	}
}

// expect passes over other kinds of changes and returns the object of the one that is wanted.
func expect(t *testing.T, watcher watch.Interface, kind watch.EventType, name string) *projectv1.Project {
	t.Helper()
	for {
		event := next(t, watcher)
		project, ok := event.Object.(*projectv1.Project)
		if !ok {
			t.Fatalf("a %s with %T: %+v", event.Type, event.Object, event.Object)
		}
		if event.Type == kind && project.Name == name {
			return project
		}
	}
}
