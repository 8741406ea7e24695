package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
)

// serverVariable names the component to run against instead of what the kubeconfig names, the shim: `kube-apiserver`.
const serverVariable = "KUBERNETES_E2E_SERVER"

// redirect writes a copy of a kubeconfig, in a directory, that leads to the component that is wanted. It gives the kubeconfig
// itself when none is.
func redirect(kubeconfig, directory string) (string, error) {
	component := os.Getenv(serverVariable)
	if component == "" {
		return kubeconfig, nil
	}
	output, err := exec.Command(os.Getenv("PICOSHIFT_BIN"), "status", "-o", "json").Output()
	if err != nil {
		return "", fmt.Errorf("picoshift status: %w", err)
	}
	var status struct {
		Components []struct {
			Name string
			Port int
		}
	}
	if err := json.Unmarshal(output, &status); err != nil {
		return "", err
	}
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return "", err
	}
	for _, found := range status.Components {
		if found.Name != component {
			continue
		}
		for _, cluster := range config.Clusters {
			cluster.Server = fmt.Sprintf("https://127.0.0.1:%d", found.Port)
		}
		path := filepath.Join(directory, "kubeconfig")
		return path, clientcmd.WriteToFile(*config, path)
	}
	return "", fmt.Errorf("%s: no component %q in %s", serverVariable, component, output)
}
