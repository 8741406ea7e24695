package conformance

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// What Kubernetes' own tests of chunks and of tables expect of PodTemplates, Pods and Nodes, expected of ours.

// fill makes many objects of a kind at once, named in order.
func (w world) fill(t *testing.T, count int) {
	t.Helper()
	var makers sync.WaitGroup
	for maker := range 20 {
		makers.Add(1)
		go func() {
			defer makers.Done()
			for number := maker; number < count; number += 20 {
				object := w.new(fmt.Sprintf("item-%04d", number), nil)
				if _, err := w.writer.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
					t.Errorf("item %d: %v", number, err)
				}
			}
		}()
	}
	makers.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// Chunks have all objects once, in order, of one version, and say how many are left.
func TestChunks(t *testing.T) {
	const total, limit = 400, 17
	eachKind(t, stored()[:2], func(t *testing.T, w world) {
		w.fill(t, total)
		for range 3 {
			options, found, version := metav1.ListOptions{Limit: limit}, 0, ""
			for page := 0; page == 0 || options.Continue != ""; page++ {
				list, err := w.reader.List(t.Context(), options)
				must(t, err)
				if page == 0 {
					version = list.GetResourceVersion()
				}
				if list.GetResourceVersion() != version || len(list.Items) > limit {
					t.Fatalf("page %d: %d items at %s, the first was at %s", page, len(list.Items), list.GetResourceVersion(), version)
				}
				for _, item := range list.Items {
					if want := fmt.Sprintf("item-%04d", found); item.GetName() != want {
						t.Fatalf("page %d has %s, not %s", page, item.GetName(), want)
					}
					found++
				}
				options.Continue = list.GetContinue()
				left := list.GetRemainingItemCount()
				if (left == nil) != (options.Continue == "") || left != nil && int(*left) != total-found {
					t.Fatalf("page %d leaves %v after %d", page, left, found)
				}
			}
			if found != total {
				t.Fatalf("%d of %d", found, total)
			}
		}
		whole, err := w.reader.List(t.Context(), metav1.ListOptions{Limit: total + 1})
		must(t, err)
		if len(whole.Items) != total || whole.GetContinue() != "" {
			t.Fatalf("%d items at once, then %q", len(whole.Items), whole.GetContinue())
		}
	})
}

// table asks for a table in a version of meta.k8s.io.
func table(t *testing.T, client rest.Interface, version, path string, options *metav1.ListOptions) metav1.Table {
	t.Helper()
	request := client.Get().AbsPath(path).SetHeader("Accept", "application/json;as=Table;v="+version+";g=meta.k8s.io")
	if options != nil {
		request = request.SpecificallyVersionedParams(options, metav1.ParameterCodec, metav1.SchemeGroupVersion)
	}
	raw, err := request.DoRaw(t.Context())
	must(t, err)
	var table metav1.Table
	must(t, json.Unmarshal(raw, &table))
	if table.Kind != "Table" || table.APIVersion != "meta.k8s.io/"+version {
		t.Fatalf("%s %s", table.APIVersion, table.Kind)
	}
	for _, row := range table.Rows {
		if len(row.Cells) != len(table.ColumnDefinitions) {
			t.Fatalf("%d cells under %d columns: %v", len(row.Cells), len(table.ColumnDefinitions), row.Cells)
		}
	}
	if len(table.ColumnDefinitions) < 2 || table.ColumnDefinitions[0].Name != "Name" {
		t.Fatalf("columns: %+v", table.ColumnDefinitions)
	}
	return table
}

// Tables of one object, of chunks, and of all that there is, for each kind.
func TestTables(t *testing.T) {
	client := anyPath(t, administrator(t))
	eachKind(t, shown(), func(t *testing.T, w world) {
		first, second := unique("a"), unique("b")
		made := w.create(t, first, nil)
		w.create(t, second, nil)
		everywhere := "/apis/" + w.resource.GroupVersion().String() + "/" + w.resource.Resource
		here := everywhere
		if w.namespaced {
			here = fmt.Sprintf("/apis/%s/namespaces/%s/%s", w.resource.GroupVersion(), made.GetNamespace(), w.resource.Resource)
		}
		for _, version := range []string{"v1", "v1beta1"} {
			one := table(t, client, version, here+"/"+first, nil)
			if len(one.Rows) != 1 || one.Rows[0].Cells[0] != first {
				t.Fatalf("%+v", one.Rows)
			}
			all := table(t, client, version, everywhere, nil)
			if len(all.Rows) < 2 || all.ResourceVersion == "" {
				t.Fatalf("%d rows at %q", len(all.Rows), all.ResourceVersion)
			}
			if !w.namespaced {
				continue
			}
			page := table(t, client, version, here, &metav1.ListOptions{Limit: 1})
			if len(page.Rows) != 1 || page.Rows[0].Cells[0] != first || page.Continue == "" || page.ResourceVersion == "" {
				t.Fatalf("the first page: %+v", page)
			}
			page = table(t, client, version, here, &metav1.ListOptions{Continue: page.Continue})
			if len(page.Rows) != 1 || page.Rows[0].Cells[0] != second || page.Continue != "" {
				t.Fatalf("the second page: %+v", page)
			}
		}
	})
}

// What has no rows of its own has no table.
func TestNoTableOfLayers(t *testing.T) {
	w := worldOf(t, stored()[1])
	made := w.create(t, "web", nil)
	layers := fmt.Sprintf("/apis/image.openshift.io/v1/namespaces/%s/imagestreams/web/layers", made.GetNamespace())
	request := anyPath(t, administrator(t)).Get().AbsPath(layers).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	if err := request.Do(t.Context()).Error(); !apierrors.IsNotAcceptable(err) {
		t.Fatalf("a table of layers: %v", err)
	}
}
