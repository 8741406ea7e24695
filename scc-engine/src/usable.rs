//! Who may use an SCC.
//!
//! Who is named in it, or is in a group that is named in it, or may `use` it by RBAC in the pod's namespace. RBAC is the
//! caller's to ask: this crate has no network.

use crate::constraints::Scc;

/// Who asks, or runs a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Subject {
    /// The user's name.
    pub name: String,
    /// The user's groups.
    pub groups: Vec<String>,
}

impl Subject {
    /// A service account, with the groups that OpenShift asks about: `system:authenticated` is not among them.
    #[must_use]
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
        }
    }
}

/// Whether it is the pod's author or its service account who may use an SCC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectKind {
    /// Who writes the pod.
    User,
    /// As whom the pod runs.
    ServiceAccount,
}

impl SubjectKind {
    /// As the pod's annotation has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::ServiceAccount => "serviceaccount",
        }
    }
}

/// What the cluster has and says.
#[derive(Clone, Copy)]
pub struct Cluster<'a> {
    /// All SCCs, in any order.
    pub sccs: &'a [Scc],
    /// Whether RBAC lets a subject `use` the SCC of that name in the pod's namespace. It is asked as little as possible.
    pub may_use: &'a (dyn Fn(&Subject, &str) -> bool + Sync),
}

impl Cluster<'_> {
    /// Whether a subject may use an SCC.
    #[must_use]
    pub fn usable(&self, scc: &Scc, subject: &Subject) -> bool {
        scc.users.contains(&subject.name)
            || subject.groups.iter().any(|group| scc.groups.contains(group))
            || (self.may_use)(subject, scc.name())
    }

    /// The SCCs that any of the subjects may use, in the order in which they are tried.
    #[must_use]
    pub fn applicable(&self, subjects: &[Subject]) -> Vec<&Scc> {
        let usable = |scc: &&Scc| subjects.iter().any(|subject| self.usable(scc, subject));
        let mut found: Vec<&Scc> = self.sccs.iter().filter(usable).collect();
        found.sort_by(|one, other| crate::order::compare(one, other));
        found
    }
}

/// The pod's service account, where it names one, and its author: who is asked about, in this order.
pub(crate) struct Subjects<'a> {
    service_account: Option<Subject>,
    user: &'a Subject,
}

impl<'a> Subjects<'a> {
    pub(crate) fn new(namespace: &str, service_account: &str, user: &'a Subject) -> Self {
        let named = !service_account.is_empty();
        let service_account = named.then(|| Subject::service_account(namespace, service_account));
        Self { service_account, user }
    }

    /// Who of them may use an SCC.
    pub(crate) fn usable_by(&self, cluster: &Cluster<'_>, scc: &Scc) -> Option<SubjectKind> {
        if self.service_account.as_ref().is_some_and(|account| cluster.usable(scc, account)) {
            return Some(SubjectKind::ServiceAccount);
        }
        cluster.usable(scc, self.user).then_some(SubjectKind::User)
    }
}
