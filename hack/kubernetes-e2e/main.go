// Program kubernetes-e2e runs Kubernetes' own end-to-end tests of API machinery and of authentication and authorization,
// unchanged, against the control plane of KUBECONFIG, which has no nodes.
//
// docs/conformance.md says of each test whether it runs, and what mirrors it on our kinds; that list is what this
// program goes by. It runs nothing and fails when the list is not true: when a test of upstream is missing in it, when
// it names one that upstream does not have, or a mirror that is not there.
//
// Tests run in a few processes, since most of a test is waiting; those that have to be alone run after them. With
// KUBERNETES_E2E=all the slow ones run too, and with KUBERNETES_E2E_SERVER=kube-apiserver they go around the shim.
//
// For each test there is one line as `go test` writes them (`--- PASS`, `--- FAIL` or `--- SKIP`), which hack/test counts.
// Tests that the list leaves out have no line.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	_ "k8s.io/kubernetes/test/e2e/apimachinery"
	_ "k8s.io/kubernetes/test/e2e/auth"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
)

const suite = "Kubernetes e2e"

// kubectlVariable says where kubectl is.
const kubectlVariable = "PICOSHIFT_KUBECTL"

// root is the repository, seen from this program's directory, where it has to be started.
const root = "../.."

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes-e2e:", err)
		os.Exit(1)
	}
}

func run() error {
	home, err := os.MkdirTemp(os.Getenv("PICOSHIFT_E2E_HOME"), "kubernetes-e2e-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	if err := configure(home); err != nil {
		return err
	}
	// kubectl keeps its caches there.
	if err := os.Setenv("HOME", home); err != nil {
		return err
	}
	list, err := readList(filepath.Join(root, "docs/conformance.md"))
	if err != nil {
		return err
	}
	specs := ginkgo.PreviewSpecs(suite).SpecReports
	chosen, err := list.choose(specs, os.Getenv("KUBERNETES_E2E") == "all")
	if err != nil {
		return err
	}
	return runAll(chosen)
}

// configure sets the framework up for a cluster that has no nodes and is nobody's cloud.
func configure(home string) error {
	kubeconfig := os.Getenv("KUBECONFIG")
	if kubeconfig == "" {
		return fmt.Errorf("KUBECONFIG is not set: run me by hack/end-to-end")
	}
	kubeconfig, err := redirect(kubeconfig, home)
	if err != nil {
		return err
	}
	kubectl, err := findKubectl()
	if err != nil {
		return err
	}
	// For the processes that this one starts.
	if err := os.Setenv(kubectlVariable, kubectl); err != nil {
		return err
	}
	flags := flag.NewFlagSet(suite, flag.ContinueOnError)
	config.CopyFlags(config.Flags, flags)
	framework.RegisterCommonFlags(flags)
	framework.RegisterClusterFlags(flags)
	if err := flags.Parse([]string{
		"--kubeconfig=" + kubeconfig, "--kubectl-path=" + kubectl, "--provider=skeleton",
		"--allowed-not-ready-nodes=-1", "--num-nodes=0", "--dump-logs-on-failure=false",
	}); err != nil {
		return err
	}
	framework.AfterReadingAllFlags(&framework.TestContext)
	gomega.RegisterFailHandler(framework.Fail)
	return nil
}

// findKubectl looks where the other end-to-end tests look: PICOSHIFT_KUBECTL, what `picoshift build` built, the PATH.
func findKubectl() (string, error) {
	if path := os.Getenv(kubectlVariable); path != "" {
		return path, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	built, err := filepath.Glob(filepath.Join(cache, "picoshift/bin/*/kubectl"))
	if err != nil {
		return "", err
	}
	if len(built) > 0 {
		return slices.Max(built), nil
	}
	return exec.LookPath("kubectl")
}

// outcome is what ginkgo tells about failures; the lines tell the rest.
type outcome struct{ failed bool }

func (o *outcome) Fail() { o.failed = true }

// runSpecs runs the tests with these full texts in this process, which can do so once.
func runSpecs(chosen []string) error {
	suiteConfig, reporterConfig := ginkgo.GinkgoConfiguration()
	for _, text := range chosen {
		suiteConfig.FocusStrings = append(suiteConfig.FocusStrings, "^"+regexp.QuoteMeta(suite+" "+text)+"$")
	}
	// The same order each time.
	suiteConfig.RandomSeed = 1
	reporterConfig.NoColor = true
	reporterConfig.ForceNewlines = true
	reporterConfig.SilenceSkips = true
	ran := 0
	ginkgo.ReportAfterEach(func(report ginkgo.SpecReport) {
		if slices.Contains(chosen, report.FullText()) {
			ran++
			fmt.Printf("\n--- %s: %s (%.1fs)\n", verdict(report), report.FullText(), report.RunTime.Seconds())
		}
	})
	var all outcome
	ginkgo.RunSpecs(&all, suite, suiteConfig, reporterConfig)
	switch {
	case all.failed:
		return fmt.Errorf("failed")
	case ran != len(chosen):
		return fmt.Errorf("%d of %d ran", ran, len(chosen))
	}
	return nil
}

// verdict is the word for it in `go test`.
func verdict(report ginkgo.SpecReport) string {
	switch report.State {
	case types.SpecStatePassed:
		return "PASS"
	case types.SpecStateSkipped, types.SpecStatePending:
		return "SKIP"
	default:
		return "FAIL"
	}
}
