package conformance

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime/pprof"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// restartsVariable says for how many seconds at least the servers are restarted: 75, unless it is set.
const restartsVariable = "CONFORMANCE_RESTARTS_SECONDS"

// restarted are the servers that end in turn, in this order.
var restarted = []string{"picoshift-shim", "picoshift-apiserver", "kube-apiserver", "picoshift-controllers", "etcd"}

// TestInformersAcrossRestarts ends one server after the other, in an orderly way and by force, while objects are written, and
// expects of informers what client-go promises: they tell all that was written, in order, but for what a list passes over,
// and in the end they hold what the server has.
func TestInformersAcrossRestarts(t *testing.T) {
	before := informerGoroutines(t)
	u := newTenant(t)
	admin := administrator(t)
	observers := []*observer{
		newObserver(t, "a certificate", admin, u.project),
		newObserver(t, "a token", robot(t, admin, u.project), u.project),
	}
	stop := make(chan struct{})
	stopInformers := sync.OnceFunc(func() {
		close(stop)
		for _, o := range observers {
			for _, shutdown := range o.shutdown {
				shutdown()
			}
		}
	})
	defer stopInformers()
	for _, o := range observers {
		var synced []cache.InformerSynced
		for _, start := range o.start {
			start(stop)
		}
		for _, kind := range o.kinds {
			synced = append(synced, kind.informer.HasSynced)
		}
		waitForSync(t, synced...)
	}
	writers := newWriters(t, admin, u.project)
	finish := start(t, writers)
	restarts := restartInTurn(t)
	finish()

	for _, w := range writers {
		if w.problem != nil {
			t.Error(w.problem)
		}
	}
	eventually(t, "the last write of every object was told", func() string { return lastMissing(observers, writers) })
	for _, o := range observers {
		eventually(t, "caches and lists agree", func() string { return o.differs(t) })
	}
	t.Logf("restarts: %v", restarts)
	for _, o := range observers {
		for resource, w := range writers {
			o.compare(t, resource, w)
		}
		o.report(t)
	}
	stopInformers()
	eventually(t, "nothing of the informers goes on", func() string {
		if now := informerGoroutines(t); now > before {
			return fmt.Sprintf("%d goroutines, %d before", now, before)
		}
		return ""
	})
}

// robot is the client configuration of a service account that may read everything.
func robot(t *testing.T, admin *rest.Config, namespace string) *rest.Config {
	t.Helper()
	client, err := kubernetes.NewForConfig(admin)
	must(t, err)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "informed"}}
	_, err = client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{})
	must(t, err)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: unique("informed")},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}},
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := client.RbacV1().ClusterRoleBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete %s: %v", binding.Name, err)
		}
	})
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](86400)}}
	request, err = client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account.Name, request, metav1.CreateOptions{})
	must(t, err)
	config := rest.AnonymousClientConfig(admin)
	config.QPS, config.Burst = -1, -1
	config.BearerToken = request.Status.Token
	return config
}

// newWriters makes one for each kind that is written, by resource.
func newWriters(t *testing.T, config *rest.Config, namespace string) map[string]*writer {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	target := map[string]any{"kind": "Service", "name": "web"}
	writers := map[string]*writer{
		"configmaps":   {kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}},
		"routes":       {kind: schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: "Route"}, spec: map[string]any{"to": target}},
		"imagestreams": {kind: schema.GroupVersionKind{Group: "image.openshift.io", Version: "v1", Kind: "ImageStream"}},
	}
	for resource, w := range writers {
		w.client = client.Resource(w.kind.GroupVersion().WithResource(resource)).Namespace(namespace)
	}
	return writers
}

// start lets writers run; the function that it gives ends them and waits for what they have under way.
func start(t *testing.T, writers map[string]*writer) (finish func()) {
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Add(len(writers))
	for _, w := range writers {
		go func() {
			defer running.Done()
			w.run(t.Context(), stop)
		}()
	}
	finish = sync.OnceFunc(func() {
		close(stop)
		running.Wait()
	})
	t.Cleanup(finish)
	return finish
}

// restartInTurn ends servers and brings them back, each by each signal, for as long as is wanted, and counts.
func restartInTurn(t *testing.T) map[string]int {
	t.Helper()
	wanted := 75 * time.Second
	if text := os.Getenv(restartsVariable); text != "" {
		seconds, err := time.ParseDuration(text + "s")
		must(t, err)
		wanted = seconds
	}
	restarts := map[string]int{}
	signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}
	began := time.Now()
	for turn := 0; turn < 2*len(restarted) || time.Since(began) < wanted; turn++ {
		server := restarted[turn%len(restarted)]
		// The number of servers is odd, so that each gets the other signal in its next turn.
		signal := signals[turn%2]
		endServer(t, server, signal)
		bringBack(t)
		restarts[fmt.Sprintf("%s by %s", server, signal)]++
		// Sometimes the next ends while informers still come back from the last, sometimes when all is quiet again.
		time.Sleep(time.Duration(turn%4) * time.Second)
	}
	return restarts
}

// bringBack starts what is missing. Other control planes on the machine may take a port between two looks at it, and then the
// next attempt chooses another; what is wrong with a server itself is still wrong then.
func bringBack(t *testing.T) {
	t.Helper()
	first, err := exec.Command(environment(t, "PICOSHIFT_BIN"), "up", "--no-kubeconfig").CombinedOutput()
	if err != nil {
		t.Logf("once more, after: %v\n%s", err, first)
		startOurServer(t)
	}
}

// informerGoroutines counts goroutines with client-go's informers on their stacks.
func informerGoroutines(t *testing.T) int {
	t.Helper()
	var stacks bytes.Buffer
	must(t, pprof.Lookup("goroutine").WriteTo(&stacks, 2))
	count := 0
	for _, stack := range strings.Split(stacks.String(), "\n\n") {
		if strings.Contains(stack, "k8s.io/client-go/tools/cache") || strings.Contains(stack, "k8s.io/apimachinery/pkg/watch") {
			count++
		}
	}
	return count
}

// lastMissing says which object's last write was not told.
func lastMissing(observers []*observer, writers map[string]*writer) string {
	for _, o := range observers {
		for resource, w := range writers {
			last := map[string]write{}
			for _, done := range w.written {
				last[done.object] = done
			}
			kept := o.journals[resource]
			kept.Lock()
			defer kept.Unlock()
			for name, done := range last {
				told := kept.told[name]
				if len(told) == 0 || !done.is(told[len(told)-1]) {
					return fmt.Sprintf("%s: %s %s, write %d (deletion: %v), was not told to %s", done.done, resource, name, done.number, done.deletion, o.name)
				}
			}
		}
	}
	return ""
}
