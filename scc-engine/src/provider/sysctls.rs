//! Kernel parameters of a pod.

use picoshift_machinery::FieldError;
use picoshift_machinery::field_error::quote;

use super::Errors;
use crate::constraints::Scc;
use crate::pod::Sysctl;

/// Those that touch no other pod. All are there since Linux 4.15, the oldest kernel that is reckoned with.
const SAFE: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

pub(super) fn check(scc: &Scc, sysctls: &[Sysctl], errors: &mut Errors) {
    for (index, Sysctl { name }) in sysctls.iter().enumerate() {
        let detail = if matches(&scc.forbidden_sysctls, name) {
            format!("sysctl {} is not allowed", quote(name))
        } else if SAFE.contains(&name.as_str()) || matches(&scc.allowed_unsafe_sysctls, name) {
            continue;
        } else {
            format!("unsafe sysctl {} is not allowed", quote(name))
        };
        let field = format!("pod.spec.securityContext.sysctls[{index}]");
        errors.push(FieldError::forbidden(field, detail));
    }
}

fn matches(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    })
}
