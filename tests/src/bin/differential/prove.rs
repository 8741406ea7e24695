//! Whether this runner notices: replays against a build of ours that answers wrongly when it is asked to.

use std::path::Path;

use crate::Topics;
use crate::caller::Caller;
use crate::case::Suite;
use crate::replay::replay;

/// The faults that `apiserver` can plant (feature `planted-faults`), the suite that shows them, and the place at which
/// each has to be reported: the beginning of a difference's.
const FAULTS: [(&str, Suite, &str); 20] = [
    ("wrong-code", Suite::Recorded, "code"),
    ("wrong-reason", Suite::Recorded, "body.reason"),
    ("missing-details", Suite::Recorded, "body.details"),
    ("lost-warning", Suite::Recorded, "header warning"),
    ("wrong-media-type", Suite::Recorded, "header content-type"),
    ("revision-going-back", Suite::Recorded, "revision"),
    ("event-out-of-order", Suite::Recorded, "event "),
    ("lost-event", Suite::Recorded, "event "),
    ("lost-label", Suite::Recorded, "body.metadata.labels"),
    ("extra-field", Suite::Recorded, "body.planted"),
    ("wrong-column", Suite::Recorded, "body.columnDefinitions"),
    ("missing-condition", Suite::Recorded, "body.status"),
    ("wrong-remaining-count", Suite::Live, "body.metadata.remainingItemCount"),
    ("lost-continue", Suite::Live, "body.metadata.continue"),
    ("wrong-cell", Suite::Live, "body.rows[0]"),
    ("lost-bookmark", Suite::Live, "event "),
    ("dry-run-that-writes", Suite::Live, "code"),
    ("lost-unknown-field-warning", Suite::Live, "header warning"),
    ("wrong-generation", Suite::Live, "body.metadata.generation"),
    ("unchanged-revision", Suite::Live, "body.metadata.resourceVersion"),
];

/// Plants every fault once; true when each was reported where it is, and nothing is when none is planted.
///
/// # Errors
/// When the server cannot be reached, or nothing is recorded.
pub(crate) async fn prove(topics: &Topics, kubeconfig: &Path) -> anyhow::Result<bool> {
    let without = topics.replay(&Caller::new(kubeconfig, None)?, false).await?;
    let mut good = without.unexplained.is_empty();
    println!("no fault: {} unexplained differences", without.unexplained.len());
    for (fault, suite, place) in FAULTS {
        let topics = topics.of(suite);
        let report = replay(suite, topics, &Caller::new(kubeconfig, Some(fault))?, false).await?;
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
