package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log"
	"time"

	"github.com/openshift/apiserver-library-go/pkg/securitycontextconstraints/sccadmission"
	securityfake "github.com/openshift/client-go/security/clientset/versioned/fake"
	securityinformers "github.com/openshift/client-go/security/informers/externalversions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1conversions "k8s.io/kubernetes/pkg/apis/core/v1"
)

// Judge is the library with a world.
type Judge struct {
	world      *World
	kube       informers.SharedInformerFactory
	security   securityinformers.SharedInformerFactory
	constraint plugin
}

type plugin interface {
	admission.MutationInterface
	admission.ValidationInterface
}

func newJudge(world *World) *Judge {
	var namespaces []runtime.Object
	for name, annotations := range world.Namespaces {
		meta := metav1.ObjectMeta{Name: name, Annotations: annotations}
		namespaces = append(namespaces, &corev1.Namespace{ObjectMeta: meta})
	}
	// Made by requests: given whole, they would be kept under a plural that is guessed.
	sccs := securityfake.NewSimpleClientset()
	for _, scc := range world.SCCs {
		_, err := sccs.SecurityV1().SecurityContextConstraints().Create(context.Background(), scc, metav1.CreateOptions{})
		if err != nil {
			log.Fatal(err)
		}
	}
	j := &Judge{
		world:    world,
		kube:     informers.NewSharedInformerFactory(kubefake.NewClientset(namespaces...), time.Hour),
		security: securityinformers.NewSharedInformerFactory(sccs, time.Hour),
	}
	constraint := sccadmission.NewConstraint()
	constraint.SetExternalKubeInformerFactory(j.kube)
	constraint.SetSecurityInformers(j.security.Security().V1().SecurityContextConstraints())
	constraint.SetAuthorizer(j)
	j.constraint = constraint
	j.kube.Start(nil)
	j.security.Start(nil)
	j.kube.WaitForCacheSync(nil)
	j.security.WaitForCacheSync(nil)
	return j
}

// Authorize answers as RBAC would.
func (j *Judge) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	subjects := append([]string{a.GetUser().GetName()}, a.GetUser().GetGroups()...)
	for _, grant := range j.world.Grants {
		for _, subject := range subjects {
			if subject == grant.Subject && (grant.SCC == "*" || grant.SCC == a.GetName()) &&
				(grant.Namespace == "" || grant.Namespace == a.GetNamespace()) &&
				a.GetVerb() == "use" && a.GetResource() == "securitycontextconstraints" {
				return authorizer.DecisionAllow, "", nil
			}
		}
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// attributes keep what is said to the audit log.
type attributes struct {
	admission.Attributes
	audit map[string]string
}

// AddAnnotation keeps the first word, as the real log does.
func (a *attributes) AddAnnotation(key, value string) error {
	if _, ok := a.audit[key]; !ok {
		a.audit[key] = value
	}
	return nil
}

func (j *Judge) decide(ctx context.Context, c *Case) error {
	pod, err := internal(c.Pod)
	if err != nil {
		return err
	}
	var old runtime.Object
	if len(c.Old) > 0 {
		if old, err = internal(c.Old); err != nil {
			return err
		}
	}
	operation := admission.Operation(c.Operation)
	if operation == admission.Connect {
		return j.connect(ctx, c, pod)
	}
	kind, resource := core.Kind("Pod").WithVersion("version"), core.Resource("pods").WithVersion("version")
	info := &user.DefaultInfo{Name: c.User, Groups: c.Groups}
	a := &attributes{
		Attributes: admission.NewAttributesRecord(pod, old, kind, c.Namespace, pod.Name, resource, c.Subresource,
			operation, nil, false, info),
		audit: map[string]string{},
	}
	if c.Phase == "admit" {
		err = j.constraint.Admit(ctx, a, nil)
	} else {
		err = j.constraint.Validate(ctx, a, nil)
	}
	if c.Audit = a.audit; err != nil {
		c.Error = err.Error()
		return nil
	}
	external := &corev1.Pod{}
	if err := corev1conversions.Convert_core_Pod_To_v1_Pod(pod, external, nil); err != nil {
		return err
	}
	if result := encoded(external); !bytes.Equal(result, c.Pod) {
		c.Result = result
	}
	return nil
}

// connect asks whether the user may enter the pod.
func (j *Judge) connect(ctx context.Context, c *Case, pod *core.Pod) error {
	external := &corev1.Pod{}
	if err := json.Unmarshal(c.Pod, external); err != nil {
		return err
	}
	restrictions := sccadmission.NewSCCExecRestrictions()
	restrictions.SetExternalKubeInformerFactory(j.kube)
	restrictions.SetSecurityInformers(j.security.Security().V1().SecurityContextConstraints())
	restrictions.SetAuthorizer(j)
	restrictions.SetExternalKubeClientSet(kubefake.NewClientset(external))
	resource := core.Resource("pods").WithVersion("version")
	a := admission.NewAttributesRecord(nil, nil, core.Kind("Pod").WithVersion("version"), c.Namespace, pod.Name, resource,
		c.Subresource, admission.Connect, nil, false, &user.DefaultInfo{Name: c.User, Groups: c.Groups})
	if err := restrictions.Validate(ctx, a, nil); err != nil {
		c.Error = err.Error()
	}
	return nil
}

func internal(text []byte) (*core.Pod, error) {
	external, pod := &corev1.Pod{}, &core.Pod{}
	if err := json.Unmarshal(text, external); err != nil {
		return nil, err
	}
	return pod, corev1conversions.Convert_v1_Pod_To_core_Pod(external, pod, nil)
}
