//! The controllers that OpenShift's groups assume, in one process.
//!
//! In: watches on kube-apiserver. Out: the few writes that bring the cluster to what the objects ask for, probes and
//! counters. Each controller is a room of its own; [`manager`] keeps them running side by side while [`leader`] says
//! that this process leads, and none of them can end another.

pub mod args;
pub mod backoff;
pub mod default_role_bindings;
pub mod image_import;
pub mod leader;
pub mod manager;
pub mod metrics;
pub mod oauth;
pub mod queue;
pub mod ready;
pub mod server;
#[cfg(any(test, feature = "fuzzing"))]
pub mod untrusted;
pub mod watch;
