//! `user.openshift.io/v1`: users, groups, identities and the mappings between them.
//!
//! In: requests. Out: three stored resources, `users/~` from the request's identity, mappings computed from users and
//! identities, and who is in which group, for authorization.
//!
//! Behaviour: `oauth-apiserver/pkg/user`.

mod caller;
mod mappings;
mod names;
mod resources;
mod strategies;
#[cfg(test)]
mod tests;

use std::sync::Arc;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use names::are_harmless as names_are_harmless;
pub(crate) use names::{group_name, user_name};
pub use resources::{GROUPS, IDENTITIES, USER_IDENTITY_MAPPINGS, USERS};

use crate::admission::Admission;
use crate::authn::memberships::Memberships;
use crate::registry::{Registry, Strategy};
use crate::rest::Storage;
use crate::store::{Engine, StoreError};

/// The API group.
pub const GROUP: &str = "user.openshift.io";

/// The group, running.
pub struct UserGroup {
    /// Its resources.
    pub storages: Vec<Arc<dyn Storage>>,
    /// The users that are stored.
    pub users: Arc<Registry>,
}

/// Loads the group's resources from the store. Groups that are stored, and all changes of them, are told to
/// `memberships`.
///
/// # Errors
/// The store's.
pub async fn start(
    engine: &Arc<dyn Engine>,
    admission: &Arc<Admission>,
    memberships: Arc<Memberships>,
) -> Result<UserGroup, StoreError> {
    let registry =
        |strategy: Arc<dyn Strategy>| Registry::start(Arc::clone(engine), strategy, Arc::clone(admission));
    let users = registry(Arc::new(strategies::Users)).await?;
    let groups = registry(Arc::new(strategies::Groups(memberships))).await?;
    let identities = registry(Arc::new(strategies::Identities)).await?;
    let mappings = mappings::Mappings { users: Arc::clone(&users), identities: Arc::clone(&identities) };
    let caller = Arc::new(caller::UsersAndCaller(Arc::clone(&users)));
    Ok(UserGroup { storages: vec![caller, groups, identities, Arc::new(mappings)], users })
}
