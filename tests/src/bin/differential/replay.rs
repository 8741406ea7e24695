//! Plays the topics against ours and says what differs.

use futures::{StreamExt as _, stream};

use crate::caller::Caller;
use crate::case::{self, Answers, Suite, Topic};
use crate::compare::{self, Difference};
use crate::decided::{self, Decided};
use crate::distinct::Distinct;
use crate::explained::Explained;
use crate::peer;
use crate::play::{self, Played, Side};

/// What has to be covered: groups, and their distinct cases together.
const COVERAGE: [(&[&str], usize); 3] = [
    (&["image.openshift.io", "user.openshift.io"], 150),
    (&["route.openshift.io", "project.openshift.io"], 100),
    (&["peer"], 500),
];

/// Topics that are played at a time: most of one is waiting for silence on a watch.
const AT_ONCE: usize = 6;

/// What a replay found.
#[derive(Default)]
pub(crate) struct Report {
    cases: usize,
    distinct: Distinct,
    /// The differences that nothing explains.
    pub(crate) unexplained: Vec<Difference>,
    /// Those that an entry of `explained.yaml` is about, whatever was decided.
    explained: Vec<(Suite, Difference)>,
    idle: Vec<String>,
}

/// Plays the topics of a suite and compares with what its peer answered, or answers.
///
/// # Errors
/// When the server cannot be reached, or nothing is recorded.
pub(crate) async fn replay(
    suite: Suite,
    topics: &[Topic],
    caller: &Caller,
    managers: bool,
) -> anyhow::Result<Report> {
    let mut explained = Explained::read(suite)?;
    let mut report = Report::default();
    let plays = topics.iter().map(|topic| async move { (topic, both(suite, topic, caller, managers).await) });
    let mut plays = stream::iter(plays).buffered(AT_ONCE);
    while let Some((topic, played)) = plays.next().await {
        let (real, played) = played?;
        let mut found = compare::topic(topic, &real, &played.answers);
        found.extend(played.violations.into_iter().map(|(step, violation)| Difference {
            case: format!("{}/{step}", topic.name),
            at: "revision".to_owned(),
            real: None,
            ours: Some(violation.into()),
        }));
        report.cases += played.answers.len();
        report.distinct.count(topic, &real);
        let mut decided = Decided::read(suite, &topic.name)?;
        for difference in found {
            let meant = explained.explains(&difference);
            if !(meant && decided.holds(&difference)) {
                report.unexplained.push(difference.clone());
            }
            if meant {
                report.explained.push((suite, difference));
            }
        }
        let folder = suite.folder();
        let idle = decided.idle().into_iter();
        report
            .idle
            .extend(idle.map(|place| format!("{}/decided/{}.json {place}", folder.display(), topic.name)));
    }
    let idle = explained.idle().into_iter();
    report.idle.extend(idle.map(|entry| format!("{}/explained.yaml {entry}", suite.folder().display())));
    Ok(report)
}

/// The answers of the peer, and what came of playing against ours.
async fn both(
    suite: Suite,
    topic: &Topic,
    caller: &Caller,
    managers: bool,
) -> anyhow::Result<(Answers, Played)> {
    let side = |group| Side { real: false, group, managers };
    match suite {
        Suite::Recorded => Ok((case::recorded(&topic.name)?, play::play(topic, caller, side(None)).await?)),
        Suite::Live => {
            let sound = caller.sound();
            let crd = play::play(topic, &sound, side(Some(peer::CRD_GROUP)));
            let ours = play::play(topic, caller, side(Some(peer::OUR_GROUP)));
            let (crd, ours) = futures::try_join!(crd, ours)?;
            Ok((crd.answers, ours))
        }
    }
}

impl Report {
    /// This report and another one together.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.cases += other.cases;
        self.distinct.add(other.distinct);
        self.unexplained.extend(other.unexplained);
        self.explained.extend(other.explained);
        self.idle.extend(other.idle);
        self
    }

    /// Writes down what ours answers at the places of a suite that are explained.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(crate) fn decide(&self, suite: Suite, topics: &[Topic]) -> anyhow::Result<()> {
        for topic in topics {
            let own = self.explained.iter().filter(|(of, difference)| {
                let rest = difference.case.strip_prefix(&topic.name);
                *of == suite && rest.is_some_and(|rest| rest.starts_with('/'))
            });
            let own: Vec<Difference> = own.map(|(_, difference)| difference.clone()).collect();
            decided::decide(suite, &topic.name, &own)?;
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
