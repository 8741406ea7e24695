//! `image.openshift.io/v1`: image streams, their tags, images and imports.
//!
//! Behaviour: `openshift-apiserver/pkg/image`.

pub mod model;
pub mod names;
pub mod reference;

/// The API group.
pub const GROUP: &str = "image.openshift.io";
