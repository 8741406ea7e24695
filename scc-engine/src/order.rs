//! In which order SCCs are tried: by priority, then the most restrictive first, then by name.
//!
//! How much one permits is a number. Its digits stand for permissions that outweigh all smaller ones, so the difference of two
//! scores tells which permission made it.

use std::cmp::{Ordering, Reverse};

use crate::constraints::Scc;

const PRIVILEGED: u32 = 1_600_000;
const HOST_PORTS: u32 = 800_000;
const HOST_NETWORK: u32 = 400_000;
const HOST_VOLUMES: u32 = 200_000;
const NON_TRIVIAL_VOLUMES: u32 = 100_000;
const RUN_AS: [(&str, u32); 4] =
    [("RunAsAny", 40_000), ("MustRunAsNonRoot", 30_000), ("MustRunAsRange", 20_000), ("MustRunAs", 10_000)];
const TRIVIAL_VOLUMES: [&str; 6] = ["secret", "configMap", "emptyDir", "downwardAPI", "projected", "none"];

/// How much an SCC permits: the less, the earlier it is tried.
#[must_use]
pub fn score(scc: &Scc) -> u32 {
    let flags = [
        (scc.allow_privileged_container, PRIVILEGED),
        (scc.allow_host_ports, HOST_PORTS),
        (scc.allow_host_network, HOST_NETWORK),
    ];
    let flags: u32 = flags.into_iter().filter(|(set, _)| *set).map(|(_, points)| points).sum();
    let run_as =
        |strategy: &str| RUN_AS.iter().find(|(name, _)| *name == strategy).map_or(0, |(_, points)| *points);
    flags
        + volumes(scc)
        + capabilities(scc)
        + run_as(&scc.se_linux_context.r#type)
        + run_as(&scc.run_as_user.r#type)
}

fn volumes(scc: &Scc) -> u32 {
    let all = || scc.volumes.iter().flatten().map(String::as_str);
    if all().any(|kind| kind == "hostPath" || kind == "*") {
        HOST_VOLUMES
    } else if all().any(|kind| !TRIVIAL_VOLUMES.contains(&kind)) {
        NON_TRIVIAL_VOLUMES
    } else {
        0
    }
}

fn capabilities(scc: &Scc) -> u32 {
    let has = |list: &[String], name: &str| list.iter().any(|entry| entry.to_uppercase() == name);
    let count = |list: &[String]| i64::try_from(list.len()).unwrap_or(i64::MAX / 1000);
    let allowed = &scc.allowed_capabilities;
    let added = 300 * count(&scc.default_add_capabilities);
    let allowed = if has(allowed, "*") || has(allowed, "ALL") { 4000 } else { 10 * count(allowed) };
    let dropped = &scc.required_drop_capabilities;
    let dropped = if has(dropped, "ALL") { 3000 } else { 50 * count(dropped) };
    u32::try_from((5000 + added + allowed - dropped).clamp(0, 9999)).unwrap_or_default()
}

/// Whether one is tried before another.
#[must_use]
pub fn compare(one: &Scc, other: &Scc) -> Ordering {
    let key = |scc: &Scc| (Reverse(scc.priority.unwrap_or_default()), score(scc));
    key(one).cmp(&key(other)).then_with(|| one.name().cmp(other.name()))
}

/// Why one is tried before another, as audit logs say it. `one` comes first.
#[must_use]
pub fn reason(one: &Scc, other: &Scc) -> String {
    if one.priority.unwrap_or_default() > other.priority.unwrap_or_default() {
        return "has higher priority".to_owned();
    }
    let (mut less, mut more) = (score(one), score(other));
    if less >= more {
        return "ordered by name".to_owned();
    }
    for (points, what) in [
        (PRIVILEGED, "privileged"),
        (HOST_PORTS, "host ports"),
        (HOST_NETWORK, "host networking"),
        (HOST_VOLUMES, "host volume mounts"),
        (NON_TRIVIAL_VOLUMES, "non-trivial volume mounts"),
    ] {
        if more < points {
            continue;
        }
        if less < points {
            return format!("forbids {what}");
        }
        less -= points;
        more -= points;
    }
    let what = if less / 10_000 < more / 10_000 { "runAs strategies" } else { "capabilities" };
    format!("permits less {what}")
}
