//! The aggregated API server of OpenShift's groups.
//!
//! In: HTTPS requests (from kube-apiserver's aggregator with front-proxy identity, or direct), watches of namespaces
//! and RBAC on kube-apiserver. Out: objects of `project.openshift.io` and `route.openshift.io`, an authorization
//! webhook, and one file on disk.

pub mod admission;
pub mod args;
pub mod assembly;
pub mod audit;
pub mod authn;
pub mod authz;
pub mod bootstrap_secret;
pub mod decode;
pub mod discovery;
pub mod groups;
pub mod gzip;
mod kube_api;
mod object_meta;
pub mod oci;
pub mod openapi;
mod owner_references;
pub mod registry;
pub mod resource;
pub mod rest;
pub mod schema;
pub mod secrets;
pub mod server;
pub mod service_accounts;
pub mod single_flight;
pub mod store;
#[cfg(any(test, feature = "fuzzing"))]
pub mod untrusted;
