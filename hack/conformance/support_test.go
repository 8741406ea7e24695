package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	projectv1 "github.com/openshift/api/project/v1"
	routev1 "github.com/openshift/api/route/v1"
	projectclient "github.com/openshift/client-go/project/clientset/versioned"
	routeclient "github.com/openshift/client-go/route/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const patience = 60 * time.Second

var counter atomic.Int64

// unique gives a name that nothing else in the cluster has.
func unique(prefix string) string {
	return fmt.Sprintf("%s-%s-%d", prefix, strconv.FormatInt(time.Now().UnixNano(), 36), counter.Add(1))
}

// environment reads a variable that has to be there.
func environment(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run this suite by hack/end-to-end", name)
	}
	return value
}

// administrator is the client configuration of the cluster's administrator, without client-side throttling.
func administrator(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", environment(t, "KUBECONFIG"))
	must(t, err)
	config.QPS, config.Burst = -1, -1
	if os.Getenv("CONFORMANCE_PROTOBUF") == "true" {
		// As the operators of OpenShift set their clients.
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
		config.ContentType = "application/vnd.kubernetes.protobuf"
	}
	return config
}

// user is the client configuration of an ordinary user who may request projects.
func user(t *testing.T, name string) *rest.Config {
	t.Helper()
	config := administrator(t)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: name,
		Groups:   []string{"system:authenticated", "system:authenticated:oauth"},
	}
	return config
}

// tenant is a new user with a project of her own.
type tenant struct {
	name    string
	project string
	config  *rest.Config
	routes  routeclient.Interface
}

func newTenant(t *testing.T) tenant {
	t.Helper()
	name := unique("user")
	config := user(t, name)
	projects, err := projectclient.NewForConfig(config)
	must(t, err)
	request := &projectv1.ProjectRequest{ObjectMeta: metav1.ObjectMeta{Name: unique("conformance")}}
	project, err := projects.ProjectV1().ProjectRequests().Create(t.Context(), request, metav1.CreateOptions{})
	must(t, err)
	routes, err := routeclient.NewForConfig(config)
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := projects.ProjectV1().Projects().Delete(ctx, project.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete project %s: %v", project.Name, err)
		}
	})
	return tenant{name: name, project: project.Name, config: config, routes: routes}
}

// newRoute is a Route to a Service, its host left to the server.
func newRoute(name string) *routev1.Route {
	return &routev1.Route{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       routev1.RouteSpec{To: routev1.RouteTargetReference{Kind: "Service", Name: "web"}},
	}
}

// createRoute creates a Route and returns it.
func (u tenant) createRoute(t *testing.T, name string) *routev1.Route {
	t.Helper()
	route, err := u.routes.RouteV1().Routes(u.project).Create(t.Context(), newRoute(name), metav1.CreateOptions{})
	must(t, err)
	return route
}

// admitted tells whether the default router admits the Route.
func admitted(route *routev1.Route) bool {
	for _, ingress := range route.Status.Ingress {
		for _, condition := range ingress.Conditions {
			if ingress.RouterName == "default" && condition.Type == routev1.RouteAdmitted {
				return condition.Status == "True"
			}
		}
	}
	return false
}

// must ends the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually looks until done says nothing more is missing.
func eventually(t *testing.T, what string, done func() (missing string)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	missing := done()
	for missing != "" {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %s", what, patience, missing)
		}
		time.Sleep(50 * time.Millisecond)
		missing = done()
	}
}

// revision reads a resourceVersion as a number.
func revision(t *testing.T, text string) uint64 {
	t.Helper()
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("resourceVersion %q: %v", text, err)
	}
	return number
}

// crashOurServer kills picoshift-apiserver as a crash would.
func crashOurServer(t *testing.T) {
	t.Helper()
	endServer(t, "picoshift-apiserver", syscall.SIGKILL)
}

// endGrace is how long an orderly end may take before the server is killed, as by `picoshift down`. kube-apiserver would wait
// a minute for open watches.
const endGrace = 20 * time.Second

// endServer ends a server of the control plane by a signal and waits until it is gone.
func endServer(t *testing.T, name string, signal syscall.Signal) {
	t.Helper()
	// It fails when another one is not healthy, as after the end of what it needs.
	output, _ := exec.Command(environment(t, "PICOSHIFT_BIN"), "status", "-o", "json").Output()
	var status struct {
		Components []struct {
			Name string
			PID  int
		}
	}
	must(t, json.Unmarshal(output, &status))
	for _, component := range status.Components {
		if component.Name == name {
			must(t, syscall.Kill(component.PID, signal))
			if ended(component.PID, endGrace) {
				return
			}
			must(t, syscall.Kill(component.PID, syscall.SIGKILL))
			if !ended(component.PID, endGrace) {
				t.Fatalf("process %d outlives its SIGKILL", component.PID)
			}
			return
		}
	}
	t.Fatalf("no %s in %s", name, output)
}

// ended waits until a process has ended, which takes a moment after a signal, and tells whether it has.
func ended(pid int, within time.Duration) bool {
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return true
		}
	}
	return false
}

// startOurServer starts what is missing and returns when it is ready.
func startOurServer(t *testing.T) {
	t.Helper()
	picoshift(t, "up", "--no-kubeconfig")
}

func picoshift(t *testing.T, args ...string) []byte {
	t.Helper()
	environment(t, "XDG_STATE_HOME")
	command := exec.Command(environment(t, "PICOSHIFT_BIN"), args...)
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("picoshift %s: %v\n%s%s", strings.Join(args, " "), err, output, stderr.String())
	}
	return output
}
