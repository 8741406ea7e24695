//! Whether this runner notices: replays with one fault after the other.

use futures::{StreamExt as _, stream};

use crate::Topics;
use crate::caller::Caller;
use crate::case::{Suite, Topic};
use crate::compare::Difference;
use crate::planted::Fault;
use crate::replay::replay;

/// The faults, the suite and the topic that show them, and the place at which each has to be reported: the beginning of a
/// difference's.
const FAULTS: [(Fault, Suite, &str, &str); 20] = [
    (Fault::WrongCode, Suite::Recorded, "image-image", "code"),
    (Fault::WrongReason, Suite::Recorded, "image-image", "body.reason"),
    (Fault::MissingDetails, Suite::Recorded, "image-image", "body.details"),
    (Fault::LostWarning, Suite::Recorded, "image-image", "header warning"),
    (Fault::WrongMediaType, Suite::Recorded, "image-image", "header content-type"),
    (Fault::RevisionGoingBack, Suite::Recorded, "image-image", "revision"),
    (Fault::EventOutOfOrder, Suite::Recorded, "image-watch", "event "),
    (Fault::LostEvent, Suite::Recorded, "image-watch", "event "),
    (Fault::LostLabel, Suite::Recorded, "image-image", "body.metadata.labels"),
    (Fault::ExtraField, Suite::Recorded, "image-image", "body.planted"),
    (Fault::WrongColumn, Suite::Recorded, "image-image", "body.columnDefinitions"),
    (Fault::MissingCondition, Suite::Recorded, "image-image", "body.status"),
    (Fault::WrongRemainingCount, Suite::Live, "peer-delete", "body.metadata.remainingItemCount"),
    (Fault::LostContinue, Suite::Live, "peer-delete", "body.metadata.continue"),
    (Fault::WrongCell, Suite::Live, "peer-create", "body.rows[0]"),
    (Fault::LostBookmark, Suite::Live, "peer-watch", "event "),
    (Fault::DryRunThatWrites, Suite::Live, "peer-create", "code"),
    (Fault::LostUnknownFieldWarning, Suite::Live, "peer-create", "header warning"),
    (Fault::WrongGeneration, Suite::Live, "peer-create", "body.metadata.generation"),
    (Fault::UnchangedRevision, Suite::Live, "peer-delete", "body.metadata.resourceVersion"),
];
/// Replays at a time.
const AT_ONCE: usize = 6;

/// Plants every fault once; true when each was reported where it is, and nothing is when none is planted.
///
/// # Errors
/// When the server cannot be reached, or nothing is recorded.
pub(crate) async fn prove(topics: &Topics, caller: &Caller) -> anyhow::Result<bool> {
    let of = |suite, name: &'static str| topics.of(suite).iter().find(move |topic| topic.name == name);
    let mut good = true;
    let mut shown: Vec<(Suite, &Topic)> = Vec::new();
    for (_, suite, name, _) in FAULTS {
        let Some(topic) = of(suite, name) else { continue };
        if !shown.iter().any(|(_, known)| known.name == topic.name) {
            shown.push((suite, topic));
        }
    }
    for (suite, topic) in shown {
        let without = unexplained(suite, topic, caller).await?;
        println!("{}, no fault: {} unexplained differences", topic.name, without.len());
        good &= without.is_empty();
    }
    let trials = FAULTS.iter().filter_map(|(fault, suite, name, place)| {
        let topic = of(*suite, name)?;
        Some(async move { (fault, place, unexplained(*suite, topic, &caller.planting(*fault)).await) })
    });
    let mut trials = stream::iter(trials).buffered(AT_ONCE);
    while let Some((fault, place, found)) = trials.next().await {
        let there: Vec<_> = found?.into_iter().filter(|found| found.at.starts_with(place)).collect();
        match there.first() {
            Some(first) => {
                println!("{fault:?}: reported {} times, first {} at {}", there.len(), first.case, first.at);
            }
            None => println!("{fault:?}: NOT REPORTED"),
        }
        good &= !there.is_empty();
    }
    Ok(good)
}

async fn unexplained(suite: Suite, topic: &Topic, caller: &Caller) -> anyhow::Result<Vec<Difference>> {
    Ok(replay(suite, std::slice::from_ref(topic), caller, false).await?.unexplained)
}
