//! `user.openshift.io/v1`: users, groups, identities and the mappings between them.
//!
//! Behaviour: `oauth-apiserver/pkg/user`.

/// The API group.
pub const GROUP: &str = "user.openshift.io";
