//! Who can log in: the passwords in the Secret that `OAuth/cluster` names, the Groups, and kube:admin.
//!
//! Everything is in the cluster. `up` makes it once, from `deploy/users.yaml`; `picoshift user` changes it.

pub(crate) mod directory;
pub(crate) mod groups;
pub(crate) mod htpasswd;
pub(crate) mod kubeadmin;
pub(crate) mod seed;

/// Where the Secret of passwords is.
pub(crate) const NAMESPACE: &str = "openshift-config";
/// The Secret.
pub(crate) const SECRET: &str = "htpass-secret";
/// Its key.
pub(crate) const KEY: &str = "htpasswd";
/// The identity provider that reads it.
pub(crate) const PROVIDER: &str = "picoshift";
/// Whose members are cluster-admin.
pub(crate) const CLUSTER_ADMINS: &str = "cluster-admins";
