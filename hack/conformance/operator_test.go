package conformance

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// What opendatahub-operator watches from its start: it ends when one is not served, or its list fails.
var operatorWatches = map[string][]string{
	"route.openshift.io/v1":             {"Route"},
	"oauth.openshift.io/v1":             {"OAuthClient"},
	"user.openshift.io/v1":              {"Group"},
	"image.openshift.io/v1":             {"ImageStream"},
	"config.openshift.io/v1":            {"Authentication", "Ingress", "ClusterVersion", "Infrastructure", "APIServer", "Proxy"},
	"operator.openshift.io/v1":          {"IngressController"},
	"console.openshift.io/v1":           {"ConsoleLink"},
	"security.openshift.io/v1":          {"SecurityContextConstraints"},
	"gateway.networking.k8s.io/v1":      {"GatewayClass", "Gateway", "HTTPRoute"},
	"gateway.networking.k8s.io/v1beta1": {"ReferenceGrant"},
	"networking.istio.io/v1":            {"DestinationRule"},
	"networking.istio.io/v1alpha3":      {"EnvoyFilter"},
	"monitoring.coreos.com/v1":          {"ServiceMonitor", "PodMonitor", "PrometheusRule"},
	"operators.coreos.com/v1alpha1":     {"Subscription", "ClusterServiceVersion", "CatalogSource"},
	"operators.coreos.com/v2":           {"OperatorCondition"},
	"jobset.x-k8s.io/v1alpha2":          {"JobSet"},
	"apiextensions.k8s.io/v1":           {"CustomResourceDefinition"},
}

// unstructuredOf is an empty object of a kind.
func unstructuredOf(version, kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(version)
	object.SetKind(kind)
	return object
}

// logOfErrors keeps the lines that a manager or a client logs as errors.
type logOfErrors struct {
	mutex sync.Mutex
	lines []string
}

func (l *logOfErrors) write(prefix, arguments string) {
	// An informational line has a level, an error has none.
	if strings.Contains(arguments, `"level"=`) {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.lines = append(l.lines, prefix+" "+arguments)
}

// A manager with the caches of an operator that takes the cluster for OpenShift starts without an error line.
func TestOperatorStarts(t *testing.T) {
	errors := &logOfErrors{}
	logger := funcr.New(errors.write, funcr.Options{})
	klog.SetLogger(logger)
	defer klog.ClearLogger()
	config := administrator(t)
	// Custom resources have no protobuf.
	config.ContentType, config.AcceptContentTypes = "", ""

	named := func(name string) cache.ByObject {
		return cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", name)}
	}
	operator, err := manager.New(config, manager.Options{
		Scheme:  runtime.NewScheme(),
		Logger:  logger,
		Metrics: server.Options{BindAddress: "0"},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			unstructuredOf("operator.openshift.io/v1", "IngressController"): named("default"),
			unstructuredOf("config.openshift.io/v1", "Authentication"):      named("cluster"),
		}},
	})
	must(t, err)
	startUpReads(t, operator.GetAPIReader())

	for version, kinds := range operatorWatches {
		for _, kind := range kinds {
			_, err := operator.GetCache().GetInformer(t.Context(), unstructuredOf(version, kind), cache.BlockUntilSynced(false))
			must(t, err)
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- operator.Start(ctx) }()
	if !operator.GetCache().WaitForCacheSync(ctx) {
		t.Error("the caches did not sync within the two minutes that controller-runtime gives them")
	}
	controllers := &unstructured.UnstructuredList{}
	controllers.SetGroupVersionKind(schema.FromAPIVersionAndKind("operator.openshift.io/v1", "IngressControllerList"))
	must(t, operator.GetCache().List(ctx, controllers))
	if len(controllers.Items) != 1 {
		t.Errorf("%d IngressControllers", len(controllers.Items))
	}
	stop()
	must(t, <-ended)
	errors.mutex.Lock()
	defer errors.mutex.Unlock()
	if len(errors.lines) > 0 {
		t.Errorf("error lines:\n%s", strings.Join(errors.lines, "\n"))
	}
}

// startUpReads does what the operator reads before anything else.
func startUpReads(t *testing.T, reader client.Reader) {
	t.Helper()
	one := func(version, kind, namespace, name string, path ...string) string {
		object := unstructuredOf(version, kind)
		must(t, reader.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object))
		if len(path) == 0 {
			return ""
		}
		value, found, err := unstructured.NestedString(object.Object, path...)
		must(t, err)
		if !found {
			t.Errorf("%s %s has no %v", kind, name, path)
		}
		return value
	}
	services := &unstructured.UnstructuredList{}
	services.SetGroupVersionKind(schema.FromAPIVersionAndKind("operators.coreos.com/v1alpha1", "ClusterServiceVersionList"))
	must(t, reader.List(t.Context(), services, client.InNamespace("openshift-operators"), client.Limit(100)))

	version := unstructuredOf("config.openshift.io/v1", "ClusterVersion")
	must(t, reader.Get(t.Context(), client.ObjectKey{Name: "version"}, version))
	history, _, err := unstructured.NestedSlice(version.Object, "status", "history")
	must(t, err)
	if len(history) == 0 {
		t.Fatal("the ClusterVersion has no history")
	}
	one("v1", "ConfigMap", "kube-system", "cluster-config-v1", "data", "install-config")
	one("config.openshift.io/v1", "APIServer", "", "cluster")
	if mode := one("config.openshift.io/v1", "Authentication", "", "cluster", "spec", "type"); mode != "IntegratedOAuth" {
		t.Errorf("the Authentication is %q", mode)
	}
	one("config.openshift.io/v1", "Ingress", "", "cluster", "spec", "domain")
	topology := one("config.openshift.io/v1", "Infrastructure", "", "cluster", "status", "controlPlaneTopology")
	if topology != "SingleReplica" {
		t.Errorf("the control plane is %q", topology)
	}
	one("operator.openshift.io/v1", "IngressController", "openshift-ingress-operator", "default", "status", "domain")
	one("v1", "Secret", "openshift-ingress", "router-certs-default", "data", "tls.crt")
}
