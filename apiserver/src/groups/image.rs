//! `image.openshift.io/v1`: image streams, their tags, images and imports.
//!
//! Behaviour: `openshift-apiserver/pkg/image`.

pub mod model;

/// The API group.
pub const GROUP: &str = "image.openshift.io";
