//! Asks registries for what an import wants.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use picoshift_machinery::{Object, Status};
use tokio::time::Instant;

use super::plan::Target;
use super::request::Wanted;
use super::{content, failure, tag_order};
use crate::oci::{Client, Error, Keyring, Location, Manifest, Repository};

/// Images of one import that are looked up at a time.
const AT_A_TIME: usize = 5;
/// Images of one list that are imported with it.
const MAX_LIST: usize = 250;
/// Bytes of tags, manifests, configurations and texts of failures that one import may bring.
pub(super) const MAX_BYTES: usize = 128 << 20;
const TOO_LARGE: &str = "the images of this import are too large together";

/// An image that was found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The Image.
    pub(super) image: Object,
    /// The Images of a list.
    pub(super) manifests: Vec<Object>,
}

/// What became of one image.
#[derive(Clone, Debug)]
pub(super) struct Pulled {
    /// The tag that was asked for; empty for a digest.
    pub(super) tag: String,
    pub(super) outcome: Result<Found, Status>,
}

/// What became of a repository.
#[derive(Clone, Debug)]
pub(super) struct PulledRepository {
    pub(super) status: Status,
    pub(super) images: Vec<Pulled>,
    /// Tags beyond the limit.
    pub(super) additional: Vec<String>,
}

/// What became of an import.
#[derive(Clone, Debug)]
pub(super) struct PulledAll {
    pub(super) images: Vec<Pulled>,
    pub(super) repository: Option<PulledRepository>,
}

/// One import's way to the registries.
pub(super) struct Puller<'a> {
    pub(super) client: &'a Arc<Client>,
    pub(super) keyring: &'a Keyring,
    pub(super) deadline: Instant,
    /// Tags of a repository that are imported; `None` for all.
    pub(super) max_tags: Option<usize>,
    /// Time of the import, RFC 3339.
    pub(super) now: &'a str,
    /// Whether images are stored: then their manifests are not shown.
    pub(super) records: bool,
    /// Bytes that were brought so far, of those that are kept until the end.
    pub(super) bytes: &'a AtomicUsize,
}

/// The repositories of an import: each is asked in one name, and pinged once.
type Repositories = HashMap<Location, Arc<Repository>>;

impl Puller<'_> {
    /// Looks everything up. Where wrong credentials may have spoiled an image that is open to all, it is asked for
    /// again without any.
    pub(super) async fn pull(&self, import: &Object, stream: &Object) -> PulledAll {
        let first = self.attempt(import, stream).await;
        let spoiled = first.images.iter().filter_map(|pulled| pulled.outcome.as_ref().err());
        if !spoiled.into_iter().any(failure::blames_credentials) {
            return first;
        }
        let nobody = Keyring::default();
        let bytes = &AtomicUsize::new(0);
        let again = Puller { keyring: &nobody, bytes, ..*self }.attempt(import, stream).await;
        let images = first.images.into_iter().zip(again.images).map(|(before, now)| match &now.outcome {
            Err(status) if status.is("Unauthorized") => before,
            _ => now,
        });
        PulledAll { images: images.collect(), repository: again.repository }
    }

    async fn attempt(&self, import: &Object, stream: &Object) -> PulledAll {
        let mut repositories = Repositories::new();
        let wanted = Wanted::images(import);
        let targets: Vec<_> = wanted.iter().map(|wanted| Target::of_image(*wanted, stream)).collect();
        let images = self.images(&mut repositories, &targets).await;
        let repository = match Wanted::repository(import) {
            Some(wanted) => Some(self.repository(&mut repositories, wanted, stream).await),
            None => None,
        };
        PulledAll { images, repository }
    }

    /// The images of targets, in their order; what is asked for twice is looked up once.
    async fn images(
        &self,
        repositories: &mut Repositories,
        targets: &[Result<Target, Status>],
    ) -> Vec<Pulled> {
        let mut distinct: Vec<&Target> = Vec::new();
        let mut places: HashMap<&Target, usize> = HashMap::new();
        for target in targets.iter().flatten() {
            places.entry(target).or_insert_with(|| {
                distinct.push(target);
                distinct.len() - 1
            });
        }
        let mut asked: Vec<BoxFuture<'_, Result<Found, Status>>> = Vec::new();
        for target in distinct {
            let repository = self.open(repositories, target);
            asked.push(Box::pin(async move {
                let outcome = self.image(&repository, target).await;
                outcome.inspect_err(|status| drop(self.count(status.message.len())))
            }));
        }
        let outcomes: Vec<Result<Found, Status>> = stream::iter(asked).buffered(AT_A_TIME).collect().await;
        let mut used = vec![false; outcomes.len()];
        let pulled = targets.iter().map(|target| match target {
            Err(status) => Pulled { tag: String::new(), outcome: Err(status.clone()) },
            Ok(target) => {
                let at = places.get(target).copied().unwrap_or_default();
                let outcome = match outcomes.get(at) {
                    Some(outcome) if std::mem::replace(&mut used[at], true) => self.copy(outcome, target),
                    Some(outcome) => outcome.clone(),
                    None => Err(Status::internal("the image was not looked up")),
                };
                Pulled { tag: target.tag.clone(), outcome }
            }
        });
        pulled.collect()
    }

    async fn repository(
        &self,
        repositories: &mut Repositories,
        wanted: Wanted<'_>,
        stream: &Object,
    ) -> PulledRepository {
        let failed = |status| PulledRepository { status, images: Vec::new(), additional: Vec::new() };
        let target = match Target::of_repository(wanted, stream) {
            Ok(target) => target,
            Err(status) => return failed(status),
        };
        let mut tags = match self.open(repositories, &target).tags().await {
            Ok(tags) => tags,
            Err(error) => return failed(failure::of_repository(&error, &target.repository.exact())),
        };
        if let Err(error) = self.count(tags.iter().map(String::len).sum()) {
            return failed(failure::of_repository(&error, &target.repository.exact()));
        }
        // Docker Hub has images with an empty tag.
        for tag in &mut tags {
            if tag.is_empty() {
                "latest".clone_into(tag);
            }
        }
        tags.sort();
        tags.dedup();
        tag_order::sort(&mut tags);
        let additional = tags.split_off(self.max_tags.unwrap_or(usize::MAX).min(tags.len()));
        let targets: Vec<_> = tags.iter().map(|tag| Ok(target.with_tag(tag))).collect();
        let images = self.images(repositories, &targets).await;
        let failures = images.iter().filter(|pulled| pulled.outcome.is_err()).count();
        let status = match failures {
            0 => Status::success(None),
            1 => failures_status("one of the images from this repository failed to import".to_owned()),
            n => failures_status(format!("{n} of the images from this repository failed to import")),
        };
        PulledRepository { status, images, additional }
    }

    fn open(&self, repositories: &mut Repositories, target: &Target) -> Arc<Repository> {
        let opened = repositories.entry(target.location.clone()).or_insert_with(|| {
            let credentials = self.keyring.find(&target.credentials_key()).cloned();
            let client = Arc::clone(self.client);
            Arc::new(Repository::new(client, target.location.clone(), credentials, self.deadline))
        });
        Arc::clone(opened)
    }

    async fn image(&self, repository: &Repository, target: &Target) -> Result<Found, Status> {
        let (mut image, listed) = self.one(repository, target).await?;
        let mut manifests = Vec::new();
        for digest in listed {
            let part = target.with_digest(&digest);
            let (mut image, _) = self.one(repository, &part).await?;
            if self.records {
                content::drop_texts(&mut image);
            }
            set_reference(&mut image, &part.pull_spec(&digest));
            manifests.push(image);
        }
        if self.records || !target.with_texts {
            content::drop_texts(&mut image);
        }
        let pull_spec = target.pull_spec(image.name());
        set_reference(&mut image, &pull_spec);
        Ok(Found { image, manifests })
    }

    /// Another copy of what was found, or why there is no room for it.
    fn copy(&self, outcome: &Result<Found, Status>, target: &Target) -> Result<Found, Status> {
        let too_large = |error| failure::of_image(&error, &target.shown());
        self.count(0).map_err(too_large)?;
        let length = match outcome {
            Ok(found) => {
                found.manifests.iter().chain([&found.image]).map(|image| image.to_bytes().len()).sum()
            }
            Err(status) => status.message.len(),
        };
        self.count(length).map_err(too_large)?;
        outcome.clone()
    }

    /// Notes bytes that are kept; an error when they are too many.
    fn count(&self, bytes: usize) -> Result<(), Error> {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > MAX_BYTES {
            return Err(Error::Failed(TOO_LARGE.to_owned()));
        }
        Ok(())
    }

    /// One Image, and the digests of its images where it is a list that stays one.
    async fn one(&self, repository: &Repository, target: &Target) -> Result<(Object, Vec<String>), Status> {
        let shown = target.shown();
        let of_registry = |error: Error| failure::of_image(&error, &shown);
        self.count(0).map_err(of_registry)?;
        let mut fetched = repository.manifest(target.manifest()).await.map_err(of_registry)?;
        self.count(fetched.bytes.len()).map_err(of_registry)?;
        let mut manifest = fetched.parse().map_err(of_registry)?;
        if let Manifest::List(list) = &manifest {
            if target.preserve {
                if list.entries.len() > MAX_LIST {
                    let why = format!("the list has more than {MAX_LIST} images");
                    return Err(of_registry(Error::Failed(why)));
                }
                let digests = list.entries.iter().map(|entry| entry.manifest.digest.clone()).collect();
                let image = content::list(&fetched, list, self.now).map_err(Status::internal)?;
                return Ok((image, digests));
            }
            let digest = content::pick(list, &target.arch, &target.os).map_err(of_registry)?;
            fetched = repository.manifest(digest).await.map_err(of_registry)?;
            self.count(fetched.bytes.len()).map_err(of_registry)?;
            manifest = fetched.parse().map_err(of_registry)?;
        }
        let Manifest::Image(manifest) = manifest else {
            let why = "unsupported image manifest type: *manifestlist.DeserializedManifestList";
            return Err(Status::internal(why));
        };
        let config = repository.config(&manifest.config.digest).await.map_err(of_registry)?;
        self.count(config.bytes.len()).map_err(of_registry)?;
        // What is wrong from here on is the image's, not the registry's.
        let image = content::image(&fetched, &manifest, &config).map_err(Status::internal)?;
        Ok((image, Vec::new()))
    }
}

fn set_reference(image: &mut Object, pull_spec: &str) {
    image.0.insert("dockerImageReference".to_owned(), pull_spec.into());
}

fn failures_status(message: String) -> Status {
    Status {
        status: "Failure".to_owned(),
        reason: "ImportFailed".to_owned(),
        message,
        code: 0,
        ..Status::success(None)
    }
}
