//! Reading a watch event by event.

use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::{Buf as _, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

/// One event as it came.
#[derive(Debug, Clone, Deserialize)]
pub struct Event {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The object.
    pub object: Value,
}

impl Event {
    /// `metadata.name` of the object, empty where there is none.
    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// `metadata.resourceVersion` as a number, 0 where there is none.
    pub fn revision(&self) -> u64 {
        self.object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

/// An open watch.
#[derive(Debug)]
pub struct Watch {
    body: Incoming,
    buffer: BytesMut,
}

impl Watch {
    /// The watch whose answer has this body.
    pub fn new(body: Incoming) -> Self {
        Self { body, buffer: BytesMut::new() }
    }

    /// The next event, `None` when the server ended the watch.
    ///
    /// # Errors
    /// When none comes before `deadline`, the connection breaks, or what comes is no event.
    pub async fn next_before(&mut self, deadline: Instant) -> anyhow::Result<Option<Event>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end);
                self.buffer.advance(1);
                if line.is_empty() {
                    continue;
                }
                let event = serde_json::from_slice(&line)
                    .with_context(|| format!("no watch event: {}", String::from_utf8_lossy(&line)))?;
                return Ok(Some(event));
            }
            let frame = timeout_at(deadline, self.body.frame()).await.context("no event came in time")?;
            let Some(frame) = frame else { return Ok(None) };
            if let Some(data) = frame?.data_ref() {
                self.buffer.extend_from_slice(data);
            }
        }
    }

    /// The next event for which `wanted` holds, within `seconds`; bookmarks and others are passed over.
    ///
    /// # Errors
    /// When none comes in time; the message lists what came instead.
    pub async fn until(&mut self, seconds: u64, wanted: impl Fn(&Event) -> bool) -> anyhow::Result<Event> {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        let mut seen = Vec::new();
        loop {
            match self.next_before(deadline).await {
                Ok(Some(event)) if wanted(&event) => return Ok(event),
                Ok(Some(event)) => seen.push(format!("{} {}@{}", event.kind, event.name(), event.revision())),
                Ok(None) => bail!("the watch ended; seen before: {seen:?}"),
                Err(error) => return Err(error.context(format!("seen before: {seen:?}"))),
            }
        }
    }

    /// Every event that comes until `last` holds for one, that one included.
    ///
    /// # Errors
    /// When `last` does not come within `seconds`.
    pub async fn collect_until(
        &mut self,
        seconds: u64,
        last: impl Fn(&Event) -> bool,
    ) -> anyhow::Result<Vec<Event>> {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        let mut events = Vec::new();
        while let Some(event) = self.next_before(deadline).await? {
            let done = last(&event);
            events.push(event);
            if done {
                return Ok(events);
            }
        }
        bail!("the watch ended after {} events", events.len())
    }
}
