package conformance

import (
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned"
	imageinformers "github.com/openshift/client-go/image/informers/externalversions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// images is an administrator's client, with a project for its streams.
func images(t *testing.T) (imageclient.Interface, string) {
	t.Helper()
	u := newTenant(t)
	client, err := imageclient.NewForConfig(administrator(t))
	must(t, err)
	return client, u.project
}

func newStream(name string, tags ...imagev1.TagReference) *imagev1.ImageStream {
	return &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: imagev1.ImageStreamSpec{Tags: tags}}
}

func dockerTag(name, source string) imagev1.TagReference {
	return imagev1.TagReference{Name: name, From: &corev1.ObjectReference{Kind: "DockerImage", Name: source}, Reference: true}
}

func followingTag(name, source string) imagev1.TagReference {
	return imagev1.TagReference{Name: name, From: &corev1.ObjectReference{Kind: "ImageStreamTag", Name: source}}
}

// newest is the newest event of a tag, empty where there is none.
func newest(stream *imagev1.ImageStream, tag string) imagev1.TagEvent {
	for _, list := range stream.Status.Tags {
		if list.Tag == tag && len(list.Items) > 0 {
			return list.Items[0]
		}
	}
	return imagev1.TagEvent{}
}

func push(t *testing.T, client imageclient.Interface, namespace, stream, tag, image string) {
	t.Helper()
	mapping := &imagev1.ImageStreamMapping{
		ObjectMeta: metav1.ObjectMeta{Name: stream, Namespace: namespace},
		Image: imagev1.Image{
			ObjectMeta:           metav1.ObjectMeta{Name: image},
			DockerImageReference: "quay.io/lab/" + image,
		},
		Tag: tag,
	}
	status, err := client.ImageV1().ImageStreamMappings(namespace).Create(t.Context(), mapping, metav1.CreateOptions{})
	must(t, err)
	if status.Status != metav1.StatusSuccess {
		t.Fatalf("a push answered %+v", status)
	}
}

func TestTypedImageStreams(t *testing.T) {
	client, namespace := images(t)
	streams := client.ImageV1().ImageStreams(namespace)
	made, err := streams.Create(t.Context(), newStream("app", dockerTag("1", "quay.io/lab/app:1")), metav1.CreateOptions{})
	must(t, err)
	if made.Generation != 1 || newest(made, "1").DockerImageReference != "quay.io/lab/app:1" {
		t.Fatalf("no event in the answer: %+v", made)
	}
	if tag := made.Spec.Tags[0]; tag.ImportPolicy.ImportMode != imagev1.ImportModeLegacy || *tag.Generation != 1 {
		t.Fatalf("defaults are missing: %+v", tag)
	}

	made.Spec.Tags = append(made.Spec.Tags, followingTag("alias", "1"))
	updated, err := streams.Update(t.Context(), made, metav1.UpdateOptions{})
	must(t, err)
	if updated.Generation != 2 || newest(updated, "alias").DockerImageReference != "quay.io/lab/app:1" {
		t.Fatalf("after update: %+v", updated)
	}
	if _, err := streams.Update(t.Context(), made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Fatalf("an old resourceVersion: %v", err)
	}
	updated.Status.Tags[0].Items[0].DockerImageReference = "quay.io/lab/app:written"
	written, err := streams.UpdateStatus(t.Context(), updated, metav1.UpdateOptions{})
	must(t, err)
	if written.Generation != 2 || newest(written, "1").DockerImageReference == "" {
		t.Fatalf("after a write of the status: %+v", written)
	}
	merge := []byte(`{"metadata":{"labels":{"team":"a"}}}`)
	labelled, err := streams.Patch(t.Context(), "app", types.MergePatchType, merge, metav1.PatchOptions{})
	must(t, err)
	if labelled.Labels["team"] != "a" || labelled.Generation != 2 {
		t.Fatalf("after merge patch: %+v", labelled.ObjectMeta)
	}

	push(t, client, namespace, "app", "1", "image-"+namespace)
	layers, err := streams.Layers(t.Context(), "app", metav1.GetOptions{})
	must(t, err)
	if _, ok := layers.Images["image-"+namespace]; !ok {
		t.Fatalf("the pushed image is not among the layers: %+v", layers)
	}
	missing := newStream("bad", imagev1.TagReference{Name: "t", From: &corev1.ObjectReference{Kind: "ImageStreamTag", Name: "none:1"}})
	if _, err := streams.Create(t.Context(), missing, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Fatalf("a source that is not there: %v", err)
	}
	must(t, streams.Delete(t.Context(), "app", metav1.DeleteOptions{}))
	if _, err := streams.Get(t.Context(), "app", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("after delete: %v", err)
	}
}

func TestTypedImagesAndSignatures(t *testing.T) {
	client, namespace := images(t)
	name := "image-" + namespace
	image := &imagev1.Image{ObjectMeta: metav1.ObjectMeta{Name: name}, DockerImageReference: "quay.io/lab/x"}
	made, err := client.ImageV1().Images().Create(t.Context(), image, metav1.CreateOptions{})
	must(t, err)
	if made.DockerImageMetadataVersion != "1.0" || len(made.DockerImageMetadata.Raw) == 0 {
		t.Fatalf("defaults are missing: %+v", made)
	}
	signature := &imagev1.ImageSignature{ObjectMeta: metav1.ObjectMeta{Name: name + "@one"}, Type: "atomic", Content: []byte("sig")}
	signatures := client.ImageV1().ImageSignatures()
	if _, err := signatures.Create(t.Context(), signature, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := signatures.Create(t.Context(), signature, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("a second one of the name: %v", err)
	}
	must(t, signatures.Delete(t.Context(), signature.Name, metav1.DeleteOptions{}))
	must(t, client.ImageV1().Images().Delete(t.Context(), name, metav1.DeleteOptions{}))
}

func TestImageStreamInformerSeesFollowers(t *testing.T) {
	client, namespace := images(t)
	factory := imageinformers.NewSharedInformerFactoryWithOptions(client, 0, imageinformers.WithNamespace(namespace))
	informer := factory.Image().V1().ImageStreams()
	synced := informer.Informer().HasSynced
	lister := informer.Lister().ImageStreams(namespace)
	factory.Start(t.Context().Done())
	t.Cleanup(factory.Shutdown)
	waitForSync(t, synced)

	streams := client.ImageV1().ImageStreams(namespace)
	_, err := streams.Create(t.Context(), newStream("base"), metav1.CreateOptions{})
	must(t, err)
	made, err := streams.Create(t.Context(), newStream("app", followingTag("t", "base:1")), metav1.CreateOptions{})
	must(t, err)
	push(t, client, namespace, "base", "1", "followed-"+namespace)
	eventually(t, "the lister has the follower's event", func() string {
		stream, err := lister.Get("app")
		if err != nil {
			return err.Error()
		}
		if newest(stream, "t").Image != "followed-"+namespace {
			return "the event is missing"
		}
		if revision(t, stream.ResourceVersion) <= revision(t, made.ResourceVersion) {
			t.Fatalf("a touched stream at an old resourceVersion: %s", stream.ResourceVersion)
		}
		return ""
	})
	all, err := lister.List(labels.Everything())
	must(t, err)
	if len(all) != 2 {
		t.Fatalf("listed %d streams", len(all))
	}
}
