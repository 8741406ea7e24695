//! Imports the images that ImageStreams point at, by asking our server for each import (`ImageStreamImport`).
//!
//! A tag awaits an import while its generation is newer than any answer recorded for it. A failure that our server
//! records in the stream is an answer: a machine without a network asks once per tag and is quiet then. Only a request
//! that got no answer is sent again, with growing pauses, and not for ever. Scheduled tags are asked for once per interval.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::manager::{Controller, Failure, Run};
use crate::metrics::ImportMetrics;
use crate::queue::{Outcome, Queue};
use crate::watch::{Index, follow};

pub mod post;
pub mod rate;
pub mod request;
pub mod stream;

use post::{Imports, PostError};
use rate::RateLimit;
use request::{Request, Why, is_scheduled, request};
use stream::{ImageStream, generation};

/// For requests without an answer: from a second to ten minutes, about two hours in all.
const BACKOFF: Backoff =
    Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(600), attempts: 20 };

/// How much at a time.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Between two imports of a scheduled tag.
    pub interval: Duration,
    /// Streams per minute; twice as many may come at once.
    pub per_minute: u32,
    /// Streams at a time.
    pub parallel: usize,
}

/// The controller.
pub struct ImageImport {
    client: Client,
    settings: Settings,
    metrics: ImportMetrics,
}

impl ImageImport {
    /// A controller that acts as `client`.
    #[must_use]
    pub fn new(client: Client, settings: Settings, metrics: ImportMetrics) -> Self {
        Self { client, settings, metrics }
    }
}

#[async_trait]
impl Controller for ImageImport {
    fn name(&self) -> &'static str {
        "image-import"
    }

    async fn run(&self, run: Run) -> Result<(), Failure> {
        let queue = Queue::new(BACKOFF, run.metrics.clone());
        let streams = Streams::new(queue, self.client.clone(), self.settings, self.metrics.clone());
        let api: Api<ImageStream> = Api::all_with(self.client.clone(), &stream::resource());
        tokio::select! {
            () = streams.work(&run) => {}
            () = follow(api, "imagestreams", &streams, &run.ready, &run.metrics) => {}
        }
        Ok(())
    }
}

/// Namespace and name.
type Key = (String, String);

/// A stream, and what made us look at it.
type Job = (Key, Why);

/// The answer to the last request for a stream.
#[derive(Clone, Copy)]
struct Answered {
    digest: u64,
    refused: bool,
}

struct Streams<I> {
    known: Mutex<HashMap<Key, Arc<ImageStream>>>,
    answered: Mutex<HashMap<Key, Answered>>,
    queue: Queue<Job>,
    imports: I,
    limit: RateLimit,
    settings: Settings,
    metrics: ImportMetrics,
}

impl<I: Imports> Streams<I> {
    fn new(queue: Queue<Job>, imports: I, settings: Settings, metrics: ImportMetrics) -> Self {
        let limit = RateLimit::new(settings.per_minute, settings.per_minute.saturating_mul(2));
        let (known, answered) = (Mutex::default(), Mutex::default());
        Self { known, answered, queue, imports, limit, settings, metrics }
    }

    async fn work(&self, run: &Run) {
        let reconcile = |job: Job| async move {
            // Who waits for a turn need not be waited for.
            tokio::select! {
                () = run.stop.wait() => Outcome::Done,
                outcome = self.reconcile(&job) => outcome,
            }
        };
        self.queue.work(self.settings.parallel, &run.stop, reconcile).await;
    }

    async fn reconcile(&self, (key, why): &Job) -> Outcome {
        let Some(stream) = self.known.lock().get(key).cloned() else { return Outcome::Done };
        let request = match why {
            Why::Changed => request(&stream, Why::Changed),
            // What is due by schedule includes what is due anyhow.
            Why::Scheduled if is_scheduled(&stream) => request(&stream, Why::Scheduled),
            Why::Scheduled => return Outcome::Done,
        };
        let settled = match why {
            Why::Changed => Outcome::Done,
            Why::Scheduled => Outcome::Until(Instant::now() + self.settings.interval),
        };
        let Some(request) = request else {
            self.answered.lock().remove(key);
            return settled;
        };
        let last = self.answered.lock().get(key).copied();
        if *why == Why::Changed
            && let Some(last) = last.filter(|last| last.digest == request.digest)
        {
            // An answer that the stream does not show: either it is on its way to us, or it never comes.
            return if last.refused { Outcome::Done } else { Outcome::Retry };
        }
        self.limit.turn().await;
        match self.import(key, *why, &request).await {
            Ok(()) => settled,
            // The next turn comes anyway.
            Err(()) if *why == Why::Scheduled => settled,
            Err(()) => Outcome::Retry,
        }
    }

    /// Sends a request; `Err` if it is worth sending again.
    async fn import(&self, key: &Key, why: Why, request: &Request) -> Result<(), ()> {
        let (namespace, name) = key;
        let scheduled = why == Why::Scheduled;
        let answer = self.imports.post(namespace, &request.body).await;
        let refused = match &answer {
            Ok(answer) => {
                let (good, bad) = self.count(scheduled, answer);
                tracing::info!(namespace, name, scheduled, good, bad, "imported");
                false
            }
            Err(PostError::Refused(error)) => {
                tracing::warn!(namespace, name, error, "cannot be imported");
                true
            }
            Err(PostError::Failed(error)) => {
                tracing::warn!(namespace, name, error, "the import got no answer");
                return Err(());
            }
        };
        if scheduled {
            return Ok(());
        }
        self.answered.lock().insert(key.clone(), Answered { digest: request.digest, refused });
        let next = Instant::now() + self.settings.interval;
        self.queue.put_off(&(key.clone(), Why::Scheduled), next);
        Ok(())
    }

    /// Counts what an answer says; how many went well and how many did not.
    fn count(&self, scheduled: bool, answer: &serde_json::Value) -> (u32, u32) {
        let (mut good, mut bad) = (0, 0);
        let status = &answer["status"];
        let images = status["images"].as_array().into_iter().flatten().map(|image| &image["status"]);
        let repository = status.get("repository").map(|repository| &repository["status"]);
        for status in images.chain(repository) {
            let went_well = status["status"] == "Success";
            self.metrics.count(scheduled, went_well);
            *(if went_well { &mut good } else { &mut bad }) += 1;
        }
        (good, bad)
    }

    /// Remembers a stream, and has it looked at if it awaits an import.
    fn remember(&self, stream: ImageStream) {
        let key = key(&stream);
        let scheduled = is_scheduled(&stream);
        let awaits = request(&stream, Why::Changed).is_some();
        let new = generation(&stream.metadata);
        let old = self.known.lock().insert(key.clone(), Arc::new(stream));
        if old.is_some_and(|old| generation(&old.metadata) != new) {
            // Somebody asks for something else: what failed before says nothing about it.
            self.queue.forgive(&(key.clone(), Why::Changed));
        }
        if awaits {
            self.queue.add((key.clone(), Why::Changed));
        }
        if scheduled {
            let first = first_turn(&key, self.settings.interval);
            self.queue.schedule((key, Why::Scheduled), Instant::now() + first);
        } else {
            self.queue.remove(&(key, Why::Scheduled));
        }
    }

    fn forget(&self, key: &Key) {
        self.known.lock().remove(key);
        self.answered.lock().remove(key);
        for why in [Why::Changed, Why::Scheduled] {
            self.queue.remove(&(key.clone(), why));
        }
    }
}

impl<I: Imports> Index<ImageStream> for Streams<I> {
    fn replace(&self, objects: Vec<ImageStream>) {
        let mut gone = std::mem::take(&mut *self.known.lock());
        for stream in objects {
            if let Some((key, old)) = gone.remove_entry(&key(&stream)) {
                self.known.lock().insert(key, old);
            }
            self.remember(stream);
        }
        for key in gone.keys() {
            self.forget(key);
        }
    }

    fn apply(&self, object: ImageStream) {
        self.remember(object);
    }

    fn delete(&self, object: ImageStream) {
        self.forget(&key(&object));
    }
}

fn key(stream: &ImageStream) -> Key {
    (stream.namespace().unwrap_or_default(), stream.name_any())
}

/// Streams that are seen at the same time do not all come at the same time.
fn first_turn(key: &Key, interval: Duration) -> Duration {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let share = u32::try_from(hasher.finish() % 1000).unwrap_or(0);
    interval / 2 + interval / 2 * share / 1000
}

#[cfg(test)]
mod tests;
