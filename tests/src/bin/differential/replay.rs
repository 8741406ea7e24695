//! Plays the topics against ours and says what differs.

use futures::{StreamExt as _, stream};

use crate::caller::Caller;
use crate::case::{self, Topic};
use crate::compare::{self, Difference};
use crate::decided::{self, Decided};
use crate::distinct::Distinct;
use crate::explained::Explained;
use crate::play;

/// What has to be covered: groups, and their distinct cases together.
const COVERAGE: [(&[&str], usize); 2] = [
    (&["image.openshift.io", "user.openshift.io"], 150),
    (&["route.openshift.io", "project.openshift.io"], 100),
];

/// Topics that are played at a time: most of one is waiting for silence on a watch.
const AT_ONCE: usize = 6;

/// What a replay found.
pub(crate) struct Report {
    cases: usize,
    distinct: Distinct,
    /// The differences that nothing explains.
    pub(crate) unexplained: Vec<Difference>,
    /// Those that an entry of `explained.yaml` is about, whatever was decided.
    explained: Vec<Difference>,
    idle: Vec<String>,
}

/// Plays the topics and compares with the recorded answers.
///
/// # Errors
/// When the server cannot be reached, or nothing is recorded.
pub(crate) async fn replay(topics: &[Topic], caller: &Caller) -> anyhow::Result<Report> {
    let mut explained = Explained::read()?;
    let mut report = Report {
        cases: 0,
        distinct: Distinct::default(),
        unexplained: Vec::new(),
        explained: Vec::new(),
        idle: Vec::new(),
    };
    let plays = topics.iter().map(|topic| async move { (topic, play::play(topic, caller, false).await) });
    let mut plays = stream::iter(plays).buffered(AT_ONCE);
    while let Some((topic, played)) = plays.next().await {
        let (played, recorded) = (played?, case::recorded(&topic.name)?);
        let mut found = compare::topic(topic, &recorded, &played.answers);
        found.extend(played.violations.into_iter().map(|(step, violation)| Difference {
            case: format!("{}/{step}", topic.name),
            at: "revision".to_owned(),
            real: None,
            ours: Some(violation.into()),
        }));
        report.cases += played.answers.len();
        report.distinct.count(topic, &recorded);
        let mut decided = Decided::read(&topic.name)?;
        for difference in found {
            let meant = explained.explains(&difference);
            if !(meant && decided.holds(&difference)) {
                report.unexplained.push(difference.clone());
            }
            if meant {
                report.explained.push(difference);
            }
        }
        let idle = decided.idle();
        report.idle.extend(idle.into_iter().map(|place| format!("decided/{}.json {place}", topic.name)));
    }
    let idle = explained.idle();
    report.idle.extend(idle.into_iter().map(|entry| format!("explained.yaml {entry}")));
    Ok(report)
}

impl Report {
    /// Writes down what ours answers at the places that are explained.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(crate) fn decide(&self, topics: &[Topic]) -> anyhow::Result<()> {
        for topic in topics {
            let own = self.explained.iter().filter(|difference| {
                difference.case.strip_prefix(&topic.name).is_some_and(|rest| rest.starts_with('/'))
            });
            decided::decide(&topic.name, &own.cloned().collect::<Vec<_>>())?;
        }
        println!("{} differences are decided", self.explained.len());
        Ok(())
    }

    /// Prints it and says whether all is well. Coverage and idle explanations count when every topic was played.
    pub(crate) fn print(&self, complete: bool) -> bool {
        for difference in &self.unexplained {
            let show = |value: &Option<serde_json::Value>| {
                value.as_ref().map_or("nothing".to_owned(), ToString::to_string)
            };
            println!(
                "{}\n  {}\n    real {}\n    ours {}",
                difference.case,
                difference.at,
                show(&difference.real),
                show(&difference.ours)
            );
        }
        let mut good = self.unexplained.is_empty();
        for line in self.distinct.lines() {
            println!("{line}");
        }
        if complete {
            for (groups, least) in COVERAGE {
                let count = self.distinct.of(groups);
                println!("{}: {count} distinct cases, at least {least} wanted", groups.join(" and "));
                good &= count >= least;
            }
            for entry in &self.idle {
                println!("nothing differs (any more): {entry}");
            }
            good &= self.idle.is_empty();
        }
        println!("{} differences are meant", self.explained.len());
        println!("{} cases, {} unexplained differences", self.cases, self.unexplained.len());
        good
    }
}
