//! What the case files say: topics, each a sequence of requests that share their namespaces.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::vary;

/// Which of our peers a topic is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suite {
    /// OpenShift's own servers, whose answers are recorded.
    Recorded,
    /// A CRD on the kube-apiserver before ours, asked at the same time.
    Live,
}

impl Suite {
    /// The folder of its case files, its explained differences, and its recorded answers if any.
    pub(crate) fn folder(self) -> PathBuf {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("differential");
        match self {
            Self::Recorded => folder,
            Self::Live => folder.join("peer"),
        }
    }
}

/// One file of `cases/`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Topic {
    /// The file's name without its ending.
    #[serde(skip)]
    pub(crate) name: String,
    /// Namespaces of its own; `{NAME}` stands for the real name of one.
    #[serde(default)]
    pub(crate) namespaces: Vec<String>,
    /// Further words in braces, for paths that are used again and again.
    #[serde(default, rename = "let")]
    pub(crate) words: BTreeMap<String, String>,
    /// The object that a step's `with` changes.
    #[serde(default)]
    base: Value,
    /// The requests, in order.
    pub(crate) steps: Vec<Step>,
    /// Requests that remove what the namespaces do not take with them; their answers do not matter.
    #[serde(default)]
    pub(crate) cleanup: Vec<String>,
}

/// One request, or the events that a watch opened earlier has seen.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// Its name, alone of its kind in the topic.
    pub(crate) name: String,
    /// `METHOD PATH`. With `watch=true` in the path the answer is read by later steps.
    #[serde(default)]
    pub(crate) send: String,
    /// Who asks: `admin`, `nobody`, or the name of an ordinary user.
    #[serde(default = "admin", rename = "as")]
    pub(crate) user: String,
    /// Groups of an ordinary user besides those that kube-apiserver adds.
    #[serde(default)]
    pub(crate) groups: Vec<String>,
    /// `Accept`; JSON where it is not said.
    pub(crate) accept: Option<String>,
    /// `Content-Type`; JSON where there is a body and it is not said.
    #[serde(rename = "type")]
    pub(crate) content_type: Option<String>,
    /// Further headers.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// A JSON body.
    pub(crate) body: Option<Value>,
    /// A body as it is.
    pub(crate) text: Option<String>,
    /// The topic's `base` as the body, after this merge patch.
    pub(crate) with: Option<Value>,
    /// Makes a step of each combination (see [`crate::vary`]).
    #[serde(default)]
    pub(crate) vary: BTreeMap<String, Vec<Value>>,
    /// What is peculiar about its body: the label of a `with` or `text` of `vary`.
    #[serde(skip)]
    pub(crate) defect: String,
    /// Whether this only prepares others: sent until it succeeds, its answer not compared.
    #[serde(default)]
    pub(crate) setup: bool,
    /// Whether a real server gets a while before it is sent: its list of projects is up to a second behind.
    #[serde(default)]
    pub(crate) settles: bool,
    /// Whether it is sent when a second begins: what is compared depends on whether it and the next steps fall into one.
    #[serde(default)]
    pub(crate) early: bool,
    /// Whether to ask again for a while until the answer has this code.
    pub(crate) until: Option<u16>,
    /// Leaves out of a list whatever has not this in its name.
    pub(crate) only: Option<String>,
    /// The step that opened the watch whose events are read now.
    pub(crate) events: Option<String>,
    /// How many events are awaited; what comes besides is a difference.
    #[serde(default)]
    pub(crate) count: usize,
}

fn admin() -> String {
    "admin".to_owned()
}

impl Step {
    /// Method and path as they are written.
    pub(crate) fn request_line(&self) -> (&str, &str) {
        self.send.split_once(' ').unwrap_or((&self.send, ""))
    }

    /// Whether it opens a watch.
    pub(crate) fn opens_watch(&self) -> bool {
        let (method, path) = self.request_line();
        method == "GET" && (path.contains("watch=true") || path.contains("watch=1"))
    }
}

impl Topic {
    /// A step's `METHOD PATH` with the words of the topic filled in, those of a run not.
    pub(crate) fn request_line(&self, step: &Step) -> String {
        let words = self.words.iter();
        words.fold(step.send.clone(), |line, (word, meaning)| line.replace(&format!("{{{word}}}"), meaning))
    }
}

/// A normalised answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// The status code.
    pub(crate) code: u16,
    /// The headers that are compared.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, Vec<String>>,
    /// The body: its JSON, `{"yaml": …}`, `{"protobuf": true}` or its text.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) body: Value,
    /// The events of a watch, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) events: Vec<Value>,
}

/// The answers of a topic by the names of its steps.
pub(crate) type Answers = BTreeMap<String, Answer>;

/// Reads the topics of a suite whose names contain one of `wanted` (all when none is given).
///
/// # Errors
/// When a file cannot be read, or says what no topic can.
pub(crate) fn topics(suite: Suite, wanted: &[String]) -> anyhow::Result<Vec<Topic>> {
    let folder = suite.folder().join("cases");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .with_context(|| folder.display().to_string())?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    let mut topics = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !wanted.is_empty() && !wanted.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        let text = std::fs::read_to_string(&file)?;
        topics.push(parse(&name, &text).with_context(|| file.display().to_string())?);
    }
    Ok(topics)
}

fn parse(name: &str, text: &str) -> anyhow::Result<Topic> {
    let mut topic: Topic = serde_saphyr::from_str(text)?;
    name.clone_into(&mut topic.name);
    topic.steps = vary::expand(&topic.base, std::mem::take(&mut topic.steps))?;
    let mut names = BTreeSet::new();
    for step in &topic.steps {
        ensure!(names.insert(&step.name), "two steps are called {:?}", step.name);
        ensure!(
            step.send.is_empty() == step.events.is_some(),
            "{:?} has to send or to read events",
            step.name
        );
    }
    Ok(topic)
}

/// Where the answers of a topic are kept.
pub(crate) fn answers_file(topic: &str) -> PathBuf {
    Suite::Recorded.folder().join("answers").join(format!("{topic}.json"))
}

/// Reads the recorded answers of a topic.
///
/// # Errors
/// When there are none.
pub(crate) fn recorded(topic: &str) -> anyhow::Result<Answers> {
    let file = answers_file(topic);
    let text = std::fs::read(&file).with_context(|| format!("{}: nothing is recorded", file.display()))?;
    serde_json::from_slice(&text).with_context(|| file.display().to_string())
}

/// Keeps the answers of a topic.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn record(topic: &str, answers: &Answers) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec_pretty(answers)?;
    text.push(b'\n');
    let file = answers_file(topic);
    std::fs::write(&file, text).with_context(|| file.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_needs_a_name_of_its_own_and_one_thing_to_do() {
        let good = "steps:\n- {name: a, send: GET /x}\n- {name: b, events: a, count: 1}\n";
        assert_eq!(parse("t", good).unwrap().steps.len(), 2);
        assert!(parse("t", "steps:\n- {name: a, send: GET /x}\n- {name: a, send: GET /x}\n").is_err());
        assert!(parse("t", "steps:\n- {name: a}\n").is_err());
        assert!(parse("t", "steps:\n- {name: a, send: GET /x, unknown: 1}\n").is_err());
    }

    #[test]
    fn every_case_file_can_be_read_and_has_its_answers() {
        assert!(!topics(Suite::Live, &[]).unwrap().is_empty());
        for topic in topics(Suite::Recorded, &[]).unwrap() {
            let answers = recorded(&topic.name).unwrap();
            for step in topic.steps.iter().filter(|step| !step.setup) {
                assert!(answers.contains_key(&step.name), "{}/{} is not recorded", topic.name, step.name);
            }
        }
    }
}
