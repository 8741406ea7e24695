//! `make differential`: the same requests to our server and to OpenShift's own, whose answers were recorded once.
//!
//! - `replay` sends the sequences of `tests/differential/cases` to ours and compares with `tests/differential/answers`.
//!   Its last line is `N cases, M unexplained differences`.
//! - `record` sends them to a real server and writes the answers.
//! - `decide` writes down what ours answers where `explained.yaml` says that it differs.
//! - `prove` replays against a build of ours with planted faults: each fault has to be reported.

mod caller;
mod case;
mod compare;
mod decided;
mod distinct;
mod explained;
mod normal;
mod play;
mod prove;
mod replay;
mod scan;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use picoshift_tests::home::{Home, picoshift_program};

use crate::caller::Caller;

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
        /// Ask a build with planted faults for this one.
        #[arg(long)]
        plant: Option<String>,
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
    let topics = case::topics(&arguments.topic)?;
    let complete = arguments.topic.is_empty();
    let good = match arguments.command {
        Command::Record => {
            let caller = Caller::new(&kubeconfig, None)?;
            for topic in &topics {
                let played = play::play(topic, &caller, true).await?;
                for (step, violation) in &played.violations {
                    eprintln!("{}/{step}: {violation}", topic.name);
                }
                eprintln!("{}: {} answers", topic.name, played.answers.len());
                case::record(&topic.name, &played.answers)?;
            }
            true
        }
        Command::Replay { plant } => {
            rest_controllers()?;
            let caller = Caller::new(&kubeconfig, plant.as_deref())?;
            let report = replay::replay(&topics, &caller).await?;
            report.print(complete)
        }
        Command::Decide => {
            rest_controllers()?;
            let caller = Caller::new(&kubeconfig, None)?;
            let report = replay::replay(&topics, &caller).await?;
            report.decide(&topics)?;
            true
        }
        Command::Prove => {
            rest_controllers()?;
            prove::prove(&topics, &kubeconfig).await?
        }
    };
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
