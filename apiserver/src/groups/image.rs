//! `image.openshift.io/v1`: image streams, their tags, images and imports.
//!
//! Behaviour: `openshift-apiserver/pkg/image`.

/// The API group.
pub const GROUP: &str = "image.openshift.io";
