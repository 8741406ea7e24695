//! The shim: OpenShift's front door for a vanilla kube-apiserver. A streaming TLS proxy at the address that clients and pods
//! use, which changes only what OpenShift's own kube-apiserver changes.
//!
//! In: requests of anybody. Out: the same requests to kube-apiserver, or to our API server, with an identity that cannot be
//! forged; and their answers.

pub mod access_log;
pub mod args;
pub mod caller;
pub mod claims;
pub mod credentials;
pub mod direct;
pub mod documents;
pub mod effective;
pub mod front;
pub mod headers;
pub mod metrics;
pub mod refusal;
pub mod relay;
pub mod request_body;
pub mod revocation;
pub mod status_port;
pub mod tunnel;
mod understood;
#[cfg(any(test, feature = "fuzzing"))]
pub mod untrusted;
pub mod upstream;
pub mod watches;
