//! A real control plane for tests and benchmarks, and clients that speak to it as anybody.
//!
//! In: `bin/picoshift` (environment `PICOSHIFT_BIN` names another one). Out: a running [`ControlPlane`], the
//! [`Actor`]s that call it, and what they need to look at answers, watches, logs and counters.
//! A control plane that `PICOSHIFT_E2E_HOME` names is used as it is; otherwise one is started per test binary in
//! a temporary directory and ended when the binary ends, whatever way it ends.

pub mod actor;
pub mod browser;
pub mod control_plane;
pub mod controllers;
pub mod crd;
pub mod eventually;
pub mod history;
pub mod home;
pub mod http;
pub mod identity;
pub mod instance;
pub mod kubectl;
pub mod kubelet;
pub mod login;
pub mod metrics;
pub mod oauth;
pub mod objects;
pub mod process;
pub mod registry;
pub mod shim;
pub mod tls;
pub mod token_server;
pub mod tokens;
pub mod watch;
pub mod web_driver;

pub use actor::Actor;
pub use control_plane::ControlPlane;
