//! One more of our server on a running control plane, with a port and a data file of its own: to be killed, filled up
//! and watched by thousands while everybody else's goes on.
//!
//! It is called as the control plane's own is; nothing is forwarded to it, clients speak to it directly.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::ControlPlane;
use crate::http::Http;
use crate::identity::Identity;
use crate::process::OUR_SERVER;
use crate::tls::{Endpoint, Protocol};

/// How long a start or an end may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long to wait before looking again whether it is ready.
const PAUSE: Duration = Duration::from_millis(10);

/// A server of our own; it ends with this value, and with this process.
#[derive(Debug)]
pub struct Instance {
    /// Where it is.
    pub endpoint: Endpoint,
    program: PathBuf,
    arguments: Vec<String>,
    directory: tempfile::TempDir,
    child: Option<Child>,
    watchdog: Child,
    probe: Http,
}

impl Instance {
    /// Starts one whose data are in `file`; returns when it is ready.
    ///
    /// # Errors
    /// When the control plane's own does not run, or this one does not come up.
    pub async fn start(plane: &ControlPlane, file: &Path) -> anyhow::Result<Self> {
        Self::start_in(plane, file, Vec::new()).await
    }

    /// The same, called by another command, which has to become it.
    ///
    /// # Errors
    /// As [`Instance::start`].
    pub async fn start_in(plane: &ControlPlane, file: &Path, by: Vec<String>) -> anyhow::Result<Self> {
        let pid = plane.home.component(OUR_SERVER)?.pid.context("our server does not run")?;
        let line = std::fs::read(format!("/proc/{pid}/cmdline"))?;
        let mut words = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        let program = words.next().context("no program")?;
        let other = |word: &String| !word.starts_with("--data-file") && !word.starts_with("--secure-port");
        let mut arguments: Vec<String> = words.filter(|word| !word.is_empty()).filter(other).collect();
        ensure!(arguments.iter().all(|word| word.contains('=')), "flags have another form: {arguments:?}");
        // Free a moment ago; it has to stay the same when the server starts again.
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        arguments.extend([format!("--data-file={}", file.display()), format!("--secure-port={port}")]);
        let endpoint = Endpoint { url: format!("https://127.0.0.1:{port}"), ..plane.stage.ours.clone() };
        let directory = tempfile::tempdir()?;
        let watchdog = watch_over(&directory.path().join("pid"))?;
        let mut command: Vec<String> = by.into_iter().chain([program]).chain(arguments).collect();
        let program = PathBuf::from(command.remove(0));
        let arguments = command;
        let probe = Http::new(&endpoint, None, Protocol::Http1)?;
        let mut instance = Self { endpoint, program, arguments, directory, child: None, watchdog, probe };
        instance.restart().await?;
        Ok(instance)
    }

    /// A client of it.
    ///
    /// # Errors
    /// When none can be made.
    pub fn client(&self, identity: &Identity) -> anyhow::Result<Http> {
        Http::new(&self.endpoint, Some(identity), Protocol::Http2)
    }

    /// Starts it again after its end; returns when it is ready.
    ///
    /// # Errors
    /// When it does not come up; with what it logged.
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        ensure!(self.child.is_none(), "it runs");
        let log = File::options().create(true).append(true).open(self.log())?;
        let child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        self.note(&child.id().to_string())?;
        self.child = Some(child);
        let given_up = Instant::now() + PATIENCE;
        while !self.probe.get("/readyz").await.is_ok_and(|answer| answer.status == 200) {
            let ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
            if ended.is_some() || Instant::now() > given_up {
                bail!("it does not come up ({ended:?}): {}", self.log_text()?);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Its process id.
    ///
    /// # Errors
    /// When it does not run.
    pub fn pid(&self) -> anyhow::Result<i32> {
        let child = self.child.as_ref().context("it does not run")?;
        Ok(i32::try_from(child.id())?)
    }

    /// Ends it as a crash would.
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill_9(&mut self) -> anyhow::Result<()> {
        let mut child = self.child.take().context("it does not run")?;
        child.kill()?;
        child.wait()?;
        self.note("")
    }

    /// Asks it to end.
    ///
    /// # Errors
    /// When it does not run.
    pub fn terminate(&self) -> anyhow::Result<()> {
        Ok(kill(Pid::from_raw(self.pid()?), Signal::SIGTERM)?)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it does not end in time.
    pub async fn ended(&mut self) -> anyhow::Result<ExitStatus> {
        let given_up = Instant::now() + PATIENCE;
        let mut child = self.child.take().context("it does not run")?;
        loop {
            if let Some(status) = child.try_wait()? {
                self.note("")?;
                return Ok(status);
            }
            if Instant::now() > given_up {
                self.child = Some(child);
                bail!("it does not end: {}", self.log_text()?);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Its resident memory in bytes.
    ///
    /// # Errors
    /// When it does not run.
    pub fn memory(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()?))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
    }

    /// What it has logged.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn log_text(&self) -> anyhow::Result<String> {
        Ok(String::from_utf8_lossy(&std::fs::read(self.log())?).into_owned())
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    /// Tells the watchdog whom to end.
    fn note(&self, pid: &str) -> anyhow::Result<()> {
        let mut file = File::create(self.directory.path().join("pid"))?;
        Ok(writeln!(file, "{pid}")?)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if self.child.is_some()
            && let Err(error) = self.kill_9()
        {
            eprintln!("cannot end our server: {error}");
        }
        drop(self.watchdog.stdin.take());
        let _ = self.watchdog.wait();
    }
}

/// A small file system in memory, which only processes see that are started by [`SmallDisk::entry`]; it goes with this
/// value, and with this process.
#[derive(Debug)]
pub struct SmallDisk {
    directory: tempfile::TempDir,
    holder: Child,
}

impl SmallDisk {
    /// Makes one of so many bytes, in a mount namespace of its own (and of users, for who is not root).
    ///
    /// # Errors
    /// When that is not permitted.
    pub fn mount(bytes: u64) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let script = r#"mount -t tmpfs -o "size=$1" none "$0" && echo mounted && cat"#;
        let mut command = Command::new("unshare");
        if !nix::unistd::Uid::effective().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        let mut holder = command
            .args(["--mount", "sh", "-c", script])
            .arg(directory.path())
            .arg(bytes.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("unshare is needed")?;
        let mut said = [0; 7];
        let read = holder.stdout.as_mut().context("no output")?.read_exact(&mut said);
        read.context("mounting a file system in a namespace is not permitted")?;
        Ok(Self { directory, holder })
    }

    /// Where it is, for those who see it.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The command by which a program is called that shall see it.
    #[must_use]
    pub fn entry(&self) -> Vec<String> {
        let mut words =
            vec!["nsenter".to_owned(), format!("--target={}", self.holder.id()), "--mount".to_owned()];
        if !nix::unistd::Uid::effective().is_root() {
            words.extend(["--user".to_owned(), "--preserve-credentials".to_owned()]);
        }
        words.push("--".to_owned());
        words
    }

    /// Gives it another size.
    ///
    /// # Errors
    /// When it cannot have it.
    pub fn resize(&self, bytes: u64) -> anyhow::Result<()> {
        let mut words = self.entry();
        words.extend(["mount", "-o"].map(str::to_owned));
        words.push(format!("remount,size={bytes}"));
        let status = Command::new(words.remove(0)).args(words).arg(self.path()).status()?;
        ensure!(status.success(), "cannot resize it");
        Ok(())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// A process that sees the end of this one by a pipe, and then ends the one whose id is in `file`.
pub(crate) fn watch_over(file: &Path) -> anyhow::Result<Child> {
    Command::new("sh")
        .args(["-c", r#"cat >/dev/null; read -r pid <"$0" && [ -n "$pid" ] && kill -9 "$pid""#])
        .arg(file)
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .context("cannot start the watchdog")
}
