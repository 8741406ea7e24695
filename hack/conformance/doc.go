// Package conformance drives picoshift with the Go clients that OpenShift's and Kubernetes' own programs use:
// typed clients, informers, listers, the metadata and dynamic clients, discovery, and controller-runtime.
//
// The tests need a running control plane: KUBECONFIG names its administrator's kubeconfig, PICOSHIFT_BIN the
// command, XDG_STATE_HOME its state. A missing variable is a failure, never a skip. Run them once with
// KUBE_FEATURE_WatchListClient=true and once with false; CONFORMANCE_PROTOBUF=true lets the typed clients read and
// write protobuf. hack/end-to-end does both, once with protobuf and once with JSON.
package conformance
