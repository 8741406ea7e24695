package conformance

import (
	"context"
	"testing"

	userv1 "github.com/openshift/api/user/v1"
	userclient "github.com/openshift/client-go/user/clientset/versioned"
	userinformers "github.com/openshift/client-go/user/informers/externalversions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func administratorOfUsers(t *testing.T) userclient.Interface {
	t.Helper()
	client, err := userclient.NewForConfig(administrator(t))
	must(t, err)
	return client
}

func newUser(t *testing.T, client userclient.Interface, name string) *userv1.User {
	t.Helper()
	made, err := client.UserV1().Users().Create(t.Context(), &userv1.User{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		err := client.UserV1().Users().Delete(context.Background(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete user %s: %v", name, err)
		}
	})
	return made
}

func TestTypedUsers(t *testing.T) {
	client := administratorOfUsers(t)
	users := client.UserV1().Users()
	name := unique("carol@dom")
	made := newUser(t, client, name)
	if made.UID == "" || made.ResourceVersion == "" || made.Groups != nil || made.Generation != 0 {
		t.Fatalf("created: %+v", made)
	}
	made.FullName = "Carol"
	made.Groups = []string{"system:masters"}
	updated, err := users.Update(t.Context(), made, metav1.UpdateOptions{})
	must(t, err)
	if updated.FullName != "Carol" || updated.Groups != nil {
		t.Fatalf("updated: %+v", updated)
	}
	if _, err := users.Update(t.Context(), made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Fatalf("an old resourceVersion: %v", err)
	}
	updated.ResourceVersion = ""
	if _, err := users.Update(t.Context(), updated, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Fatalf("no resourceVersion: %v", err)
	}
	if _, err := users.Get(t.Context(), "system:none", metav1.GetOptions{}); !apierrors.IsInvalid(err) {
		t.Fatalf("a name that no user can have: %v", err)
	}
	me, err := users.Get(t.Context(), "~", metav1.GetOptions{})
	must(t, err)
	if me.Name == "" || len(me.Groups) == 0 {
		t.Fatalf("the caller: %+v", me)
	}
}

func TestUserOfTheCaller(t *testing.T) {
	admin := administratorOfUsers(t)
	name, group := unique("erin"), unique("devs")
	client, err := userclient.NewForConfig(user(t, name))
	must(t, err)
	groups := admin.UserV1().Groups()
	_, err = groups.Create(t.Context(), &userv1.Group{ObjectMeta: metav1.ObjectMeta{Name: group}, Users: userv1.OptionalNames{name}}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, groups.Delete(context.Background(), group, metav1.DeleteOptions{})) })
	me, err := client.UserV1().Users().Get(t.Context(), "~", metav1.GetOptions{})
	must(t, err)
	if len(me.Groups) != 3 || me.Groups[0] != group || me.Name != name || me.UID != "" {
		t.Fatalf("the caller: %+v", me)
	}
}

func TestMappingsByTypedClient(t *testing.T) {
	client := administratorOfUsers(t)
	carol, dave := newUser(t, client, unique("carol")), newUser(t, client, unique("dave"))
	identities, mappings := client.UserV1().Identities(), client.UserV1().UserIdentityMappings()
	identity, err := identities.Create(t.Context(), &userv1.Identity{ProviderName: "ldap", ProviderUserName: carol.Name}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, identities.Delete(context.Background(), identity.Name, metav1.DeleteOptions{})) })
	if identity.Name != "ldap:"+carol.Name || identity.User != (corev1.ObjectReference{}) {
		t.Fatalf("identity: %+v", identity)
	}
	wanted := &userv1.UserIdentityMapping{
		Identity: corev1.ObjectReference{Name: identity.Name},
		User:     corev1.ObjectReference{Name: carol.Name},
	}
	made, err := mappings.Create(t.Context(), wanted, metav1.CreateOptions{})
	must(t, err)
	if made.UID != identity.UID || made.User.UID != carol.UID || made.Name != identity.Name {
		t.Fatalf("mapping: %+v", made)
	}
	if _, err := mappings.Create(t.Context(), wanted, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("twice: %v", err)
	}
	made.User = corev1.ObjectReference{Name: dave.Name}
	moved, err := mappings.Update(t.Context(), made, metav1.UpdateOptions{})
	must(t, err)
	if moved.User.UID != dave.UID {
		t.Fatalf("moved: %+v", moved)
	}
	must(t, mappings.Delete(t.Context(), identity.Name, metav1.DeleteOptions{}))
	if _, err := mappings.Get(t.Context(), identity.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("after delete: %v", err)
	}
}

func TestUserInformers(t *testing.T) {
	client := administratorOfUsers(t)
	factory := userinformers.NewSharedInformerFactory(client, 0)
	api := factory.User().V1()
	users, groups, identities := api.Users(), api.Groups(), api.Identities()
	ctx, stop := context.WithCancel(t.Context())
	defer factory.Shutdown()
	synced := []func() bool{
		users.Informer().HasSynced, groups.Informer().HasSynced, identities.Informer().HasSynced,
	}
	defer stop()
	factory.Start(ctx.Done())
	for _, hasSynced := range synced {
		waitForSync(t, hasSynced)
	}
	carol := newUser(t, client, unique("carol"))
	group := unique("devs")
	_, err := client.UserV1().Groups().Create(t.Context(), &userv1.Group{ObjectMeta: metav1.ObjectMeta{Name: group}}, metav1.CreateOptions{})
	must(t, err)
	identity, err := client.UserV1().Identities().Create(t.Context(), &userv1.Identity{ProviderName: "p", ProviderUserName: carol.Name}, metav1.CreateOptions{})
	must(t, err)
	patch := []byte(`{"users":["` + carol.Name + `"]}`)
	_, err = client.UserV1().Groups().Patch(t.Context(), group, types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
	eventually(t, "the listers have all three", func() string {
		if _, err := users.Lister().Get(carol.Name); err != nil {
			return err.Error()
		}
		if _, err := identities.Lister().Get(identity.Name); err != nil {
			return err.Error()
		}
		seen, err := groups.Lister().Get(group)
		if err != nil {
			return err.Error()
		}
		if len(seen.Users) != 1 || seen.Users[0] != carol.Name {
			return "the group has no members yet"
		}
		return ""
	})
	must(t, client.UserV1().Groups().Delete(t.Context(), group, metav1.DeleteOptions{}))
	must(t, client.UserV1().Identities().Delete(t.Context(), identity.Name, metav1.DeleteOptions{}))
	eventually(t, "the listers have lost two", func() string {
		if _, err := groups.Lister().Get(group); !apierrors.IsNotFound(err) {
			return "the group is still there"
		}
		if _, err := identities.Lister().Get(identity.Name); !apierrors.IsNotFound(err) {
			return "the identity is still there"
		}
		return ""
	})
}
