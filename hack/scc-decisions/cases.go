package main

import (
	"encoding/json"
	"fmt"
	"log"
	"sort"
	"strings"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1conversions "k8s.io/kubernetes/pkg/apis/core/v1"
)

// identity is who asks.
type identity struct {
	name   string
	groups []string
}

var authenticated = []string{"system:authenticated"}

var identities = []identity{
	{"dev", authenticated},
	{"v1-user", authenticated},
	{"admin", []string{"system:cluster-admins", "system:authenticated"}},
	{"everything", authenticated},
	{"nobody", nil},
}

// creations are new pods by everybody, and in every special place.
func creations() []*Case {
	var cases []*Case
	add := func(world, namespace, label, spec string, who identity) {
		name := strings.Join([]string{world, namespace, who.name, label}, "/")
		cases = append(cases, &Case{Name: name, World: world, Phase: "admit", Operation: "CREATE", Namespace: namespace,
			User: who.name, Groups: append([]string{}, who.groups...), Pod: pod(namespace, spec)})
	}
	for _, label := range sorted(pods) {
		for _, who := range identities {
			add("default", "demo", label, pods[label], who)
		}
	}
	for _, namespace := range sorted(worlds()["default"].Namespaces) {
		for _, label := range []string{"plain", "in-range", "groups"} {
			add("default", namespace, label, pods[label], identities[0])
		}
		add("default", namespace, "account", `{"spec":{"serviceAccountName":"x","containers":[{"name":"c"}]}}`, identities[0])
		add("priority", namespace, "plain", pods["plain"], identities[0])
	}
	add("default", "granted", "plain", pods["uid-zero"], identity{"local", authenticated})
	add("default", "demo", "elsewhere", pods["uid-zero"], identity{"local", authenticated})
	add("broken", "demo", "plain", pods["plain"], identities[0])
	for _, world := range sorted(specials) {
		for _, label := range sorted(pods) {
			if ofSpecial[world] == nil || contains(ofSpecial[world], label) {
				add(world, "demo", label, pods[label], identity{"special", nil})
			}
		}
	}
	return cases
}

// ofSpecial are the pods that tell something about a special SCC; all where it is not here.
var ofSpecial = map[string][]string{
	"half": {"plain"}, "unknown": {"plain"}, "nouid": {"plain"},
	"caps":       {"plain", "caps-add", "caps-drop", "caps-both", "caps-empty", "uid-zero", "privileged", "required-special-caps"},
	"readonly":   {"plain", "uid-zero", "writable", "readonly", "privileged", "sysadmin", "escalating", "uid-42", "init"},
	"labels":     {"plain", "selinux", "selinux-same", "selinux-swapped", "fsgroup", "groups", "groups-empty", "container-selinux", "init"},
	"seccomp":    {"plain", "seccomp-field", "seccomp-local", "seccomp-annotation", "seccomp-docker", "seccomp-odd", "seccomp-container", "seccomp-container-annotation", "seccomp-both", "seccomp-unconfined", "seccomp-local-nameless"},
	"anyseccomp": {"plain", "seccomp-field", "seccomp-local", "seccomp-annotation", "seccomp-odd", "seccomp-container-annotation"},
	"sysctls":    {"plain", "sysctl-safe", "sysctl-unsafe", "sysctl-mixed"},
	"flex":       {"plain", "vol-flexVolume", "vol-flexVolume-other", "vol-secret", "token"},
	"priority":   {"plain", "in-range", "groups", "uid-zero"},
}

// followUps are checks and changes of the pods that were admitted.
func followUps(created []*Case) []*Case {
	var cases []*Case
	for _, c := range created {
		if c.Error != "" {
			continue
		}
		follow := func(label, phase, operation, subresource, user string, old, pod json.RawMessage) {
			cases = append(cases, &Case{Name: c.Name + "/" + label, World: c.World, Phase: phase, Operation: operation,
				Subresource: subresource, Namespace: c.Namespace, User: user, Groups: c.Groups, Pod: pod, Old: old})
		}
		if len(c.Result) == 0 {
			c.Result = c.Pod
		}
		follow("check", "validate", "CREATE", "", c.User, nil, c.Result)
		if c.World != "default" || c.Namespace != "demo" || (c.User != "dev" && c.User != "everything") ||
			strings.Contains(c.Name, "/vol-") {
			continue
		}
		follow("exec", "connect", "CONNECT", "exec", "dev", nil, c.Result)
		label := changed(c.Result, func(pod *corev1.Pod) { pod.Labels = map[string]string{"a": "b"} })
		follow("label", "admit", "UPDATE", "", "dev", c.Result, label)
		follow("label-check", "validate", "UPDATE", "", "dev", c.Result, label)
		if !contains([]string{"plain", "uid-zero", "privileged", "init"}, c.Name[strings.LastIndex(c.Name, "/")+1:]) {
			continue
		}
		image := changed(c.Result, func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "other" })
		for _, user := range []string{"dev", "nobody", "everything"} {
			follow("image-"+user, "admit", "UPDATE", "", user, c.Result, image)
			follow("image-check-"+user, "validate", "UPDATE", "", user, c.Result, image)
			follow("attach-"+user, "connect", "CONNECT", "attach", user, nil, c.Result)
		}
		for name, text := range debuggers {
			debug := changed(c.Result, func(pod *corev1.Pod) {
				ephemeral := corev1.EphemeralContainer{}
				if err := json.Unmarshal([]byte(text), &ephemeral); err != nil {
					log.Fatal(err)
				}
				pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, ephemeral)
			})
			follow("debug-"+name, "admit", "UPDATE", "ephemeralcontainers", "dev", c.Result, debug)
			follow("debug-check-"+name, "validate", "UPDATE", "ephemeralcontainers", "dev", c.Result, debug)
		}
		for name, change := range metadata {
			follow(name, "admit", "UPDATE", "", "nobody", c.Result, changed(c.Result, change))
		}
		follow("status", "admit", "UPDATE", "status", "nobody", c.Result, label)
	}
	sort.Slice(cases, func(i, j int) bool { return cases[i].Name < cases[j].Name })
	return cases
}

var debuggers = map[string]string{
	"plain":      `{"name":"debug","image":"x"}`,
	"root":       `{"name":"debug","securityContext":{"runAsUser":0}}`,
	"privileged": `{"name":"debug","securityContext":{"privileged":true}}`,
}

var metadata = map[string]func(*corev1.Pod){
	"require":      func(pod *corev1.Pod) { pod.Annotations[securityv1.RequiredSCCAnnotation] = "anyuid" },
	"networks":     func(pod *corev1.Pod) { pod.Annotations["k8s.ovn.org/pod-networks"] = "{}" },
	"annotation":   func(pod *corev1.Pod) { pod.Annotations["some"] = "thing" },
	"finalizer":    func(pod *corev1.Pod) { pod.Finalizers = []string{"a/b"} },
	"unvalidated":  func(pod *corev1.Pod) { delete(pod.Annotations, securityv1.ValidatedSCCAnnotation) },
	"label-itself": func(pod *corev1.Pod) { pod.Labels = map[string]string{"a": "b"} },
}

// pod is a pod as an API server would hand it to admission; what it says is merged into the least of them.
func pod(namespace, text string) json.RawMessage {
	external, internal := &corev1.Pod{}, &core.Pod{}
	if err := json.Unmarshal([]byte(text), external); err != nil {
		log.Fatal(text, ": ", err)
	}
	external.Namespace = namespace
	if external.Name == "" && external.GenerateName == "" {
		external.Name = "p"
	}
	if err := corev1conversions.Convert_v1_Pod_To_core_Pod(external, internal, nil); err != nil {
		log.Fatal(err)
	}
	external = &corev1.Pod{}
	if err := corev1conversions.Convert_core_Pod_To_v1_Pod(internal, external, nil); err != nil {
		log.Fatal(err)
	}
	return encoded(external)
}

func changed(text json.RawMessage, change func(*corev1.Pod)) json.RawMessage {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(text, pod); err != nil {
		log.Fatal(fmt.Errorf("cannot decode: %w", err))
	}
	change(pod)
	return encoded(pod)
}

func sorted[T any](all map[string]T) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func contains(all []string, one string) bool {
	for _, name := range all {
		if name == one {
			return true
		}
	}
	return false
}
