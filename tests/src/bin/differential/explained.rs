//! The differences that are meant: each named by case and place, with the reason.

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use crate::case::Suite;
use crate::compare::Difference;

/// One entry of `explained.yaml`. A `*` in `case` or `at` stands for any text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    case: String,
    at: String,
    reason: String,
    #[serde(skip)]
    used: bool,
}

/// All entries.
#[derive(Debug)]
pub(crate) struct Explained {
    entries: Vec<Entry>,
}

impl Explained {
    /// Reads the `explained.yaml` of a suite.
    ///
    /// # Errors
    /// When it cannot be read or an entry gives no reason.
    pub(crate) fn read(suite: Suite) -> anyhow::Result<Self> {
        let file = suite.folder().join("explained.yaml");
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        Self::parse(&text).with_context(|| file.display().to_string())
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let entries: Vec<Entry> = serde_saphyr::from_str(text)?;
        for entry in &entries {
            ensure!(
                entry.reason.split_whitespace().count() > 3,
                "{}: {} gives no reason",
                entry.case,
                entry.at
            );
        }
        Ok(Self { entries })
    }

    /// Whether an entry explains the difference.
    pub(crate) fn explains(&mut self, difference: &Difference) -> bool {
        let matching = self
            .entries
            .iter_mut()
            .filter(|entry| matches(&entry.case, &difference.case) && matches(&entry.at, &difference.at));
        let mut explained = false;
        for entry in matching {
            entry.used = true;
            explained = true;
        }
        explained
    }

    /// The entries that explained nothing: what they speak of is not there (any more).
    pub(crate) fn idle(&self) -> Vec<String> {
        let idle = self.entries.iter().filter(|entry| !entry.used);
        idle.map(|entry| format!("{}: {}", entry.case, entry.at)).collect()
    }
}

/// Whether `text` is `pattern`, in which each `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(first) else { return false };
    (0..=text.len()).any(|at| text.get(at..).is_some_and(|text| matches(rest, text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(case: &str, at: &str) -> Difference {
        Difference { case: case.to_owned(), at: at.to_owned(), real: None, ours: None }
    }

    #[test]
    fn an_entry_explains_its_place_only() {
        let text = "- {case: 'route-*/get', at: body.status.*, reason: computed on read as designed}";
        let mut explained = Explained::parse(text).unwrap();
        assert!(!explained.explains(&difference("route-a/get", "body.spec.host")));
        assert_eq!(explained.idle().len(), 1);
        assert!(explained.explains(&difference("route-a/get", "body.status.ingress")));
        assert!(explained.idle().is_empty());
        assert!(Explained::parse("- {case: a, at: b, reason: because}").is_err());
    }

    #[test]
    fn stars_stand_for_any_text() {
        assert!(matches("a*c", "abc") && matches("a*", "a") && matches("*b*", "abc"));
        assert!(!matches("a*c", "abd") && !matches("abc", "abcd"));
    }
}
