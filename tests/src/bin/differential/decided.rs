//! What ours answers where it is meant to differ: written down, so that an explanation covers that answer and no other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::Value;

use crate::case::Suite;
use crate::compare::Difference;

/// Places of a case and what ours has there: one value, or none.
type Places = BTreeMap<String, Vec<Value>>;

/// The decided answers of one topic, by case.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    cases: BTreeMap<String, Places>,
    met: BTreeSet<(String, String)>,
}

fn file(suite: Suite, topic: &str) -> PathBuf {
    suite.folder().join("decided").join(format!("{topic}.json"))
}

impl Decided {
    /// Reads what is decided about a topic; nothing where there is no file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn read(suite: Suite, topic: &str) -> anyhow::Result<Self> {
        let file = file(suite, topic);
        let cases = match std::fs::read(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            found => serde_json::from_slice(&found?).with_context(|| file.display().to_string())?,
        };
        Ok(Self { cases, met: BTreeSet::new() })
    }

    /// Whether ours has at this place what was decided.
    pub(crate) fn holds(&mut self, difference: &Difference) -> bool {
        let decided = self.cases.get(&difference.case).and_then(|places| places.get(&difference.at));
        let holds = decided.is_some_and(|decided| decided.first() == difference.ours.as_ref());
        if decided.is_some() {
            self.met.insert((difference.case.clone(), difference.at.clone()));
        }
        holds
    }

    /// The places at which nothing differs (any more).
    pub(crate) fn idle(&self) -> Vec<String> {
        let places = self.cases.iter().flat_map(|(case, places)| places.keys().map(move |at| (case, at)));
        let idle = places.filter(|(case, at)| !self.met.contains(&((*case).clone(), (*at).clone())));
        idle.map(|(case, at)| format!("{case}: {at}")).collect()
    }
}

/// Writes down that what differs in a topic is meant.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn decide(suite: Suite, topic: &str, differences: &[Difference]) -> anyhow::Result<()> {
    let file = file(suite, topic);
    if differences.is_empty() {
        return match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        };
    }
    let mut cases: BTreeMap<&str, Places> = BTreeMap::new();
    for difference in differences {
        let places = cases.entry(&difference.case).or_default();
        places.insert(difference.at.clone(), difference.ours.iter().cloned().collect());
    }
    let mut text = serde_json::to_vec_pretty(&cases)?;
    text.push(b'\n');
    std::fs::create_dir_all(suite.folder().join("decided"))?;
    std::fs::write(&file, text).with_context(|| file.display().to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn another_answer_than_the_decided_one_does_not_hold() {
        let cases = json!({"t/s": {"body.a": [1], "body.b": [], "body.c": [null]}});
        let mut decided = Decided { cases: serde_json::from_value(cases).unwrap(), met: BTreeSet::new() };
        let mut holds = |at: &str, ours: Option<Value>| {
            let difference = Difference { case: "t/s".to_owned(), at: at.to_owned(), real: None, ours };
            decided.holds(&difference)
        };
        assert!(holds("body.a", Some(json!(1))) && holds("body.b", None) && !holds("body.b", Some(json!(1))));
        assert!(!holds("body.a", Some(json!(2))) && !holds("body.d", None) && !holds("body.a", None));
        assert_eq!(decided.idle(), ["t/s: body.c"]);
    }
}
