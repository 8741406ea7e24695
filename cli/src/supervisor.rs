//! Starts a component unless it runs as it should, waits until it is healthy, and ends it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::components::{Component, Plan};
use crate::failure::Failure;
use crate::health::Health;
use crate::logs;
use crate::paths::Paths;
use crate::process::{Handle, Identity, marked, spawn};
use crate::settings;

/// How long a component may take to become healthy.
const READY_WITHIN: Duration = Duration::from_secs(120);
/// How long a component may take to end before it is killed.
const END_WITHIN: Duration = Duration::from_secs(20);
/// A longer log is put aside when its component starts.
const LOG_BYTES: u64 = 16 << 20;
/// How many lines of a log are shown when its component failed.
const TAIL: usize = 20;
/// How much of each line is shown then.
const LINE_CHARS: usize = 300;

/// Beside a failure: the component was running when `up` found it, and ended since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{} was running and ended meanwhile", .0.name())]
pub(crate) struct EndedMeanwhile(pub(crate) Component);

/// What is kept about a component that was started.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Started {
    /// The process.
    #[serde(flatten)]
    pub(crate) identity: Identity,
    /// The port it listens on.
    pub(crate) port: u16,
    /// Its version.
    pub(crate) version: String,
    /// When it was started.
    pub(crate) started_at: jiff::Timestamp,
    /// What it was started from.
    fingerprint: String,
}

impl Started {
    /// What the last `up` that started a component noted.
    pub(crate) fn load(component: Component, paths: &Paths) -> Result<Option<Self>> {
        settings::load(paths, &file(component))
    }

    /// The same, if that process still runs.
    pub(crate) fn load_running(component: Component, paths: &Paths) -> Result<Option<Self>> {
        Ok(Self::load(component, paths)?.filter(|started| started.identity.is_alive()))
    }
}

fn file(component: Component) -> String {
    format!("{}.json", component.name())
}

/// A component that runs, as far as is known.
#[derive(Debug)]
pub(crate) struct Running {
    component: Component,
    handle: Option<Handle>,
    child: Option<Child>,
    log_start: u64,
    since: Instant,
    /// Whether we started it now.
    pub(crate) fresh: bool,
}

/// Starts a component, unless it runs already as planned. One that runs otherwise is ended first.
pub(crate) async fn ensure(plan: &Plan, paths: &Paths) -> Result<Running> {
    let component = plan.component;
    let fingerprint = fingerprint(plan)?;
    let log = paths.log(component.name());
    if let Some(started) = Started::load(component, paths)?
        && let Some(handle) = started.identity.open()
    {
        if started.fingerprint == fingerprint {
            return Ok(Running {
                component,
                handle: Some(handle),
                child: None,
                log_start: 0,
                since: Instant::now(),
                fresh: false,
            });
        }
        end(&handle).await?;
    }
    end_marked(component, paths).await?;
    put_aside(&log);
    let log_start = fs::metadata(&log).map_or(0, |file| file.len());
    let (child, identity) =
        spawn(&plan.program, &plan.arguments, &mark(component, paths), &paths.state, &log)?;
    let started = Started {
        identity: identity.clone(),
        port: plan.port,
        version: plan.version.clone(),
        started_at: jiff::Timestamp::now(),
        fingerprint,
    };
    settings::save(paths, &file(component), &started)?;
    Ok(Running {
        component,
        handle: identity.open(),
        child: Some(child),
        log_start,
        since: Instant::now(),
        fresh: true,
    })
}

/// By what a component of this state directory is known.
fn mark(component: Component, paths: &Paths) -> String {
    format!("{}:{}", component.name(), paths.state.display())
}

/// Ends what an `up` started and, being killed, could not note down.
pub(crate) async fn end_marked(component: Component, paths: &Paths) -> Result<bool> {
    let marked = marked(&mark(component, paths));
    for handle in marked.iter().filter_map(Identity::open) {
        end(&handle).await.with_context(|| format!("cannot end {}", component.name()))?;
    }
    Ok(!marked.is_empty())
}

fn put_aside(log: &Path) {
    if fs::metadata(log).is_ok_and(|file| file.len() > LOG_BYTES) {
        // If it fails, the log only goes on growing.
        let _ = fs::rename(log, log.with_extension("log.1"));
    }
}

/// What a component's behaviour depends on: its program, its arguments, the files that it reads at its start.
fn fingerprint(plan: &Plan) -> Result<String> {
    let program =
        fs::metadata(&plan.program).with_context(|| format!("cannot read {}", plan.program.display()))?;
    let mut digest = Sha256::new();
    let mut add = |part: &[u8]| {
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    };
    add(plan.program.as_os_str().as_encoded_bytes());
    add(format!("{} {}.{}", program.len(), program.mtime(), program.mtime_nsec()).as_bytes());
    for argument in &plan.arguments {
        add(argument.as_bytes());
    }
    for input in &plan.inputs {
        add(&fs::read(input).with_context(|| format!("cannot read {}", input.display()))?);
    }
    Ok(digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}

impl Running {
    /// Waits until it is healthy; its end is noticed at once.
    pub(crate) async fn ready(&mut self, paths: &Paths, port: u16) -> Result<()> {
        let health = Health::new(self.component, port, paths)?;
        let waited = tokio::select! {
            () = ended(self.handle.as_ref()) => None,
            waited = tokio::time::timeout(READY_WITHIN, health.wait()) => Some(waited),
        };
        match waited {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) => {
                Err(self.failure(paths, &format!("is not healthy after {}", elapsed(READY_WITHIN))))
            }
            None => Err(self.failure_at_end(paths)),
        }
    }

    /// Waits for its end, and says how it ended.
    pub(crate) async fn failed(&mut self, paths: &Paths) -> anyhow::Error {
        ended(self.handle.as_ref()).await;
        self.failure_at_end(paths)
    }

    fn failure_at_end(&mut self, paths: &Paths) -> anyhow::Error {
        let status = self.child.as_mut().and_then(|child| child.wait().ok());
        let how = status.map_or_else(|| "ended".to_owned(), |status| format!("ended with {status}"));
        let failure = self.failure(paths, &format!("{how} after {}", elapsed(self.since.elapsed())));
        if self.fresh { failure } else { failure.context(EndedMeanwhile(self.component)) }
    }

    fn failure(&self, paths: &Paths, what: &str) -> anyhow::Error {
        let name = self.component.name();
        let tail = logs::tail(&paths.log(name), self.log_start, TAIL).unwrap_or_default();
        let lines: String = tail.iter().map(|line| format!("\n  {}", shortened(line))).collect();
        let last = if tail.is_empty() { "its log is empty" } else { "the end of its log:" };
        Failure::new(format!("{name} {what}; {last}{lines}"), remedy(name, &lines)).into()
    }
}

/// A line as far as a person reads it: stack traces come on one line too.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

async fn ended(handle: Option<&Handle>) {
    // Without a handle it had ended before one could be had.
    if let Some(handle) = handle {
        handle.ended().await;
    }
}

fn elapsed(duration: Duration) -> String {
    crate::progress::elapsed(duration)
}

fn remedy(name: &str, log: &str) -> String {
    let known = [
        (
            "address already in use",
            "another program took its port just now; `picoshift up` chooses a free one",
        ),
        ("no space left on device", "make room on the disk of the state directory, then `picoshift up`"),
        ("too many open files", "raise the limit on open files (`ulimit -n 8192`), then `picoshift up`"),
        (
            "cannot allocate memory",
            "free some memory (the control plane needs about 1 GB), then `picoshift up`",
        ),
    ];
    let log = log.to_lowercase();
    known.iter().find(|(words, _)| log.contains(words)).map_or_else(
        || format!("see `picoshift logs {name}`; the other components were left as they are: `picoshift up` goes on from here, `picoshift down` ends them"),
        |(_, remedy)| (*remedy).to_owned(),
    )
}

/// Ends a component if it runs; says whether it did.
pub(crate) async fn stop(component: Component, paths: &Paths) -> Result<bool> {
    // A damaged note is no reason to leave a process behind.
    let started = Started::load(component, paths).unwrap_or_default();
    let handle = started.as_ref().and_then(|started| started.identity.open());
    if let Some(handle) = &handle {
        end(handle).await.with_context(|| format!("cannot end {}", component.name()))?;
    }
    let unnoted = end_marked(component, paths).await?;
    match fs::remove_file(paths.run(&file(component))) {
        Err(err) if err.kind() != std::io::ErrorKind::NotFound => Err(err.into()),
        _ => Ok(handle.is_some() || unnoted),
    }
}

async fn end(handle: &Handle) -> Result<()> {
    handle.terminate()?;
    if tokio::time::timeout(END_WITHIN, handle.ended()).await.is_err() {
        handle.kill()?;
        handle.ended().await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(dir: &Path, script: &str) -> (Paths, Plan) {
        let paths = Paths { state: dir.to_path_buf(), cache: dir.join("cache") };
        paths.create_state().unwrap();
        let input = paths.config("input");
        fs::write(&input, "one").unwrap();
        let plan = Plan {
            component: Component::Etcd,
            program: "/bin/sh".into(),
            version: "v0.0.0".to_owned(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            inputs: vec![input],
            port: 1,
        };
        (paths, plan)
    }

    #[tokio::test]
    async fn converges() {
        let dir = tempfile::tempdir().unwrap();
        let (paths, plan) = plan(dir.path(), "exec sleep 1000");
        let mut first = ensure(&plan, &paths).await.unwrap();
        assert!(first.fresh);
        let pid =
            |paths: &Paths| Started::load_running(Component::Etcd, paths).unwrap().unwrap().identity.pid;
        let first_pid = pid(&paths);
        assert!(!ensure(&plan, &paths).await.unwrap().fresh);
        assert_eq!(pid(&paths), first_pid);
        fs::write(&plan.inputs[0], "two").unwrap();
        let mut second = ensure(&plan, &paths).await.unwrap();
        assert!(second.fresh && pid(&paths) != first_pid);
        assert!(stop(Component::Etcd, &paths).await.unwrap());
        assert!(!stop(Component::Etcd, &paths).await.unwrap());
        ensure(&plan, &paths).await.unwrap();
        fs::remove_file(paths.run("etcd.json")).unwrap();
        assert!(stop(Component::Etcd, &paths).await.unwrap(), "not noted down, and ended");
        for running in [&mut first, &mut second] {
            running.child.as_mut().unwrap().wait().unwrap();
        }
    }

    #[tokio::test]
    async fn the_end_of_what_was_running_is_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let (paths, plan) = plan(dir.path(), "exec sleep 1000");
        let mut first = ensure(&plan, &paths).await.unwrap();
        let mut found = ensure(&plan, &paths).await.unwrap();
        first.handle.as_ref().unwrap().kill().unwrap();
        let meanwhile = |err: &anyhow::Error| err.downcast_ref::<EndedMeanwhile>().copied();
        let err = found.failed(&paths).await;
        assert_eq!(meanwhile(&err), Some(EndedMeanwhile(Component::Etcd)));
        assert!(err.downcast_ref::<Failure>().is_some(), "{err:#}");
        assert_eq!(meanwhile(&first.failed(&paths).await), None);
        assert!(ensure(&plan, &paths).await.unwrap().fresh, "what ended is started anew");
        stop(Component::Etcd, &paths).await.unwrap();
    }

    #[tokio::test]
    async fn a_death_is_reported_with_the_log_of_this_start() {
        let dir = tempfile::tempdir().unwrap();
        let (paths, plan) = plan(dir.path(), "echo bind: address already in use; exit 3");
        fs::write(paths.log("etcd"), "from an earlier start\n").unwrap();
        let mut running = ensure(&plan, &paths).await.unwrap();
        let err = running.failed(&paths).await;
        let failure = err.downcast_ref::<Failure>().unwrap();
        assert!(failure.to_string().contains("exit status: 3"), "{failure}");
        assert!(failure.to_string().contains("\n  bind: address already in use"), "{failure}");
        assert!(!failure.to_string().contains("earlier"));
        assert!(failure.remedy().contains("chooses a free one"));
    }
}
