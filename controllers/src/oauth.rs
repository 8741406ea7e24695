//! The OAuth server: who logs in here gets tokens that the API accepts.
//!
//! In: requests of browsers and programs, OAuth/cluster, Secrets. Out: pages and redirects, and objects of
//! oauth.openshift.io and user.openshift.io, written through kube-apiserver like anybody's. What it keeps lies there, so a
//! restart logs nobody out, and several processes serve the same sessions.
//!
//! Three layers: [`url`], [`redirect_uri`], [`htpasswd`], [`session`], [`csrf`], [`throttle`] and [`scopes`] are functions
//! of values; [`client`], [`tokens`], [`grants`] and [`mapping`] read and write objects by [`api`]; [`endpoints`] answers
//! requests by both. [`service`] listens and watches, [`upkeep`] makes what the server needs in the cluster.

pub mod api;
pub mod call;
pub mod client;
pub mod csrf;
pub mod directory;
pub mod endpoints;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fake;
pub mod grants;
pub mod htpasswd;
pub mod logins;
pub mod mapping;
pub mod metrics;
pub mod pages;
pub mod provider;
pub mod redirect_uri;
pub mod reply;
pub mod scopes;
pub mod service;
pub mod session;
pub mod throttle;
pub mod tokens;
pub mod upkeep;
pub mod url;
