//! Whom RBAC grants something, and who looks at projects.

use std::collections::BTreeSet;
use std::sync::Arc;

use picoshift_machinery::UserInfo;
use picoshift_machinery::user_info::MASTERS;

use crate::authn::memberships::has_groups;
use crate::authz::rbac::SubjectDoc;

/// Whom a binding names. A service account is the user of its name, as RBAC sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// A user by name.
    User(Arc<str>),
    /// A group by name.
    Group(Arc<str>),
}

impl SubjectDoc {
    /// The subject in a binding of `binding_namespace` (empty for a ClusterRoleBinding); `None` where RBAC matches
    /// nobody.
    #[must_use]
    pub(crate) fn subject(&self, binding_namespace: &str) -> Option<Subject> {
        match self.kind.as_str() {
            "User" => Some(Subject::User(self.name.as_str().into())),
            "Group" => Some(Subject::Group(self.name.as_str().into())),
            "ServiceAccount" => {
                let own = if self.namespace.is_empty() { binding_namespace } else { &self.namespace };
                (!own.is_empty())
                    .then(|| Subject::User(format!("system:serviceaccount:{own}:{}", self.name).into()))
            }
            _ => None,
        }
    }
}

/// Which namespaces the token scopes of a request let through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// All.
    None,
    /// These only.
    Only(BTreeSet<Box<str>>),
}

impl Limit {
    /// Whether the limit lets a namespace through.
    #[must_use]
    pub(crate) fn allows(&self, namespace: &str) -> bool {
        match self {
            Self::None => true,
            Self::Only(names) => names.contains(namespace),
        }
    }
}

/// Who looks: fixed for a list or for the whole life of a watch.
#[derive(Clone, Debug)]
pub(crate) struct Viewer {
    /// The user and the groups that came with the request, each once.
    pub(crate) subjects: Box<[Subject]>,
    /// The user's name, where Group objects give it further groups. These may change while a watch runs.
    pub(crate) member: Option<Arc<str>>,
    /// Whether the viewer is in `system:masters`, which RBAC never denies.
    pub(crate) master: bool,
    /// What token scopes let through.
    pub(crate) limit: Limit,
}

impl Viewer {
    /// A viewer from a request's user, made by [`super::Index::viewer`]. A group that a Group object gives at the
    /// moment (`joined`) is not fixed, also where the request carried it.
    #[must_use]
    pub(super) fn new(user: &UserInfo, joined: Option<&BTreeSet<Subject>>, limit: Limit) -> Self {
        let member: Option<Arc<str>> = has_groups(user).then(|| user.name.as_str().into());
        let joined = joined.filter(|_| member.is_some());
        let mut subjects = vec![Subject::User(user.name.as_str().into())];
        let groups: BTreeSet<&str> = user.groups.iter().map(String::as_str).collect();
        let groups = groups.into_iter().map(|g| Subject::Group(g.into()));
        subjects.extend(groups.filter(|group| !joined.is_some_and(|joined| joined.contains(group))));
        Self { subjects: subjects.into(), member, master: user.in_group(MASTERS), limit }
    }

    /// Whether a subject is this viewer, whatever Group objects say.
    pub(crate) fn is(&self, subject: &Subject) -> bool {
        self.subjects.contains(subject)
    }
}
