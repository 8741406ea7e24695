//! A client of container registries (OCI distribution specification), for reading: manifests, configurations, tags.
//!
//! In: a [`Location`], credentials, a deadline. Out: bytes whose digest and size were checked, or an [`Error`] with
//! the text that Go's client gives. Whoever may create an import chooses which host is called, so nothing of an answer
//! is trusted: every body has a limit, every request a time, redirects lead to http(s) only, credentials go to the
//! registry and to its token server and nowhere else, and no text of an error carries one.

mod challenge;
mod client;
mod credentials;
mod dial;
mod error;
mod exchange;
#[cfg(test)]
pub(crate) mod hostile;
mod manifest;
mod repository;
#[cfg(test)]
mod tests;
mod token;

pub use challenge::Challenge;
pub use client::{Client, Limits, Trust};
pub use credentials::{Credentials, Keyring, ParseError};
pub use error::Error;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use exchange::resolve;
pub(crate) use manifest::bounded;
pub use manifest::{
    DOCKER_LIST, DOCKER_MANIFEST, Descriptor, ImageManifest, ListEntry, ListManifest, Manifest, OCI_INDEX,
    OCI_MANIFEST,
};
pub use repository::{Fetched, Location, Repository};
