//! The cases: what is asked, on which way, in which encoding.

use std::fmt;

use crate::image_streams::IMAGE_STREAMS;
use crate::routes::ROUTES;
use crate::subject::Subject;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// One of so many objects, another one each time.
    Get {
        /// How many.
        count: usize,
    },
    /// All objects of a namespace with so many.
    List {
        /// How many.
        count: usize,
    },
    /// A new object.
    Create,
    /// A patch of an object in a namespace with so many.
    Update {
        /// How many.
        among: usize,
    },
    /// A server-side apply of one field of an object in a namespace with so many.
    Apply {
        /// How many.
        among: usize,
    },
    /// A strategic merge patch of an object in a namespace with so many; CRDs have none.
    Strategic {
        /// How many.
        among: usize,
    },
}

impl Operation {
    /// How many workers ask at once.
    pub(crate) fn workers(self) -> usize {
        match self {
            Self::Get { .. }
            | Self::Create
            | Self::Update { .. }
            | Self::Apply { .. }
            | Self::Strategic { .. } => 8,
            Self::List { .. } => 2,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get { count } => write!(formatter, "get-{count}"),
            Self::List { count } => write!(formatter, "list-{count}"),
            Self::Create => formatter.write_str("create"),
            Self::Update { among } => write!(formatter, "update-among-{among}"),
            Self::Apply { .. } => formatter.write_str("apply"),
            Self::Strategic { .. } => formatter.write_str("strategic-patch"),
        }
    }
}

/// How our server is reached; the peer is kube-apiserver itself either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// At its own port.
    Direct,
    /// Through kube-apiserver.
    Aggregated,
}

impl Way {
    /// All ways.
    pub(crate) const ALL: [Self; 2] = [Self::Direct, Self::Aggregated];
}

impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Direct => "direct",
            Self::Aggregated => "aggregated",
        })
    }
}

/// The encoding that the client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Plain bytes.
    Identity,
    /// gzip.
    Gzip,
    /// Plain bytes of protobuf, which CRDs do not have.
    Protobuf,
}

impl fmt::Display for Encoding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Protobuf => "protobuf",
        })
    }
}

/// A case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    /// What is measured.
    pub(crate) subject: &'static Subject,
    /// What is asked.
    pub(crate) operation: Operation,
    /// How ours is reached.
    pub(crate) way: Way,
    /// What the client accepts.
    pub(crate) encoding: Encoding,
    /// How many rounds each peer has.
    pub(crate) rounds: usize,
}

impl Case {
    /// Whether the CRD can do it too.
    pub(crate) fn has_peer(&self) -> bool {
        !matches!(self.operation, Operation::Strategic { .. }) && self.encoding != Encoding::Protobuf
    }
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, operation, way, encoding, .. } = self;
        write!(formatter, "{}{operation}-{way}-{encoding}", subject.prefix)
    }
}

const PLAIN: &[Encoding] = &[Encoding::Identity];
const BOTH: &[Encoding] = &[Encoding::Identity, Encoding::Gzip];

/// The cases of Routes.
pub(crate) fn of_routes() -> Vec<Case> {
    let operations = [
        (Operation::Get { count: 1000 }, BOTH, 3),
        (Operation::List { count: 100 }, BOTH, 3),
        (Operation::List { count: 1000 }, BOTH, 3),
        (Operation::Create, PLAIN, 3),
        (Operation::Apply { among: 100 }, PLAIN, 3),
    ];
    let mut cases = of(&ROUTES, &operations);
    // Ours only; the way through kube-apiserver adds what it adds to any request.
    let alone =
        |operation, encoding| Case { subject: &ROUTES, operation, way: Way::Direct, encoding, rounds: 2 };
    cases.push(alone(Operation::Strategic { among: 100 }, Encoding::Identity));
    cases.push(alone(Operation::List { count: 1000 }, Encoding::Protobuf));
    cases
}

/// The cases of ImageStreams. Those among few come first: there are not yet more then.
pub(crate) fn of_image_streams() -> Vec<Case> {
    let operations = [
        (Operation::Update { among: 10 }, PLAIN, 3),
        (Operation::Get { count: 1000 }, PLAIN, 3),
        (Operation::List { count: 1000 }, BOTH, 3),
        (Operation::Create, PLAIN, 3),
        (Operation::Update { among: 10_000 }, PLAIN, 3),
        // A list of these takes the peer a second.
        (Operation::List { count: 10_000 }, BOTH, 1),
    ];
    of(&IMAGE_STREAMS, &operations)
}

fn of(subject: &'static Subject, operations: &[(Operation, &[Encoding], usize)]) -> Vec<Case> {
    let mut cases = Vec::new();
    for &(operation, encodings, rounds) in operations {
        for way in Way::ALL {
            cases.extend(encodings.iter().map(|&encoding| Case {
                subject,
                operation,
                way,
                encoding,
                rounds,
            }));
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay() {
        let names = |cases: Vec<Case>| cases.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (routes, streams) = (names(of_routes()), names(of_image_streams()));
        assert_eq!((routes.len(), streams.len()), (18, 16));
        for name in ["apply-direct-identity", "strategic-patch-direct-identity", "list-1000-direct-protobuf"]
        {
            assert!(routes.iter().any(|known| known == name), "{name} is not among {routes:?}");
        }
        for name in ["get-1000-direct-identity", "list-1000-aggregated-gzip", "create-direct-identity"] {
            assert!(routes.iter().any(|known| known == name), "{name} is not among {routes:?}");
            let name = format!("imagestreams-{name}");
            assert!(streams.contains(&name), "{name} is not among {streams:?}");
        }
        assert_eq!(streams.first().map(String::as_str), Some("imagestreams-update-among-10-direct-identity"));
    }
}
