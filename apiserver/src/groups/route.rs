//! `route.openshift.io/v1` routes: defaults, host allocation, validation, host claims, and the status that the
//! `default` router would write, computed on read.
//!
//! Behaviour: `openshift/library-go/pkg/route`, `openshift-apiserver/pkg/route` and, for claims and status,
//! `openshift/router/pkg/router/controller`.

pub mod columns;
pub mod strategy;

mod claims;
mod defaults;
mod headers;
mod host;
mod permission;
mod shown;
mod status;
mod tls;
mod validation;
mod view;

#[cfg(test)]
mod apply_tests;
#[cfg(test)]
mod claims_tests;
#[cfg(test)]
mod recorded_tests;
#[cfg(test)]
mod shape_tests;
#[cfg(test)]
mod tests;

pub use columns::ROUTES;
pub use strategy::RouteStrategy;

/// The API group.
pub const GROUP: &str = "route.openshift.io";
/// Annotation that a generated host carries.
const HOST_GENERATED: &str = "openshift.io/host.generated";
/// Annotation that lifts the rule of DNS labels from hosts.
const ALLOW_NON_DNS_HOST: &str = "route.openshift.io/allow-non-dns-compliant-host";
