//! Order, pauses and parallelism, on a clock that the tests move.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{advance, sleep, timeout};

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const BACKOFF: Backoff = Backoff { first: SECOND, longest: Duration::from_secs(4), attempts: 4 };

fn queue() -> Queue<&'static str> {
    Queue::new(BACKOFF, ControllerMetrics::default())
}

/// The next key with its time, if one is due within a minute.
async fn next(queue: &Queue<&'static str>, start: Instant) -> Option<(&'static str, u64)> {
    let key = timeout(Duration::from_secs(60), queue.next()).await.ok()?;
    Some((key, start.elapsed().as_secs()))
}

#[tokio::test(start_paused = true)]
async fn each_key_is_there_once() {
    let (queue, start) = (queue(), Instant::now());
    queue.schedule("late", start + 10 * SECOND);
    queue.schedule("late", start + 5 * SECOND);
    queue.add("now");
    queue.add("now");
    queue.schedule("sooner", start + 20 * SECOND);
    queue.add("sooner");
    assert_eq!(queue.metrics.depth.get(), 3);
    assert_eq!(next(&queue, start).await, Some(("now", 0)));
    queue.schedule("now", start);
    assert_eq!(next(&queue, start).await, Some(("sooner", 0)));
    assert_eq!(next(&queue, start).await, Some(("late", 10)));
    assert_eq!(next(&queue, start).await, None);
    assert_eq!(queue.metrics.depth.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_worked_on_comes_again_only_afterwards() {
    let (queue, start) = (queue(), Instant::now());
    queue.add("a");
    assert_eq!(next(&queue, start).await, Some(("a", 0)));
    queue.add("a");
    assert_eq!(next(&queue, start).await, None);
    let start = Instant::now();
    queue.done("a", Outcome::Done);
    assert_eq!(next(&queue, start).await, Some(("a", 0)));
    queue.done("a", Outcome::Until(start + 7 * SECOND));
    assert_eq!(next(&queue, start).await, Some(("a", 7)));
    queue.done("a", Outcome::Done);
    assert_eq!(next(&queue, start).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_fails_pauses_longer_each_time_and_then_rests() {
    let (queue, start) = (queue(), Instant::now());
    queue.add("a");
    let mut tried = Vec::new();
    while let Some((key, at)) = next(&queue, start).await {
        tried.push(at);
        queue.add(key);
        queue.done(key, Outcome::Retry);
        queue.add(key);
        if tried.len() == 4 {
            break;
        }
    }
    assert_eq!(tried, [0, 1, 3, 7], "news did not shorten the pauses");
    // It rests, and what `add` brought after the last failure is one try more, not a new row of them.
    let start = Instant::now();
    assert_eq!(next(&queue, start).await, Some(("a", 0)));
    queue.done("a", Outcome::Retry);
    assert_eq!(next(&queue, start).await, None);
    assert_eq!(queue.metrics.errors.get(), 5);
}

#[tokio::test(start_paused = true)]
async fn what_is_forgiven_does_not_pause_and_what_is_removed_does_not_come() {
    let (queue, start) = (queue(), Instant::now());
    queue.add("a");
    assert_eq!(next(&queue, start).await, Some(("a", 0)));
    queue.done("a", Outcome::Retry);
    queue.forgive(&"a");
    queue.add("a");
    assert_eq!(next(&queue, start).await, Some(("a", 0)));
    queue.add("a");
    queue.remove(&"a");
    queue.done("a", Outcome::Done);
    queue.add("b");
    queue.remove(&"b");
    assert_eq!(next(&queue, start).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_key_can_be_put_off() {
    let (queue, start) = (queue(), Instant::now());
    queue.add("a");
    queue.put_off(&"a", start + 9 * SECOND);
    queue.put_off(&"unknown", start);
    assert_eq!(next(&queue, start).await, Some(("a", 9)));
    assert_eq!(next(&queue, start).await, None);
}

#[tokio::test(start_paused = true)]
async fn so_many_at_a_time_and_a_stop_finishes_what_is_under_way() {
    let queue = Arc::new(queue());
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    let (stop, finished) = (Drain::new(), Arc::new(Mutex::new(Vec::new())));
    let worker = tokio::spawn({
        let (queue, stop, finished) = (Arc::clone(&queue), stop.clone(), Arc::clone(&finished));
        async move {
            let work = |key| {
                let finished = &finished;
                async move {
                    sleep(10 * SECOND).await;
                    finished.lock().push(key);
                    Outcome::Done
                }
            };
            queue.work(2, &stop, work).await;
        }
    });
    sleep(SECOND).await;
    assert_eq!(queue.state.lock().running.len(), 2);
    stop.start();
    advance(SECOND).await;
    worker.await.unwrap();
    assert_eq!(*finished.lock(), ["a", "b"]);
    assert_eq!(queue.metrics.depth.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn news_during_the_last_try_is_not_lost() {
    let (queue, start) = (queue(), Instant::now());
    queue.add("a");
    for _ in 1..BACKOFF.attempts {
        assert!(next(&queue, start).await.is_some());
        queue.done("a", Outcome::Retry);
    }
    assert!(next(&queue, start).await.is_some());
    queue.add("a");
    let last = Instant::now();
    queue.done("a", Outcome::Retry);
    assert_eq!(next(&queue, last).await, Some(("a", 0)));
    queue.done("a", Outcome::Retry);
    assert_eq!(next(&queue, last).await, None, "without news it rests");
}
