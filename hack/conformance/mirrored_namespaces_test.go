package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	projectv1 "github.com/openshift/api/project/v1"
	projectclient "github.com/openshift/client-go/project/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// What Kubernetes' own tests of Namespaces expect of them and of what is in them, expected of Projects and of ours.

// namespace makes a Namespace, which goes with the test, and gives clients for it and its Project.
func namespace(t *testing.T, name string) (kubernetes.Interface, projectclient.Interface) {
	t.Helper()
	kube, err := kubernetes.NewForConfig(administrator(t))
	must(t, err)
	projects, err := projectclient.NewForConfig(administrator(t))
	must(t, err)
	_, err = kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		err := kube.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete namespace %s: %v", name, err)
		}
	})
	return kube, projects
}

// untilNoProject waits for the namespace controller, which has the resources of all servers to go through.
func untilNoProject(t *testing.T, projects projectclient.Interface, name string) {
	t.Helper()
	deadline := time.Now().Add(3 * patience)
	for {
		project, err := projects.ProjectV1().Projects().Get(t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return
		}
		must(t, err)
		if time.Now().After(deadline) {
			t.Fatalf("%s does not go: %+v", name, project.Status)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// A Project takes with it what is in it: a new one of the name is empty.
func TestAProjectTakesAllWithIt(t *testing.T) {
	name := unique("emptied")
	kube, projects := namespace(t, name)
	client := dynamicClient(t)
	for _, k := range stored()[:2] {
		_, err := client.Resource(k.resource).Namespace(name).Create(t.Context(), k.new("web", nil), metav1.CreateOptions{})
		must(t, err)
	}
	must(t, projects.ProjectV1().Projects().Delete(t.Context(), name, metav1.DeleteOptions{}))
	untilNoProject(t, projects, name)
	_, err := kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
	for _, k := range stored()[:2] {
		list, err := client.Resource(k.resource).Namespace(name).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		if len(list.Items) != 0 {
			t.Fatalf("left: %+v", list.Items)
		}
	}
}

// Pods go first: what is ours stays as long as one of them does.
func TestPodsGoBeforeOurs(t *testing.T) {
	name := unique("ordered")
	kube, projects := namespace(t, name)
	pods := kube.CoreV1().Pods(name)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/held"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/nothing"}}},
	}
	eventually(t, "there is a service account for Pods", func() string {
		if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	routes := routesOf(t, administrator(t)).RouteV1().Routes(name)
	_, err := routes.Create(t.Context(), newRoute("web"), metav1.CreateOptions{})
	must(t, err)
	must(t, projects.ProjectV1().Projects().Delete(t.Context(), name, metav1.DeleteOptions{}))
	eventually(t, "the namespace controller was there, and the Pod is being deleted", func() string {
		project, err := projects.ProjectV1().Projects().Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		held, err := pods.Get(t.Context(), "held", metav1.GetOptions{})
		must(t, err)
		if held.DeletionTimestamp != nil && len(project.Status.Conditions) > 0 {
			return ""
		}
		return fmt.Sprintf("%+v %v", project.Status, held.DeletionTimestamp)
	})
	if _, err := routes.Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
		t.Fatalf("the Route went before the Pod: %v", err)
	}
	_, err = pods.Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	must(t, err)
	untilNoProject(t, projects, name)
}

// A Project shows the conditions and the finalizers of its Namespace, as they come and go.
func TestAProjectShowsItsNamespace(t *testing.T) {
	name := unique("shown")
	kube, projects := namespace(t, name)
	namespaces := kube.CoreV1().Namespaces()
	condition := corev1.NamespaceCondition{Type: "Patched", Status: corev1.ConditionTrue, Reason: "Test", Message: "by a test"}
	raw, err := json.Marshal([]corev1.NamespaceCondition{condition})
	must(t, err)
	_, err = namespaces.Patch(t.Context(), name, types.MergePatchType, fmt.Appendf(nil, `{"status":{"conditions":%s}}`, raw), metav1.PatchOptions{}, "status")
	must(t, err)
	finalize := func(change func([]corev1.FinalizerName) []corev1.FinalizerName) {
		t.Helper()
		must(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
			namespace, err := namespaces.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			namespace.Spec.Finalizers = change(namespace.Spec.Finalizers)
			_, err = namespaces.Finalize(t.Context(), namespace, metav1.UpdateOptions{})
			return err
		}))
	}
	expect := func(finalizers ...corev1.FinalizerName) {
		t.Helper()
		eventually(t, "the Project shows it", func() string {
			project, err := projects.ProjectV1().Projects().Get(t.Context(), name, metav1.GetOptions{})
			must(t, err)
			shows := project.Status.Phase == corev1.NamespaceActive && len(project.Status.Conditions) == 1 &&
				project.Status.Conditions[0].Type == condition.Type && project.Status.Conditions[0].Message == condition.Message
			if !shows || fmt.Sprint(project.Spec.Finalizers) != fmt.Sprint(finalizers) {
				return fmt.Sprintf("%+v %+v", project.Spec, project.Status)
			}
			return ""
		})
	}
	expect(corev1.FinalizerKubernetes)
	finalize(func(list []corev1.FinalizerName) []corev1.FinalizerName { return append(list, "example.com/test") })
	expect(corev1.FinalizerKubernetes, "example.com/test")
	finalize(func(list []corev1.FinalizerName) []corev1.FinalizerName { return list[:1] })
	expect(corev1.FinalizerKubernetes)
}

// Many Projects with something of ours in each go as fast as Namespaces have to: nine of ten within 150 seconds.
func TestManyProjectsGo(t *testing.T) {
	const total = 50
	prefix := unique("many")
	name := func(number int) string { return fmt.Sprintf("%s-%02d", prefix, number) }
	projects, err := projectclient.NewForConfig(administrator(t))
	must(t, err)
	routes := routesOf(t, administrator(t)).RouteV1()
	for number := range total {
		project := &projectv1.Project{ObjectMeta: metav1.ObjectMeta{Name: name(number)}}
		_, err := projects.ProjectV1().Projects().Create(t.Context(), project, metav1.CreateOptions{})
		must(t, err)
		_, err = routes.Routes(name(number)).Create(t.Context(), newRoute("web"), metav1.CreateOptions{})
		must(t, err)
	}
	for number := range total {
		must(t, projects.ProjectV1().Projects().Delete(t.Context(), name(number), metav1.DeleteOptions{}))
	}
	deadline := time.Now().Add(150 * time.Second)
	for {
		left := 0
		for number := range total {
			_, err := projects.ProjectV1().Projects().Get(t.Context(), name(number), metav1.GetOptions{})
			if err == nil {
				left++
			} else if !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		}
		if left <= total/10 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d are left", left, total)
		}
		time.Sleep(time.Second)
	}
}
