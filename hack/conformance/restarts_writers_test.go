package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const (
	// numberAnnotation has the number of the write that left the object so.
	numberAnnotation = "conformance.picoshift.io/number"
	// numberedObjects is how many objects a writer writes in turn.
	numberedObjects = 25
	// betweenWrites is how long a writer rests after a write.
	betweenWrites = 100 * time.Millisecond
	// betweenAttempts is how long it rests after one that failed.
	betweenAttempts = 200 * time.Millisecond
)

// write is one that the server has acknowledged. A deletion has a number as well, though no object shows it.
type write struct {
	object      string
	number      int
	deletion    bool
	began, done time.Time
}

// writer creates, updates and deletes objects of one kind with ascending numbers. What is not acknowledged it tries again.
type writer struct {
	kind   schema.GroupVersionKind
	client dynamic.ResourceInterface
	spec   map[string]any

	written []write
	// failures is how many attempts failed, outage the longest time from a first attempt to the acknowledgement.
	failures int
	outage   time.Duration
	// problem is an answer that no restart explains.
	problem error
}

// run writes until stop is closed and the write under way is done.
func (w *writer) run(ctx context.Context, stop <-chan struct{}) {
	exists := map[string]bool{}
	for number := 1; w.problem == nil; number++ {
		select {
		case <-stop:
			return
		case <-time.After(betweenWrites):
		}
		name := fmt.Sprintf("numbered-%02d", number%numberedObjects)
		// An object lives for six writes, and the next that has its name is another.
		next := write{object: name, number: number, deletion: exists[name] && number/numberedObjects%7 == 6, began: time.Now()}
		for !w.try(ctx, next, exists[name]) {
			if ctx.Err() != nil || w.problem != nil {
				return
			}
			w.failures++
			time.Sleep(betweenAttempts)
		}
		next.done = time.Now()
		w.outage = max(w.outage, next.done.Sub(next.began))
		w.written = append(w.written, next)
		exists[name] = !next.deletion
	}
}

// try makes one attempt and tells whether the write is done.
func (w *writer) try(ctx context.Context, next write, exists bool) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var err error
	switch {
	case next.deletion:
		err = w.client.Delete(ctx, next.object, metav1.DeleteOptions{})
		if errors.IsNotFound(err) && w.isGone(ctx, next.object) {
			return true
		}
	case exists:
		patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": numbered(next.number)}})
		_, err = w.client.Patch(ctx, next.object, types.MergePatchType, patch, metav1.PatchOptions{})
	default:
		object := &unstructured.Unstructured{Object: map[string]any{}}
		if w.spec != nil {
			object.Object["spec"] = w.spec
		}
		object.SetGroupVersionKind(w.kind)
		object.SetName(next.object)
		object.SetAnnotations(numbered(next.number))
		_, err = w.client.Create(ctx, object, metav1.CreateOptions{})
		if errors.IsAlreadyExists(err) {
			// Ours, if an attempt whose answer was lost has made it.
			found, lost := w.client.Get(ctx, next.object, metav1.GetOptions{})
			if lost == nil && found.GetAnnotations()[numberAnnotation] == strconv.Itoa(next.number) {
				return true
			}
		}
	}
	if status, ok := err.(errors.APIStatus); ok && !passes(status.Status()) {
		w.problem = fmt.Errorf("%s %s, write %d: %w", w.kind.Kind, next.object, next.number, err)
	}
	return err == nil
}

// isGone tells whether a list, which is not served by a server that does not know the kind, lacks the object.
func (w *writer) isGone(ctx context.Context, name string) bool {
	list, err := w.client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return false
	}
	for _, item := range list.Items {
		if item.GetName() == name {
			return false
		}
	}
	return true
}

// passes tells whether an answer is one that a server gives while it starts or another is away.
func passes(status metav1.Status) bool {
	switch {
	case status.Code >= 500, status.Code == 429:
		return true
	case status.Code == 404:
		// kube-apiserver does not know of groups behind it at once. An object that is missing has a name.
		return status.Details == nil || status.Details.Name == ""
	}
	return false
}

func numbered(number int) map[string]string {
	return map[string]string{numberAnnotation: strconv.Itoa(number)}
}
