//! Processes that outlive us: started apart from our terminal, and recognised later without mistaking another for them.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::paths::open_log;

/// The environment variable that says which component of which state directory a process is.
const MARK: &str = "PICOSHIFT_COMPONENT";

/// A process, and not another that was given its number after it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Identity {
    /// The process id.
    pub(crate) pid: u32,
    /// When it started, in clock ticks since the machine did.
    start_time: u64,
    /// Which start of the machine that was.
    boot_id: String,
}

impl Identity {
    /// The process that has this number now, unless it has ended.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Some(Self { pid, start_time: start_time(&stat)?, boot_id: boot_id.trim().to_owned() })
    }

    /// A handle on the process, if it still runs.
    pub(crate) fn open(&self) -> Option<Handle> {
        let pid = Pid::from_raw(i32::try_from(self.pid).ok()?)?;
        // First the handle, then the check: what is checked is what the handle refers to.
        let fd = pidfd_open(pid, PidfdFlags::NONBLOCK).ok()?;
        if Self::of(self.pid).as_ref() != Some(self) {
            return None;
        }
        let fd = watch(fd).ok()?;
        Some(Handle { fd })
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }
}

#[expect(
    deprecated,
    reason = "the other constructors are unsafe; what makes this one unsound, a type that changes its descriptor, is not OwnedFd"
)]
fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}

/// Field 22 of `/proc/PID/stat`; none for a process that has ended and waits for its parent.
fn start_time(stat: &str) -> Option<u64> {
    // The name, in parentheses, may hold spaces and parentheses itself.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// A running process; signals through it reach that process or nobody.
#[derive(Debug)]
pub(crate) struct Handle {
    fd: AsyncFd<OwnedFd>,
}

impl Handle {
    /// Waits for its end.
    pub(crate) async fn ended(&self) {
        // A process handle becomes readable at the end, and stays so.
        let _ = self.fd.readable().await.map(|mut guard| guard.retain_ready());
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    /// Ends it.
    pub(crate) fn kill(&self) -> io::Result<()> {
        self.signal(Signal::KILL)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(self.fd.get_ref(), signal) {
            // It ended by itself.
            Err(rustix::io::Errno::SRCH) => Ok(()),
            sent => sent.map_err(io::Error::from),
        }
    }
}

/// Starts a program in a process group of its own, so that neither the terminal's interrupts nor our end reach it.
/// Both its outputs are appended to `log`. Its environment carries `mark`, by which [`marked`] finds it also if we end before
/// we can note it down.
pub(crate) fn spawn(
    program: &Path,
    arguments: &[String],
    mark: &str,
    working_dir: &Path,
    log: &Path,
) -> Result<(Child, Identity)> {
    let output = open_log(log)?;
    let child = Command::new(program)
        .args(arguments)
        .env(MARK, mark)
        .current_dir(working_dir)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    // It cannot have been reaped, so its number is its own; without an identity it has ended already.
    let identity = Identity::of(child.id()).unwrap_or(Identity {
        pid: child.id(),
        start_time: 0,
        boot_id: String::new(),
    });
    Ok((child, identity))
}

/// The processes that were started with a mark and still run.
pub(crate) fn marked(mark: &str) -> Vec<Identity> {
    let entry = format!("{MARK}={mark}");
    let has_mark = |pid: &u32| {
        // Other users' processes cannot be read, and are not ours.
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|found| found == entry.as_bytes())
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(has_mark).filter_map(Identity::of).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn start_time_is_field_22() {
        let fields: Vec<String> = (4..=52).map(|field| field.to_string()).collect();
        let stat = |state: &str| format!("17 (a) b (c) ) {state} {}", fields.join(" "));
        assert_eq!(start_time(&stat("S")), Some(22));
        assert_eq!(start_time(&stat("Z")), None);
        assert_eq!(start_time("17 (x"), None);
    }

    #[tokio::test]
    async fn another_process_with_the_same_number_is_not_it() {
        let this = Identity::of(std::process::id()).unwrap();
        assert!(this.is_alive() && this.open().is_some());
        let mut earlier = this.clone();
        earlier.start_time -= 1;
        assert!(!earlier.is_alive() && earlier.open().is_none());
        let mut other_boot = this;
        other_boot.boot_id = "another".to_owned();
        assert!(!other_boot.is_alive() && other_boot.open().is_none());
    }

    #[tokio::test]
    async fn ends_are_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let mark = dir.path().display().to_string();
        let arguments = ["-c".to_owned(), "echo started; exec sleep 1000".to_owned()];
        let (mut child, identity) = spawn(Path::new("/bin/sh"), &arguments, &mark, dir.path(), &log).unwrap();
        let handle = identity.open().unwrap();
        // While it turns from the shell into `sleep`, it has no environment.
        let found = async {
            while marked(&mark) != std::slice::from_ref(&identity) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(5), found).await.unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(20), handle.ended()).await.is_err());
        handle.kill().unwrap();
        tokio::time::timeout(Duration::from_secs(5), handle.ended()).await.unwrap();
        assert!(!identity.is_alive() && marked(&mark).is_empty());
        child.wait().unwrap();
        handle.terminate().unwrap();
        assert!(identity.open().is_none());
    }
}
