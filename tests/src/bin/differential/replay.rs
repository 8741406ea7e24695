//! Plays the topics against ours and says what differs.

use crate::caller::Caller;
use crate::case::{self, Topic};
use crate::compare::{self, Difference};
use crate::distinct::Distinct;
use crate::explained::Explained;
use crate::play;

/// What has to be covered: groups, and their distinct cases together.
const COVERAGE: [(&[&str], usize); 2] = [
    (&["image.openshift.io", "user.openshift.io"], 150),
    (&["route.openshift.io", "project.openshift.io"], 100),
];

/// What a replay found.
pub(crate) struct Report {
    cases: usize,
    distinct: Distinct,
    /// The differences that nothing explains.
    pub(crate) unexplained: Vec<Difference>,
    explained: usize,
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
        explained: 0,
        idle: Vec::new(),
    };
    for topic in topics {
        let recorded = case::recorded(&topic.name)?;
        let played = play::play(topic, caller, false).await?;
        let mut found = compare::topic(topic, &recorded, &played.answers);
        found.extend(played.violations.into_iter().map(|(step, violation)| Difference {
            case: format!("{}/{step}", topic.name),
            at: "revision".to_owned(),
            real: None,
            ours: Some(violation.into()),
        }));
        report.cases += played.answers.len();
        report.distinct.count(topic, &recorded);
        for difference in found {
            if explained.explains(&difference) {
                report.explained += 1;
            } else {
                report.unexplained.push(difference);
            }
        }
    }
    report.idle = explained.idle();
    Ok(report)
}

impl Report {
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
                println!("explained.yaml explains what does not differ: {entry}");
            }
            good &= self.idle.is_empty();
        }
        println!("{} differences are explained", self.explained);
        println!("{} cases, {} unexplained differences", self.cases, self.unexplained.len());
        good
    }
}
