package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	routev1 "github.com/openshift/api/route/v1"
	userv1 "github.com/openshift/api/user/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

const intOrString = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"

// served are the kinds that are recorded, each with its definition.
var served = map[string]struct {
	gvk        schema.GroupVersionKind
	definition string
}{
	"Route":       {routev1.GroupVersion.WithKind("Route"), "com.github.openshift.api.route.v1.Route"},
	"ImageStream": {imagev1.GroupVersion.WithKind("ImageStream"), "com.github.openshift.api.image.v1.ImageStream"},
	"Image":       {imagev1.GroupVersion.WithKind("Image"), "com.github.openshift.api.image.v1.Image"},
	"Group":       {userv1.GroupVersion.WithKind("Group"), "com.github.openshift.api.user.v1.Group"},
	"User":        {userv1.GroupVersion.WithKind("User"), "com.github.openshift.api.user.v1.User"},
}

type library struct {
	scheme *runtime.Scheme
	types  managedfields.TypeConverter
}

type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

// definitions reads the pinned OpenAPI document and keeps what the kinds need, without texts.
func definitions() (map[string]any, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		return nil, err
	}
	bytes, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "openapi/openapi.json"))
	if err != nil {
		return nil, err
	}
	var document struct {
		Definitions map[string]any `json:"definitions"`
	}
	if err := json.Unmarshal(bytes, &document); err != nil {
		return nil, err
	}
	kept := map[string]any{}
	open := []string{}
	for _, kind := range served {
		open = append(open, kind.definition)
	}
	for len(open) > 0 {
		name := open[0]
		open = open[1:]
		if _, ok := kept[name]; ok {
			continue
		}
		kept[name] = withoutTexts(document.Definitions[name], &open)
	}
	for _, kind := range served {
		kept[kind.definition].(map[string]any)["x-kubernetes-group-version-kind"] = []any{map[string]any{
			"group": kind.gvk.Group, "version": kind.gvk.Version, "kind": kind.gvk.Kind,
		}}
	}
	return kept, nil
}

func withoutTexts(value any, references *[]string) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, inner := range value {
			if text, ok := inner.(string); ok && key == "$ref" {
				*references = append(*references, strings.TrimPrefix(text, "#/definitions/"))
			}
			if _, ok := inner.(string); ok && key == "description" {
				continue
			}
			out[key] = withoutTexts(inner, references)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for at, inner := range value {
			out[at] = withoutTexts(inner, references)
		}
		return out
	default:
		return value
	}
}

func newLibrary(kept map[string]any) (*library, error) {
	schemas := map[string]*spec.Schema{}
	for name, definition := range kept {
		var schema spec.Schema
		if err := json.Unmarshal(encode(definition), &schema); err != nil {
			return nil, err
		}
		schemas[name] = &schema
	}
	// Servers type objects by version 3 of their document, where this type is different.
	schemas[intOrString] = &spec.Schema{SchemaProps: spec.SchemaProps{Format: "int-or-string"}}
	types, err := managedfields.NewTypeConverter(schemas, false)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{routev1.Install, imagev1.Install, userv1.Install} {
		if err := install(scheme); err != nil {
			return nil, err
		}
	}
	return &library{scheme, types}, nil
}

func (l *library) manager(gvk schema.GroupVersionKind, subresource string, ignored []string) *managedfields.FieldManager {
	var filter map[fieldpath.APIVersion]fieldpath.Filter
	if len(ignored) > 0 {
		set := fieldpath.NewSet()
		for _, name := range ignored {
			set.Insert(fieldpath.MakePathOrDie(name))
		}
		version := fieldpath.APIVersion(gvk.GroupVersion().String())
		filter = fieldpath.NewExcludeFilterSetMap(map[fieldpath.APIVersion]*fieldpath.Set{version: set})
	}
	manager, err := managedfields.NewDefaultFieldManager(l.types, runtime.UnsafeObjectConvertor(l.scheme), noDefaults{},
		l.scheme, gvk, gvk.GroupVersion(), subresource, filter)
	if err != nil {
		log.Fatal(err)
	}
	return manager
}

func (l *library) typed(gvk schema.GroupVersionKind, object map[string]any) (runtime.Object, error) {
	out, err := l.scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(encode(object), out); err != nil {
		return nil, err
	}
	out.GetObjectKind().SetGroupVersionKind(gvk)
	return out, nil
}

// play does one write. The objects are the structs that servers have.
func (l *library) play(gvk schema.GroupVersionKind, live map[string]any, step *Step) (map[string]any, error) {
	manager := l.manager(gvk, step.Subresource, step.Ignored)
	old, err := l.typed(gvk, live)
	if err != nil {
		return nil, err
	}
	var given map[string]any
	if err := json.Unmarshal(step.Given, &given); err != nil {
		return nil, err
	}
	var result runtime.Object
	if step.Op == "update" {
		object, err := l.typed(gvk, given)
		if err != nil {
			return nil, err
		}
		step.Given = keepReset(encode(object), given)
		result = manager.UpdateNoErrors(old, object, step.Manager)
	} else {
		result, err = manager.Apply(old, &unstructured.Unstructured{Object: given}, step.Manager, step.Force)
		if err != nil {
			step.Error = failure(err)
			return nil, nil
		}
	}
	settle(result, step.Now)
	object := clone(mustMap(result))
	if metadata, ok := object["metadata"].(map[string]any); ok {
		if entries, ok := metadata["managedFields"]; ok {
			step.Managed = encode(entries)
			delete(metadata, "managedFields")
		}
	}
	if step.Op == "apply" {
		step.Object = encode(object)
	}
	return clone(mustMap(result)), nil
}

// keepReset puts an empty list of owners back, which the encoding of a struct leaves out.
func keepReset(encoded json.RawMessage, given map[string]any) json.RawMessage {
	metadata, _ := given["metadata"].(map[string]any)
	if entries, ok := metadata["managedFields"].([]any); !ok || len(entries) > 0 {
		return encoded
	}
	var out map[string]any
	if err := json.Unmarshal(encoded, &out); err != nil {
		log.Fatal(err)
	}
	out["metadata"].(map[string]any)["managedFields"] = []any{}
	return encode(out)
}

func mustMap(object runtime.Object) map[string]any {
	var out map[string]any
	if err := json.Unmarshal(encode(object), &out); err != nil {
		log.Fatal(err)
	}
	return out
}

// settle replaces the time that the library read from the clock by the step's.
func settle(object runtime.Object, now string) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		log.Fatal(err)
	}
	fake, err := time.Parse(time.RFC3339, now)
	if err != nil {
		log.Fatal(err)
	}
	entries := accessor.GetManagedFields()
	for at := range entries {
		if entries[at].Time != nil && time.Since(entries[at].Time.Time) < time.Hour {
			entries[at].Time = &metav1.Time{Time: fake}
		}
	}
	accessor.SetManagedFields(entries)
}

func failure(err error) *Failure {
	out := &Failure{Message: err.Error()}
	if status, ok := err.(apierrors.APIStatus); ok {
		out.Reason = string(status.Status().Reason)
		if details := status.Status().Details; details != nil {
			for _, cause := range details.Causes {
				out.Causes = append(out.Causes, [2]string{cause.Message, cause.Field})
			}
		}
	}
	return out
}

func recordLibrary() (*Document, error) {
	kept, err := definitions()
	if err != nil {
		return nil, err
	}
	l, err := newLibrary(kept)
	if err != nil {
		return nil, err
	}
	document := &Document{Definitions: kept, Kinds: map[string]Kind{}}
	for name, kind := range served {
		empty, err := l.typed(kind.gvk, map[string]any{})
		if err != nil {
			return nil, err
		}
		document.Kinds[name] = Kind{Schema: kind.definition, Empty: encode(empty)}
	}
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, plan := range append(written(), generated()...) {
		sequence := Sequence{Name: plan.name, Kind: plan.kind}
		gvk := served[plan.kind].gvk
		live := map[string]any{}
		for at, make := range plan.steps {
			step := make(clone(live))
			step.Now = start.Add(time.Duration(at) * time.Minute).Format(time.RFC3339)
			result, err := l.play(gvk, live, &step)
			if err != nil {
				return nil, fmt.Errorf("%s, step %d: %w", plan.name, at, err)
			}
			sequence.Steps = append(sequence.Steps, step)
			if step.Error == nil {
				live = result
				// What storage would set.
				metadata := live["metadata"].(map[string]any)
				metadata["uid"] = "u"
			}
		}
		document.Sequences = append(document.Sequences, sequence)
	}
	return document, nil
}
