//! Kubernetes API machinery that picoshift's servers share: what a request is, what an object is, what an
//! answer looks like, and how a server listens; of OpenShift only what tokens and their scopes are.
//!
//! In: bytes of requests, certificates, objects. Out: typed requests, objects, `Status` errors, listeners.

pub mod answer;
pub mod body;
pub mod bootstrap_user;
pub mod drain;
pub mod field_error;
pub mod followed;
pub mod group_version;
pub mod health;
pub mod listener;
pub mod log;
pub mod media_type;
pub mod names;
pub mod oauth_token;
pub mod object;
pub mod open_files;
pub mod peer;
pub mod plain;
pub mod protobuf;
pub mod query;
pub mod readiness;
pub mod request_info;
pub mod scope;
pub mod selector;
pub mod signals;
pub mod status;
pub mod tls;
pub mod url;
pub mod user_info;

pub use field_error::{FieldError, FieldErrorKind};
pub use group_version::{GroupVersionKind, GroupVersionResource};
pub use object::Object;
pub use status::Status;
pub use user_info::UserInfo;
