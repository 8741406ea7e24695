//! `make differential`: the same requests to our server and to its peers: OpenShift's own, whose answers were recorded once,
//! and a CRD on kube-apiserver, which is asked at the same time.
//!
//! - `replay` sends the sequences of `tests/differential/cases` to ours and compares with `tests/differential/answers`, and
//!   those of `tests/differential/peer/cases` to ours and the CRD and compares the two. Its last line is `N cases, M unexplained differences`.
//! - `record` sends them to a real server and writes the answers.
//! - `decide` writes down what ours answers where `explained.yaml` says that it differs.
//! - `prove` plants faults in what ours answers: each has to be reported.

mod alike;
mod caller;
mod case;
mod compare;
mod decided;
mod distinct;
mod explained;
mod normal;
mod peer;
mod planted;
mod play;
mod prove;
mod replay;
mod scan;
mod vary;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::{Parser, Subcommand};
use picoshift_tests::home::{Home, picoshift_program};

use crate::caller::Caller;
use crate::case::{Suite, Topic};
use crate::planted::Fault;
use crate::play::Side;
use crate::replay::Report;

/// Compares our answers with those of OpenShift's API servers.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// The administrator's kubeconfig.
    #[arg(long, env = "KUBECONFIG", global = true)]
    kubeconfig: Option<PathBuf>,
    /// Only topics with this in their name.
    #[arg(long, global = true)]
    topic: Vec<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare ours with the recorded answers.
    Replay {
        /// Plant this fault in the answers of ours.
        #[arg(long)]
        plant: Option<Fault>,
        /// Compare with the live peer who set which field, too.
        #[arg(long)]
        managed_fields: bool,
    },
    /// Record the answers of a real server.
    Record,
    /// Write down what ours answers where it is meant to differ.
    Decide,
    /// Check that every planted fault is reported.
    Prove,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let kubeconfig = arguments.kubeconfig.context("KUBECONFIG or --kubeconfig names the server")?;
    let complete = arguments.topic.is_empty();
    let topics = Topics::read(&arguments.topic)?;
    let caller = Caller::new(&kubeconfig)?;
    let good = match arguments.command {
        Command::Record => {
            for topic in &topics.recorded {
                let side = Side { real: true, ..Side::default() };
                let played = play::play(topic, &caller, side).await?;
                for (step, violation) in &played.violations {
                    eprintln!("{}/{step}: {violation}", topic.name);
                }
                eprintln!("{}: {} answers", topic.name, played.answers.len());
                case::record(&topic.name, &played.answers)?;
            }
            true
        }
        Command::Replay { plant, managed_fields } => {
            prepare(&caller).await?;
            let caller = plant.map_or_else(|| caller.clone(), |fault| caller.planting(fault));
            topics.replay(&caller, managed_fields).await?.print(complete)
        }
        Command::Decide => {
            prepare(&caller).await?;
            let report = topics.replay(&caller, false).await?;
            for suite in [Suite::Recorded, Suite::Live] {
                report.decide(suite, topics.of(suite))?;
            }
            true
        }
        Command::Prove => {
            prepare(&caller).await?;
            prove::prove(&topics, &caller).await?
        }
    };
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The topics of both suites.
pub(crate) struct Topics {
    recorded: Vec<Topic>,
    live: Vec<Topic>,
}

impl Topics {
    fn read(wanted: &[String]) -> anyhow::Result<Self> {
        let topics = Self {
            recorded: case::topics(Suite::Recorded, wanted)?,
            live: case::topics(Suite::Live, wanted)?,
        };
        ensure!(!topics.recorded.is_empty() || !topics.live.is_empty(), "no topic is called like {wanted:?}");
        Ok(topics)
    }

    fn of(&self, suite: Suite) -> &[Topic] {
        match suite {
            Suite::Recorded => &self.recorded,
            Suite::Live => &self.live,
        }
    }

    async fn replay(&self, caller: &Caller, managers: bool) -> anyhow::Result<Report> {
        let recorded = replay::replay(Suite::Recorded, &self.recorded, caller, false);
        let live = replay::replay(Suite::Live, &self.live, caller, managers);
        let (recorded, live) = tokio::try_join!(recorded, live)?;
        Ok(recorded.and(live))
    }
}

/// Makes the CRD of the live peer and lets the controllers rest.
async fn prepare(caller: &Caller) -> anyhow::Result<()> {
    peer::install(caller.admin()).await?;
    rest_controllers()
}

/// Ends the controllers of the control plane that hack/with-control-plane made: none ran beside the real servers, and
/// what one does between two requests would show as a difference.
fn rest_controllers() -> anyhow::Result<()> {
    let Some(root) = std::env::var_os("PICOSHIFT_E2E_HOME") else { return Ok(()) };
    let home = Home { picoshift: picoshift_program()?, root: root.into() };
    home.component("picoshift-controllers")?.kill_9()
}

/// A word of eight consonants that makes the names of a run its own and occurs in nothing else.
pub(crate) fn run_word() -> String {
    const LETTERS: &[u8; 8] = b"qxzvkwjg";
    let nanos = jiff::Timestamp::now().as_nanosecond() as u64;
    let mut number = (nanos ^ u64::from(std::process::id())).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24;
    let mut word = String::from("q");
    for _ in 0..7 {
        word.push(char::from(LETTERS[(number % 8) as usize]));
        number /= 8;
    }
    word
}
