package conformance

import (
	"context"
	"fmt"
	"sync"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"
)

// newStreamTag is a tag of a pull spec, which nobody imports meanwhile.
func newStreamTag(stream, tag, pullSpec string) *imagev1.ImageStreamTag {
	return &imagev1.ImageStreamTag{
		ObjectMeta: metav1.ObjectMeta{Name: stream + ":" + tag},
		Tag: &imagev1.TagReference{
			Name:      tag,
			From:      &corev1.ObjectReference{Kind: "DockerImage", Name: pullSpec},
			Reference: true,
		},
	}
}

func TestTypedImageStreamTags(t *testing.T) {
	all, project := images(t)
	client := all.ImageV1()
	tags := client.ImageStreamTags(project)

	// A PUT without a version, of a tag whose stream is not there: what oc tag does.
	created, err := tags.Update(t.Context(), newStreamTag("app", "1", "quay.io/lab/app:1"), metav1.UpdateOptions{})
	must(t, err)
	if created.Image.DockerImageReference != "quay.io/lab/app:1" || created.Tag == nil || created.ResourceVersion == "" {
		t.Fatalf("not resolved in the answer: %+v", created)
	}
	got, err := tags.Get(t.Context(), "app:1", metav1.GetOptions{})
	must(t, err)
	got.Annotations = map[string]string{"a": "b"}
	updated, err := tags.Update(t.Context(), got, metav1.UpdateOptions{})
	must(t, err)
	if updated.Tag.Annotations["a"] != "b" {
		t.Fatalf("annotations belong to the tag: %+v", updated.Tag)
	}
	if _, err := tags.Update(t.Context(), got, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Fatalf("an old resourceVersion: %v", err)
	}
	updated.Labels = map[string]string{"a": "b"}
	if _, err := tags.Update(t.Context(), updated, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Fatalf("labels are the stream's: %v", err)
	}
	merge := []byte(`{"tag":{"from":{"name":"quay.io/lab/app:2"}}}`)
	moved := &imagev1.ImageStreamTag{}
	patch := client.RESTClient().Patch(types.MergePatchType).Namespace(project).Resource("imagestreamtags").Name("app:1")
	must(t, patch.Body(merge).Do(t.Context()).Into(moved))
	if moved.Image.DockerImageReference != "quay.io/lab/app:2" {
		t.Fatalf("after a patch: %+v", moved)
	}

	if _, err := tags.Create(t.Context(), newStreamTag("app", "1", "x"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("a second one of the name: %v", err)
	}
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if _, err := tags.Create(t.Context(), newStreamTag("dry", "1", "x"), dry); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ImageStreams(project).Get(t.Context(), "dry", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("a dry run was written: %v", err)
	}
	wrong := types.UID("00000000-0000-0000-0000-000000000000")
	precondition := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}}
	if err := tags.Delete(t.Context(), "app:1", precondition); !apierrors.IsConflict(err) {
		t.Fatalf("delete with another uid: %v", err)
	}
	must(t, tags.Delete(t.Context(), "app:1", metav1.DeleteOptions{}))
	if err := tags.Delete(t.Context(), "app:1", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("deleted twice: %v", err)
	}
	stream, err := client.ImageStreams(project).Get(t.Context(), "app", metav1.GetOptions{})
	must(t, err)
	if len(stream.Spec.Tags)+len(stream.Status.Tags) != 0 {
		t.Fatalf("left of the last tag: %+v", stream)
	}
}

func TestTypedImageTags(t *testing.T) {
	all, project := images(t)
	client := all.ImageV1()
	tags := client.ImageTags(project)
	reference := newStreamTag("app", "1", "quay.io/lab/app:1").Tag
	created, err := tags.Create(t.Context(), &imagev1.ImageTag{ObjectMeta: metav1.ObjectMeta{Name: "app:1"}, Spec: reference}, metav1.CreateOptions{})
	must(t, err)
	if created.Spec == nil || created.Spec.Generation == nil || *created.Spec.Generation != 1 || created.Image != nil {
		t.Fatalf("created: %+v", created)
	}
	created.Spec.From.Name = "quay.io/lab/app:2"
	updated, err := tags.Update(t.Context(), created, metav1.UpdateOptions{})
	must(t, err)
	if *updated.Spec.Generation != 2 || len(updated.Status.Items) == 0 {
		t.Fatalf("updated: %+v", updated)
	}
	updated.Spec = nil
	if updated, err = tags.Update(t.Context(), updated, metav1.UpdateOptions{}); err != nil || updated.Spec != nil {
		t.Fatalf("the spec was to go: %+v, %v", updated, err)
	}
	_, err = tags.Create(t.Context(), &imagev1.ImageTag{ObjectMeta: metav1.ObjectMeta{Name: "app:2"}}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Fatalf("without a spec: %v", err)
	}
}

func TestImageStreamTagPages(t *testing.T) {
	all, project := images(t)
	client := all.ImageV1()
	tags := client.ImageStreamTags(project)
	var writers sync.WaitGroup
	for writer := range 20 {
		writers.Add(1)
		go func() {
			defer writers.Done()
			name, spec := fmt.Sprintf("t%02d", writer), fmt.Sprintf("quay.io/lab/app:%d", writer)
			if _, err := tags.Update(t.Context(), newStreamTag("app", name, spec), metav1.UpdateOptions{}); err != nil {
				t.Errorf("writer %d: %v", writer, err)
			}
		}()
	}
	writers.Wait()
	whole, err := tags.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(whole.Items) != 20 || whole.ResourceVersion == "" {
		t.Fatalf("%d tags, resourceVersion %q", len(whole.Items), whole.ResourceVersion)
	}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		page, err := tags.List(ctx, options)
		if err == nil && len(page.Items) > 7 {
			err = fmt.Errorf("a page of %d", len(page.Items))
		}
		return page, err
	})
	pages.PageSize = 7
	at := 0
	must(t, pages.EachListItem(t.Context(), metav1.ListOptions{}, func(item runtime.Object) error {
		if name := item.(*imagev1.ImageStreamTag).Name; at >= len(whole.Items) || name != whole.Items[at].Name {
			return fmt.Errorf("item %d is %s", at, name)
		}
		at++
		return nil
	}))
	if at != len(whole.Items) {
		t.Fatalf("%d of %d in pages", at, len(whole.Items))
	}

	// As the namespace controller empties a namespace.
	meta, err := metadata.NewForConfig(administrator(t))
	must(t, err)
	resource := meta.Resource(imagev1.GroupVersion.WithResource("imagestreamtags")).Namespace(project)
	listed, err := resource.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, item := range listed.Items {
		must(t, resource.Delete(t.Context(), item.Name, metav1.DeleteOptions{}))
	}
	if left, err := tags.List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) != 0 {
		t.Fatalf("left: %+v, %v", left, err)
	}
}

func TestTypedImageStreamImages(t *testing.T) {
	all, project := images(t)
	client := all.ImageV1()
	digest := "sha256:" + fmt.Sprintf("%064x", len(project)+1000)
	mapping := &imagev1.ImageStreamMapping{
		ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: project},
		Image:      imagev1.Image{ObjectMeta: metav1.ObjectMeta{Name: digest}, DockerImageReference: "registry.example/app@" + digest},
		Tag:        "pushed",
	}
	_, err := client.ImageStreams(project).Create(t.Context(), &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Name: "app"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = client.ImageStreamMappings(project).Create(t.Context(), mapping, metav1.CreateOptions{})
	must(t, err)
	shown, err := client.ImageStreamImages(project).Get(t.Context(), "app@"+digest, metav1.GetOptions{})
	must(t, err)
	if shown.Image.Name != digest {
		t.Fatalf("another image: %+v", shown)
	}
	if _, err := client.ImageStreamImages(project).Get(t.Context(), "app@sha256:dead", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("an image that is not there: %v", err)
	}
}
