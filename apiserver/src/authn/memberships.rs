//! Which OpenShift groups a user is in, and the identity of a request with these groups.
//!
//! In: Group objects as they are written, from the store of `groups`. Out: identities with the names of their groups
//! added, before anything is authorized. As in OpenShift, only users of the OAuth server have groups: requests that
//! carry `system:authenticated:oauth`. Service accounts, certificates and nodes get nothing.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use picoshift_machinery::UserInfo;

use super::Identity;

/// Group of users who authenticated at the OAuth server.
pub const OAUTH: &str = "system:authenticated:oauth";

/// Users of this beginning are service accounts, whatever groups they claim.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Names of groups or users, sorted.
pub type Names = BTreeSet<Arc<str>>;

/// What one write of a group did.
#[derive(Debug)]
pub struct MembersChange {
    /// The group.
    pub group: Arc<str>,
    /// Users who are new in it.
    pub joined: Names,
    /// Users who are no longer in it.
    pub left: Names,
}

/// Is told of every change, in order.
type Listener = Box<dyn Fn(&Arc<MembersChange>) + Send + Sync>;

/// The groups of every user who is in any.
#[derive(Default)]
pub struct Memberships {
    groups: RwLock<HashMap<Arc<str>, Arc<Names>>>,
    listener: OnceLock<Listener>,
}

impl Memberships {
    /// Nobody is in any group.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whom to tell of changes; the first caller is kept. It is called on the store's commit path: shortly.
    pub fn on_change(&self, listener: impl Fn(&Arc<MembersChange>) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener));
    }

    /// A group had the members `old` and has `new`. Calls for one group come in the order of its writes.
    pub fn change(&self, group: &str, old: &Names, new: &Names) {
        let difference = |a: &Names, b: &Names| a.difference(b).cloned().collect::<Names>();
        let change =
            MembersChange { group: group.into(), joined: difference(new, old), left: difference(old, new) };
        if change.joined.is_empty() && change.left.is_empty() {
            return;
        }
        let mut groups = self.groups.write();
        for user in &change.joined {
            Arc::make_mut(groups.entry(Arc::clone(user)).or_default()).insert(Arc::clone(&change.group));
        }
        for user in &change.left {
            if let Some(names) = groups.get_mut(user) {
                Arc::make_mut(names).remove(&change.group);
                if names.is_empty() {
                    groups.remove(user);
                }
            }
        }
        drop(groups);
        if let Some(listener) = self.listener.get() {
            listener(&Arc::new(change));
        }
    }

    /// The groups that a request of `user` gets; `None` where there is none.
    #[must_use]
    pub fn of(&self, user: &UserInfo) -> Option<Arc<Names>> {
        if !has_groups(user) {
            return None;
        }
        self.groups.read().get(user.name.as_str()).cloned()
    }

    /// The identity with its groups; itself where it gets none that it has not already.
    #[must_use]
    pub fn join(&self, identity: &Arc<Identity>) -> Arc<Identity> {
        let mut user = Arc::clone(&identity.user);
        if self.join_user(&mut user) {
            return Arc::new(Identity::of(user, identity.method));
        }
        Arc::clone(identity)
    }

    /// Adds a user's groups; whether there were any that it had not already.
    pub fn join_user(&self, user: &mut Arc<UserInfo>) -> bool {
        let Some(names) = self.of(user) else { return false };
        let new: Vec<String> =
            names.iter().filter(|name| !user.in_group(name)).map(|name| String::from(&**name)).collect();
        if new.is_empty() {
            return false;
        }
        Arc::make_mut(user).groups.extend(new);
        true
    }
}

/// Whether OpenShift's groups count for a user at all.
#[must_use]
pub fn has_groups(user: &UserInfo) -> bool {
    user.in_group(OAUTH) && !user.name.starts_with(SERVICE_ACCOUNT)
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::super::Method;
    use super::*;

    fn names(list: &[&str]) -> Names {
        list.iter().map(|name| Arc::from(*name)).collect()
    }

    fn identity(name: &str, groups: &[&str]) -> Arc<Identity> {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        let user = UserInfo { name: name.to_owned(), groups, ..UserInfo::default() };
        Arc::new(Identity::new(user, Method::FrontProxy))
    }

    #[test]
    fn groups_come_and_go_with_every_write() {
        let memberships = Memberships::new();
        let carol = identity("carol", &["system:authenticated", OAUTH]);
        assert!(Arc::ptr_eq(&memberships.join(&carol), &carol));
        memberships.change("devs", &names(&[]), &names(&["carol", "dave"]));
        memberships.change("admins", &names(&[]), &names(&["carol"]));
        let joined = memberships.join(&carol);
        assert_eq!(joined.user.groups, ["system:authenticated", OAUTH, "admins", "devs"]);
        assert_ne!(joined.hash, carol.hash, "else an answer for the one would be used for the other");
        assert!(Arc::ptr_eq(&memberships.join(&joined), &joined));
        memberships.change("devs", &names(&["carol", "dave"]), &names(&["dave"]));
        assert_eq!(memberships.join(&carol).user.groups, ["system:authenticated", OAUTH, "admins"]);
        memberships.change("admins", &names(&["carol"]), &names(&[]));
        assert!(memberships.of(&carol.user).is_none());
    }

    #[test]
    fn others_of_the_same_name_get_nothing() {
        let memberships = Memberships::new();
        let robot = "system:serviceaccount:a:robot";
        memberships.change("devs", &names(&[]), &names(&["carol", robot]));
        for (name, groups) in [
            ("carol", &["system:authenticated"][..]),
            (robot, &["system:authenticated", OAUTH][..]),
            ("dave", &[OAUTH][..]),
            ("Carol", &[OAUTH][..]),
            ("", &[OAUTH][..]),
        ] {
            let identity = identity(name, groups);
            assert!(Arc::ptr_eq(&memberships.join(&identity), &identity), "{name}");
        }
    }

    #[test]
    fn the_listener_hears_what_changed_only() {
        let memberships = Memberships::new();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ear = Arc::clone(&heard);
        memberships.on_change(move |change| ear.lock().push((change.joined.clone(), change.left.clone())));
        memberships.change("devs", &names(&[]), &names(&["a", "b"]));
        memberships.change("devs", &names(&["a", "b"]), &names(&["a", "b"]));
        memberships.change("devs", &names(&["a", "b"]), &names(&["b", "c"]));
        assert_eq!(*heard.lock(), [(names(&["a", "b"]), names(&[])), (names(&["c"]), names(&["a"]))]);
    }
}
