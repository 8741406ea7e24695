//! Plays a topic against a server: fills in the words, sends, reads watches, and gives the normal form of every answer.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail, ensure};
use http::Method;
use http::header::HeaderMap;
use picoshift_tests::http::Answer as Raw;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::alike;
use crate::caller::{Call, Caller, Outcome};
use crate::case::{Answer, Answers, Step, Topic};
use crate::distinct::Target;
use crate::normal::Names;
use crate::planted::Feed;

/// The headers that are compared.
const HEADERS: [&str; 6] =
    ["content-type", "warning", "retry-after", "allow", "location", "www-authenticate"];
/// Words for texts that are too long.
const LARGE: [(&str, usize); 2] = [("4MB", 4 << 20), ("300KB", 300 << 10)];
/// How long the awaited events of a watch may take.
const EVENTS_WITHIN: Duration = Duration::from_secs(15);
/// How long after the last request a watch has to be silent after them, and at least.
const SILENCE: Duration = Duration::from_millis(600);
const LEAST_SILENCE: Duration = Duration::from_millis(40);
/// How long a real server gets to settle.
const SETTLING: Duration = Duration::from_secs(4);

/// What came of playing a topic.
#[derive(Debug, Default)]
pub(crate) struct Played {
    /// The answers of the steps that are cases.
    pub(crate) answers: Answers,
    /// Revisions that went back, with the step that saw it.
    pub(crate) violations: Vec<(String, String)>,
}

/// The server that a topic is played against.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Side {
    /// Whether it is a real server, whose list of projects takes a while.
    pub(crate) real: bool,
    /// The group that `{group}` stands for, when the topic is played against both groups.
    pub(crate) group: Option<&'static str>,
    /// Whether managedFields are compared.
    pub(crate) managers: bool,
}

/// Plays a topic against a server and removes afterwards what it made.
///
/// # Errors
/// When the server cannot be reached or a preparation fails. An answer of any kind is none.
pub(crate) async fn play(topic: &Topic, caller: &Caller, side: Side) -> anyhow::Result<Played> {
    let mut player = Player::new(topic, caller, &crate::run_word(), side);
    let result = player.all().await;
    player.clean_up().await?;
    result.map(|()| player.played)
}

struct Player<'a> {
    topic: &'a Topic,
    caller: &'a Caller,
    side: Side,
    words: BTreeMap<String, String>,
    names: Names,
    /// Bodies as they came, for references.
    raw: BTreeMap<String, Value>,
    watches: BTreeMap<String, Feed>,
    /// When the last request was answered.
    asked: Instant,
    played: Played,
}

impl<'a> Player<'a> {
    fn new(topic: &'a Topic, caller: &'a Caller, run: &str, side: Side) -> Self {
        let mut words = BTreeMap::from([("run".to_owned(), run.to_owned())]);
        words.extend(side.group.map(|group| ("group".to_owned(), group.to_owned())));
        words.extend(LARGE.map(|(word, bytes)| (word.to_owned(), "x".repeat(bytes))));
        for name in &topic.namespaces {
            words.insert(name.clone(), format!("{}-{name}-{run}", topic.name));
        }
        for (word, meaning) in &topic.words {
            let meaning = fill(meaning, &words);
            words.insert(word.clone(), meaning);
        }
        let (names, played) = (Names::new(run, side.managers), Played::default());
        let (raw, watches, asked) = (BTreeMap::new(), BTreeMap::new(), Instant::now());
        Self { topic, caller, side, words, names, raw, watches, asked, played }
    }

    async fn all(&mut self) -> anyhow::Result<()> {
        for name in &self.topic.namespaces {
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.words[name]}});
            let step = Step { body: Some(namespace), ..plain("POST /api/v1/namespaces") };
            self.prepare(&step).await?;
        }
        for step in &self.topic.steps {
            self.step(step).await.with_context(|| format!("{}/{}", self.topic.name, step.name))?;
            for violation in self.names.take_violations() {
                self.played.violations.push((step.name.clone(), violation));
            }
        }
        Ok(())
    }

    async fn clean_up(&self) -> anyhow::Result<()> {
        let namespaces =
            self.topic.namespaces.iter().map(|name| format!("DELETE /api/v1/namespaces/{{{name}}}"));
        for line in self.topic.cleanup.iter().cloned().chain(namespaces) {
            self.caller.send(&self.call(&plain(&line))?, false).await?;
        }
        Ok(())
    }

    async fn prepare(&mut self, step: &Step) -> anyhow::Result<()> {
        let call = self.call(step)?;
        let answer = self.caller.send_until(&call, |answer| answer.status.is_success()).await?;
        ensure!(answer.status.is_success(), "{} answered {}: {}", step.send, answer.status, answer.text());
        self.raw.insert(step.name.clone(), answer.json().unwrap_or_default());
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> anyhow::Result<()> {
        if step.settles && self.side.real {
            tokio::time::sleep(SETTLING).await;
        }
        if step.early {
            let passed = SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_nanos();
            tokio::time::sleep(Duration::from_nanos((1_000_000_000 - passed).into())).await;
        }
        if step.setup {
            return self.prepare(step).await;
        }
        if let Some(watch) = &step.events {
            let answer = self.events(step, watch).await?;
            self.played.answers.insert(step.name.clone(), answer);
            return Ok(());
        }
        let call = self.call(step)?;
        let raw = if let Some(code) = step.until {
            self.caller.send_until(&call, |answer| answer.status.as_u16() == code).await?
        } else {
            match self.caller.send(&call, step.opens_watch()).await? {
                Outcome::Answer(answer) => answer,
                Outcome::Watch(watch, head) => {
                    self.watches.insert(step.name.clone(), watch);
                    head
                }
            }
        };
        self.asked = Instant::now();
        let answer = self.normal(step, &call, &raw);
        self.played.answers.insert(step.name.clone(), answer);
        Ok(())
    }

    fn normal(&mut self, step: &Step, call: &Call, raw: &Raw) -> Answer {
        let mut body = body(&raw.headers, raw);
        let plain = body.get("yaml").unwrap_or(&body);
        self.raw.insert(step.name.clone(), plain.clone());
        if raw.status.is_success() && plain["metadata"]["uid"].is_string() {
            self.raw.insert("last".to_owned(), plain.clone());
        }
        if let Some(only) = &step.only {
            keep_only(&mut body, &fill(only, &self.words));
        }
        let sent = step.body.as_ref().and_then(|body| body["metadata"]["generateName"].as_str());
        if let (Some(prefix), Some(name)) =
            (sent, body["metadata"]["name"].as_str().or(body["details"]["name"].as_str()))
        {
            self.names.generated(prefix, name);
        }
        // A list as it was at a revision may show an older one than the list before.
        let now = !call.path.contains("resourceVersion=") && !call.path.contains("continue=");
        let target = Target::of(&call.method, &call.path);
        let collection = (now && target.verb == "list").then(|| target.collection());
        let body = self.names.body(&step.name, collection.as_deref(), &self.alike(&body));
        let mut headers = BTreeMap::new();
        if self.side.group.is_some() && raw.body.starts_with(b"{\n  ") {
            headers.insert("(indented)".to_owned(), Vec::new());
        }
        for name in HEADERS {
            let values: Vec<String> = raw
                .headers
                .get_all(name)
                .iter()
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
                .collect();
            if !values.is_empty() {
                let values = values.iter().map(|value| self.header(&step.name, name, value)).collect();
                headers.insert(name.to_owned(), values);
            }
        }
        Answer { code: raw.status.as_u16(), headers, body, events: Vec::new() }
    }

    async fn events(&mut self, step: &Step, watch: &str) -> anyhow::Result<Answer> {
        let mut events = Vec::new();
        if let Some(open) = self.watches.get_mut(watch) {
            let mut deadline = Instant::now() + EVENTS_WITHIN;
            loop {
                if events.len() == step.count {
                    deadline = (self.asked + SILENCE).max(Instant::now() + LEAST_SILENCE);
                }
                match open.next_before(deadline).await {
                    // Sent as time goes by; the one that ends the initial events is awaited.
                    Ok(Some(event))
                        if event.kind == "BOOKMARK"
                            && !event.object.to_string().contains("k8s.io/initial-events-end") => {}
                    Ok(Some(event)) => events.push(json!({"type": event.kind, "object": event.object})),
                    Ok(None) => {
                        events.push(json!({"type": "END"}));
                        break;
                    }
                    // Silence, wanted or not: what is missing shows in the comparison.
                    Err(_) => break,
                }
            }
        }
        self.raw.insert(step.name.clone(), Value::Array(events.clone()));
        let mut normal = Vec::new();
        for (index, event) in events.iter().enumerate() {
            let place = format!("{}[{index}]", step.name);
            let object = self.names.event(&place, watch, &self.alike(&event["object"]));
            normal.push(json!({"type": event["type"], "object": object}));
        }
        Ok(Answer { code: 0, headers: BTreeMap::new(), body: Value::Null, events: normal })
    }

    fn alike(&self, body: &Value) -> Value {
        self.side.group.map_or_else(|| body.clone(), |group| alike::body(group, body))
    }

    fn header(&mut self, step: &str, name: &str, value: &str) -> String {
        let value = self.side.group.map_or_else(|| value.to_owned(), |group| alike::text(group, value));
        self.names.text(step, name, &value)
    }

    fn call(&self, step: &Step) -> anyhow::Result<Call> {
        let (method, path) = step.request_line();
        let accept = step.accept.clone().unwrap_or_else(|| "application/json".to_owned());
        let mut headers = vec![("accept".to_owned(), accept)];
        headers.extend(step.content_type.iter().map(|value| ("content-type".to_owned(), value.clone())));
        for (name, value) in &step.headers {
            headers.push((name.to_ascii_lowercase(), self.text(value)?));
        }
        let body = match (&step.body, &step.text) {
            (Some(body), _) => Some(serde_json::to_vec(&self.value(body)?)?),
            (None, Some(text)) => Some(self.text(text)?.into_bytes()),
            (None, None) => None,
        };
        let user = if matches!(step.user.as_str(), "admin" | "nobody") {
            step.user.clone()
        } else {
            self.text(&step.user)?
        };
        Ok(Call {
            method: Method::from_bytes(method.as_bytes())?,
            path: self.text(path)?,
            user,
            groups: step.groups.iter().map(|group| self.text(group)).collect::<anyhow::Result<_>>()?,
            headers,
            body,
        })
    }

    fn value(&self, value: &Value) -> anyhow::Result<Value> {
        Ok(match value {
            Value::String(text) => Value::String(self.text(text)?),
            Value::Array(items) => {
                items.iter().map(|item| self.value(item)).collect::<anyhow::Result<Value>>()?
            }
            Value::Object(map) => {
                let fields = map.iter().map(|(key, value)| anyhow::Ok((self.text(key)?, self.value(value)?)));
                Value::Object(fields.collect::<anyhow::Result<_>>()?)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        })
    }

    /// Fills in words, and references `${STEP /JSON/POINTER}` to what earlier steps were answered; the step `last` is the
    /// last one that was answered with an object.
    fn text(&self, text: &str) -> anyhow::Result<String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (reference, after) = after.split_once('}').context("a reference without an end")?;
            let (step, pointer) = reference.rsplit_once(' ').context("a reference is `${STEP /POINTER}`")?;
            let Some(raw) = self.raw.get(step) else { bail!("no step before is called {step:?}") };
            let value = raw.pointer(pointer).and_then(Value::as_str);
            out.push_str(&fill(before, &self.words));
            // Where it is missing the answers differ already, and the next one will tell more.
            out.push_str(value.unwrap_or("missing"));
            rest = after;
        }
        out.push_str(&fill(rest, &self.words));
        Ok(out)
    }
}

/// A step of the administrator's that is no case.
fn plain(line: &str) -> Step {
    let empty = json!({"name": line, "send": line, "setup": true});
    serde_json::from_value(empty).unwrap_or_else(|_| unreachable!("the fields of a step are these"))
}

fn fill(text: &str, words: &BTreeMap<String, String>) -> String {
    let mut text = text.to_owned();
    for (word, meaning) in words {
        text = text.replace(&format!("{{{word}}}"), meaning);
    }
    text
}

fn body(headers: &HeaderMap, raw: &Raw) -> Value {
    let content_type = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if raw.body.is_empty() {
        return Value::Null;
    }
    if content_type.contains("protobuf") {
        return json!({"protobuf": raw.body.starts_with(b"k8s\0")});
    }
    if content_type.contains("yaml") {
        return serde_saphyr::from_str(&raw.text())
            .map_or_else(|_| raw.text().into(), |yaml: Value| json!({"yaml": yaml}));
    }
    raw.json().unwrap_or_else(|_| raw.text().into())
}

/// Leaves out the items and rows of a list whose names have not `part` in them.
fn keep_only(body: &mut Value, part: &str) {
    let has = |metadata: &Value| metadata["name"].as_str().is_some_and(|name| name.contains(part));
    if let Some(items) = body.get_mut("items").and_then(Value::as_array_mut) {
        items.retain(|item| has(&item["metadata"]));
    }
    if let Some(rows) = body.get_mut("rows").and_then(Value::as_array_mut) {
        rows.retain(|row| row["cells"][0].as_str().is_some_and(|name| name.contains(part)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_filled_in() {
        let words = BTreeMap::from([("ns".to_owned(), "shop".to_owned())]);
        assert_eq!(fill("/namespaces/{ns}/x{y}", &words), "/namespaces/shop/x{y}");
    }

    #[test]
    fn lists_keep_only_what_is_named() {
        let mut list = json!({"items": [{"metadata": {"name": "a-qz"}}, {"metadata": {"name": "b"}}]});
        keep_only(&mut list, "qz");
        assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
    }
}
