//! CPU time and memory of processes, from /proc.

use std::fs;
use std::time::Duration;

use anyhow::Context as _;
use picoshift_tests::home::Home;
use picoshift_tests::process::{KUBE_APISERVER, OUR_SERVER};

/// The processes that serve: what either peer costs is spent in these.
const SERVERS: [&str; 3] = [OUR_SERVER, KUBE_APISERVER, "etcd"];
/// Ticks per second in /proc; the kernel's USER_HZ, which is 100 for every program.
const TICK: Duration = Duration::from_millis(10);

/// The server processes of one control plane.
#[derive(Debug, Clone)]
pub(crate) struct Servers {
    pids: Vec<i32>,
}

impl Servers {
    /// Finds them.
    pub(crate) fn of(home: &Home) -> anyhow::Result<Self> {
        let pid = |name: &&str| home.component(name)?.pid.with_context(|| format!("{name} does not run"));
        Ok(Self { pids: SERVERS.iter().map(pid).collect::<anyhow::Result<_>>()? })
    }

    /// User and system time of all of them since they started.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        let mut ticks = 0;
        for pid in &self.pids {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
            // The name, in parentheses, may hold anything; fields are counted behind it, `state` being the third.
            let (_, fields) = stat.rsplit_once(')').context("unexpected /proc/PID/stat")?;
            let fields: Vec<&str> = fields.split_whitespace().collect();
            for field in [14, 15] {
                ticks += fields.get(field - 3).context("short /proc/PID/stat")?.parse::<u32>()?;
            }
        }
        Ok(TICK * ticks)
    }
}

/// Resident memory of our server in MB (of 1,000,000 bytes).
pub(crate) fn our_memory(home: &Home) -> anyhow::Result<f64> {
    let pid = home.component(OUR_SERVER)?.pid.context("our server does not run")?;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024.0 / 1e6)
}
