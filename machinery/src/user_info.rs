//! Who makes a request.

use std::collections::BTreeMap;

/// The user of a request as kube-apiserver knows it (`user.Info`): not OpenShift's `User` object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserInfo {
    /// User name; `system:anonymous` for nobody.
    pub name: String,
    /// Unique id, empty where the authenticator knows none.
    pub uid: String,
    /// Groups in the order the authenticator gave.
    pub groups: Vec<String>,
    /// Extra attributes; keys in lower case.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Group of every user that authenticated.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Group of requests without credentials.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Name of the user of requests without credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// Group that RBAC never denies.
pub const MASTERS: &str = "system:masters";
/// Extra key of OpenShift's token scopes.
pub const SCOPES_EXTRA: &str = "scopes.authorization.openshift.io";

impl UserInfo {
    /// The user of a request without credentials.
    #[must_use]
    pub fn anonymous() -> Self {
        Self { name: ANONYMOUS.to_owned(), groups: vec![UNAUTHENTICATED.to_owned()], ..Self::default() }
    }

    /// Whether the user is in `group`.
    #[must_use]
    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// The token scopes of the request; empty when it carries none.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        self.extra.get(SCOPES_EXTRA).map_or(&[], Vec::as_slice)
    }
}
