//! `image.openshift.io/v1`: image streams, their tags, images and imports.
//!
//! Behaviour: `openshift-apiserver/pkg/image`.

pub mod access;
pub mod columns;
pub mod docker_image;
pub mod hostnames;
pub mod import;
pub mod manifest;
pub mod model;
pub mod names;
pub mod printing;
pub mod reference;
pub mod streams;
pub mod tags;

mod images;
mod mappings;
mod signatures;

#[cfg(test)]
mod recorded_tests;
#[cfg(test)]
mod testing;

use std::sync::Arc;

use kube::Client;

pub use self::access::{Access, Part, StreamChange};
pub use self::columns::{IMAGE_STREAMS, IMAGES};
pub use self::hostnames::Hostnames;
pub use self::import::IMAGE_STREAM_IMPORTS;
use self::import::{ImageStreamImports, Parts};
use self::mappings::Mappings;
use self::signatures::Signatures;
use self::streams::Streams;
use crate::admission::Admission;
use crate::authz::Authorizer;
use crate::oci;
use crate::rest::Storage;
use crate::store::{Engine, StoreError};

/// The API group.
pub const GROUP: &str = "image.openshift.io";

/// What the group is made from.
pub struct Ingredients {
    /// Client of kube-apiserver under the server's own identity; it reads pull secrets.
    pub client: Client,
    /// The store.
    pub engine: Arc<dyn Engine>,
    /// Who may what.
    pub authorizer: Arc<dyn Authorizer>,
    /// The chain that every write passes.
    pub admission: Arc<Admission>,
    /// The cluster's registry, if it has one.
    pub hostnames: Hostnames,
    /// The client that imports are made with.
    pub registries: Arc<oci::Client>,
    /// Tags of one repository that an import takes at once; `None` for all.
    pub max_tags: Option<usize>,
}

/// The group, running.
pub struct Group {
    /// Reads and changes streams and images.
    pub access: Arc<Access>,
    /// One per resource.
    pub storages: Vec<Arc<dyn Storage>>,
}

/// Loads streams and images.
///
/// # Errors
/// The store's.
pub async fn start(ingredients: Ingredients) -> Result<Group, StoreError> {
    let Ingredients { client, engine, authorizer, admission, hostnames, registries, max_tags } = ingredients;
    let images = images::start(Arc::clone(&engine), Arc::clone(&admission)).await?;
    let streams =
        streams::start(engine, Arc::clone(&admission), Arc::clone(&authorizer), hostnames.clone()).await?;
    let access = Arc::new(Access::new(Arc::clone(&streams), Arc::clone(&images)));
    let streams: Arc<dyn Storage> = Arc::new(Streams::new(streams, Arc::clone(&images), client));
    let tags = tags::storages(&tags::Sources {
        streams: Arc::clone(&streams),
        images: Arc::clone(&images) as Arc<dyn Storage>,
        admission: Arc::clone(&admission),
        authorizer: Arc::clone(&authorizer),
    });
    let imports = ImageStreamImports::new(Parts {
        access: Arc::clone(&access),
        streams: Arc::clone(&streams),
        authorizer,
        admission: Arc::clone(&admission),
        client: registries,
        max_tags,
    });
    let mut storages: Vec<Arc<dyn Storage>> = vec![
        Arc::clone(&images) as Arc<dyn Storage>,
        Arc::new(Signatures { images }),
        streams,
        Arc::new(imports),
        Arc::new(Mappings { access: Arc::clone(&access), admission, hostnames }),
    ];
    storages.extend(tags);
    Ok(Group { access, storages })
}
