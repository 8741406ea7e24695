//! Whether this runner notices: replays against a build of ours that answers wrongly when it is asked to.

use std::path::Path;

use crate::caller::Caller;
use crate::case::Topic;
use crate::replay::replay;

/// The faults that `apiserver` can plant (feature `planted-faults`), and the place at which each has to be reported:
/// the beginning of a difference's.
const FAULTS: [(&str, &str); 12] = [
    ("wrong-code", "code"),
    ("wrong-reason", "body.reason"),
    ("missing-details", "body.details"),
    ("lost-warning", "header warning"),
    ("wrong-media-type", "header content-type"),
    ("revision-going-back", "revision"),
    ("event-out-of-order", "event "),
    ("lost-event", "event "),
    ("lost-label", "body.metadata.labels"),
    ("extra-field", "body.planted"),
    ("wrong-column", "body.columnDefinitions"),
    ("missing-condition", "body.status"),
];

/// Plants every fault once; true when each was reported where it is, and nothing is when none is planted.
///
/// # Errors
/// When the server cannot be reached, or nothing is recorded.
pub(crate) async fn prove(topics: &[Topic], kubeconfig: &Path) -> anyhow::Result<bool> {
    let without = replay(topics, &Caller::new(kubeconfig, None)?).await?;
    let mut good = without.unexplained.is_empty();
    println!("no fault: {} unexplained differences", without.unexplained.len());
    for (fault, place) in FAULTS {
        let report = replay(topics, &Caller::new(kubeconfig, Some(fault))?).await?;
        let there = report.unexplained.iter().filter(|difference| !without.unexplained.contains(difference));
        let there: Vec<_> = there.filter(|difference| difference.at.starts_with(place)).collect();
        match there.first() {
            Some(first) => {
                println!("{fault}: reported {} times, first {} at {}", there.len(), first.case, first.at);
            }
            None => println!("{fault}: NOT REPORTED"),
        }
        good &= !there.is_empty();
    }
    Ok(good)
}
