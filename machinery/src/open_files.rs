//! How many files and sockets the process may have open. The usual soft limit of 1,024 is for programs that call
//! `select`; a server takes all that it is allowed, as Go's servers do.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Files that are no clients' connections: the store, watches on kube-apiserver, reviews, the log.
const OWN: u64 = 256;

/// Raises the soft limit to the hard one and answers how many connections fit, at most `wanted`: one more would take
/// the files that the reviews for all others need.
#[must_use]
pub fn connections(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let soft = match setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, ..limit })
    {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files");
            limit.current
        }
    };
    // No limit, or one that is no matter.
    let room =
        soft.map_or(usize::MAX, |soft| usize::try_from(soft.saturating_sub(OWN)).unwrap_or(usize::MAX));
    if room < wanted {
        tracing::warn!(connections = room, wanted, "the limit of open files allows fewer connections");
    }
    room.clamp(1, wanted.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_is_allowed() {
        assert_eq!(connections(1), 1);
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
        assert!(connections(usize::MAX) >= 1);
    }
}
