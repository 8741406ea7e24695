//! What is asked for and how often, against a server that answers as it is told to, on a clock that the tests move.

use picoshift_machinery::drain::Drain;
use serde_json::{Value, json};
use tokio::time::{Duration, sleep};

use super::*;
use crate::metrics::ControllerMetrics;
use crate::ready::Readiness;

const SETTINGS: Settings = Settings { interval: Duration::from_secs(900), per_minute: 60, parallel: 3 };

/// Answers every request with the same, and notes down when they came.
struct Server {
    answer: Mutex<Result<Value, PostError>>,
    asked: Mutex<Vec<(String, u64)>>,
    start: Instant,
}

#[async_trait]
impl Imports for Arc<Server> {
    async fn post(&self, namespace: &str, body: &Value) -> Result<Value, PostError> {
        let name = format!("{namespace}/{}", body["metadata"]["name"].as_str().unwrap_or_default());
        self.asked.lock().push((name, self.start.elapsed().as_secs()));
        self.answer.lock().clone()
    }
}

struct World {
    server: Arc<Server>,
    streams: Streams<Arc<Server>>,
    run: Run,
}

impl World {
    fn new(answer: Result<Value, PostError>) -> Self {
        let start = Instant::now();
        let server = Arc::new(Server { answer: Mutex::new(answer), asked: Mutex::default(), start });
        let run = Run { stop: Drain::new(), ready: Readiness::new(), metrics: ControllerMetrics::default() };
        let queue = Queue::new(BACKOFF, run.metrics.clone());
        let streams = Streams::new(queue, Arc::clone(&server), SETTINGS, ImportMetrics::default());
        Self { server, streams, run }
    }

    /// Lets the controller work for so long.
    async fn pass(&self, seconds: u64) {
        tokio::select! {
            () = self.streams.work(&self.run) => {}
            () = sleep(Duration::from_secs(seconds)) => {}
        }
    }

    fn asked(&self) -> Vec<u64> {
        self.server.asked.lock().iter().map(|(_, at)| *at).collect()
    }
}

/// A stream with one tag.
fn stream(name: &str, generation: i64, imported: i64, scheduled: bool) -> ImageStream {
    let value = json!({
        "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
        "metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": "1",
            "generation": generation, "annotations": {stream::REPOSITORY_CHECK: "2026-01-01T00:00:00Z"}},
        "spec": {"tags": [{"name": "latest", "generation": generation,
            "from": {"kind": "DockerImage", "name": "registry.example.org/web:1"},
            "importPolicy": {"scheduled": scheduled}, "referencePolicy": {"type": "Source"}}]},
        "status": {"tags": [{"tag": "latest", "items": [{"generation": imported, "image": "sha256:a"}]}]},
    });
    serde_json::from_value(value).unwrap()
}

fn good() -> Result<Value, PostError> {
    Ok(json!({"status": {"images": [{"status": {"status": "Success"}}]}}))
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_imported_once() {
    let world = World::new(good());
    world.streams.replace(vec![stream("web", 2, 1, false), stream("other", 1, 1, false)]);
    world.streams.apply(stream("web", 2, 1, false));
    world.pass(1).await;
    assert_eq!(*world.server.asked.lock(), [("shop/web".to_owned(), 0)]);
    world.streams.apply(stream("web", 2, 2, false));
    world.pass(10_000).await;
    assert_eq!(world.asked(), [0]);
    world.streams.apply(stream("web", 3, 2, false));
    world.pass(1).await;
    assert_eq!(world.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_shows_is_not_asked_for_again() {
    let world = World::new(good());
    world.streams.apply(stream("web", 2, 1, false));
    for _ in 0..100 {
        world.pass(60).await;
        world.streams.apply(stream("web", 2, 1, false));
    }
    assert_eq!(world.asked(), [0]);
}

#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_is_sent_again_ever_more_slowly_and_not_for_ever() {
    let world = World::new(Err(PostError::Failed("connection refused".to_owned())));
    world.streams.apply(stream("web", 2, 1, false));
    world.pass(30).await;
    // News of the stream do not make it faster.
    world.streams.apply(stream("web", 2, 1, false));
    world.pass(70).await;
    assert_eq!(world.asked(), [0, 1, 3, 7, 15, 31, 63]);
    world.pass(7 * 24 * 3600).await;
    assert_eq!(world.asked().len(), usize::try_from(BACKOFF.attempts).unwrap());
    // Somebody changes the tag: at once.
    let before = world.asked().len();
    world.streams.apply(stream("web", 3, 1, false));
    world.pass(2).await;
    assert_eq!(world.asked().len(), before + 2);
    *world.server.answer.lock() = good();
    world.pass(10_000).await;
    assert_eq!(world.asked().len(), before + 3);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_refused_is_not_sent_again() {
    let world = World::new(Err(PostError::Refused("invalid".to_owned())));
    for _ in 0..10 {
        world.streams.apply(stream("web", 2, 1, false));
        world.pass(100).await;
    }
    assert_eq!(world.asked(), [0]);
    world.streams.apply(stream("web", 3, 1, false));
    world.pass(100).await;
    assert_eq!(world.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn scheduled_tags_come_once_per_interval() {
    let world = World::new(good());
    world.streams.apply(stream("web", 2, 2, true));
    world.pass(4000).await;
    let asked = world.asked();
    assert!((450..=900).contains(&asked[0]), "{asked:?}");
    assert!(asked.windows(2).all(|pair| pair[1] - pair[0] == 900), "{asked:?}");
    assert!((4..=5).contains(&asked.len()), "{asked:?}");
    // Without a network neither more nor fewer.
    *world.server.answer.lock() = Err(PostError::Failed("connection refused".to_owned()));
    world.pass(9000).await;
    assert_eq!(world.asked().len(), asked.len() + 10);
    world.streams.delete(stream("web", 2, 2, true));
    world.pass(9000).await;
    assert_eq!(world.asked().len(), asked.len() + 10);
}

#[tokio::test(start_paused = true)]
async fn an_import_on_demand_puts_the_scheduled_one_off() {
    let world = World::new(good());
    world.streams.apply(stream("web", 2, 2, true));
    world.pass(400).await;
    assert!(world.asked().is_empty());
    world.streams.apply(stream("web", 3, 2, true));
    world.pass(10).await;
    world.streams.apply(stream("web", 3, 3, true));
    world.pass(1000).await;
    assert_eq!(world.asked(), [400, 1300]);
}

#[tokio::test(start_paused = true)]
async fn streams_that_went_unseen_are_forgotten() {
    let world = World::new(Err(PostError::Failed("connection refused".to_owned())));
    world.streams.replace(vec![stream("web", 2, 1, true)]);
    world.pass(2).await;
    let before = world.asked().len();
    world.streams.replace(Vec::new());
    world.pass(10_000).await;
    assert_eq!(world.asked().len(), before);
    assert_eq!(world.run.metrics.depth.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn many_streams_share_the_rate() {
    let world = World::new(good());
    let all = (0..200).map(|number| stream(&format!("s{number}"), 2, 1, false));
    world.streams.replace(all.collect());
    world.pass(1000).await;
    let asked = world.asked();
    assert_eq!(asked.len(), 200);
    assert_eq!(asked.iter().filter(|at| **at == 0).count(), 120);
    assert_eq!(asked[199], 80);
}
