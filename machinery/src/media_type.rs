//! Content negotiation: which encoding and which shape of an object the `Accept` header asks for
//! (`k8s.io/apiserver/pkg/endpoints/handlers/negotiation`, and the router's check before it).

use http::StatusCode;

use crate::status::{Details, Status};

/// How an answer is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`.
    #[default]
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

/// A version of `meta.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaVersion {
    /// `v1`.
    V1,
    /// `v1beta1`.
    V1beta1,
}

impl MetaVersion {
    /// What stands in `apiVersion`.
    #[must_use]
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// What of an object is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// All of it.
    #[default]
    Whole,
    /// Its metadata (`as=PartialObjectMetadata`): for single objects, and for the objects of a watch.
    Metadata(MetaVersion),
    /// The metadata of the items of a list (`as=PartialObjectMetadataList`).
    MetadataList(MetaVersion),
    /// Rows of a table (`as=Table`).
    Table(MetaVersion),
}

/// What kind of answer is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// One object, or a status.
    One,
    /// A list.
    List,
    /// A stream of watch events.
    Watch,
}

/// The outcome of negotiation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaType {
    /// The encoding.
    pub encoding: Encoding,
    /// The shape.
    pub shape: Shape,
    /// `pretty=1` in the header.
    pub pretty: bool,
}

impl MediaType {
    /// The `Content-Type` of the answer.
    #[must_use]
    pub fn content_type(&self, answer: Answer) -> &'static str {
        match (self.encoding, answer) {
            (Encoding::Json, _) => "application/json",
            (Encoding::Yaml, _) => "application/yaml",
            (Encoding::Protobuf, Answer::Watch) => "application/vnd.kubernetes.protobuf;stream=watch",
            (Encoding::Protobuf, _) => "application/vnd.kubernetes.protobuf",
        }
    }
}

const REPRESENTATIONS: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const STREAMS: &str = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// Encodings in the order in which a wildcard takes them.
const ENCODINGS: [(&str, Encoding); 3] =
    [("json", Encoding::Json), ("yaml", Encoding::Yaml), ("vnd.kubernetes.protobuf", Encoding::Protobuf)];

/// Negotiates. Tables are not encoded in protobuf, so that such a clause is passed over, and so is one for a table where
/// there are no `tables`.
///
/// # Errors
/// 406 as kube-apiserver's.
pub fn negotiate(accept: Option<&str>, answer: Answer, tables: bool) -> Result<MediaType, Status> {
    let header = match accept {
        None | Some("" | "*/*" | "application/json") => return Ok(MediaType::default()),
        Some(header) => header,
    };
    if !produced(header) {
        return Err(not_produced(answer));
    }
    let clauses = parse(header);
    let accepted = clauses.iter().find_map(|clause| clause.accepted(answer, tables));
    accepted.ok_or_else(|| not_acceptable(answer))
}

/// The encoding of an answer that tells of an error, which is negotiated anew (`responsewriters.ErrorNegotiated`): clauses
/// that ask for another shape or for a version of the server are passed over. Where nothing is left, JSON for people to
/// read.
#[must_use]
pub fn of_errors(accept: Option<&str>) -> MediaType {
    let header = match accept {
        None | Some("") => return MediaType::default(),
        Some(header) => header,
    };
    let whole = |clause: &&Clause<'_>| {
        let any = |name| clause.parameter(name).is_some();
        !any("as") && !any("g") && !any("v") && clause.parameter("sv").is_none_or(str::is_empty)
    };
    let raw = MediaType { pretty: true, ..MediaType::default() };
    let clauses = parse(header);
    clauses.iter().filter(whole).find_map(|clause| clause.accepted(Answer::One, false)).unwrap_or(raw)
}

/// The router's check: is one of the types, without parameters, among those that are produced?
fn produced(header: &str) -> bool {
    header.split(',').any(|clause| {
        let essence = clause.split(';').next().unwrap_or_default().trim();
        let sub = essence.strip_prefix("application/");
        essence == "*/*" || sub.is_some_and(|sub| ENCODINGS.iter().any(|(name, _)| *name == sub))
    })
}

fn not_produced(answer: Answer) -> Status {
    let mut list = REPRESENTATIONS.to_owned();
    if answer != Answer::One {
        list = format!("{list}, {STREAMS}");
    }
    let message = format!("406: Not Acceptable\n\nAvailable representations: {list}");
    let mut status = Status::failure(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message);
    status.details = Some(Box::new(Details::default()));
    status
}

fn not_acceptable(answer: Answer) -> Status {
    let list = if answer == Answer::Watch { STREAMS } else { REPRESENTATIONS };
    let message = format!("only the following media types are accepted: {list}");
    Status::failure(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
}

/// One clause of an `Accept` header.
#[derive(Debug)]
pub struct Clause<'a> {
    /// `application`.
    pub main: &'a str,
    /// `json`.
    pub sub: &'a str,
    quality: f32,
    parameters: Vec<(&'a str, &'a str)>,
}

/// Clauses of an `Accept` header beyond these are not read: their order is no total one, which only a slow sort bears.
const MOST_CLAUSES: usize = 100;

/// Splits an `Accept` header into clauses in the order in which they are tried: by quality and precision, with the
/// very comparison that upstream's parser sorts by.
#[must_use]
pub fn parse(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> =
        header.split(',').filter_map(Clause::parse).take(MOST_CLAUSES).collect();
    for end in 1..clauses.len() {
        let mut at = end;
        while at > 0 && clauses[at].before(&clauses[at - 1]) {
            clauses.swap(at, at - 1);
            at -= 1;
        }
    }
    clauses
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.trim_matches(' ').split(';');
        let essence = parts.next()?;
        let (main, sub) = match essence.split_once('/') {
            Some((main, sub)) if !sub.is_empty() && !sub.contains('/') => {
                (main.trim_matches(' '), sub.trim_matches(' '))
            }
            _ if essence.trim_matches('/').trim_matches(' ') == "*" => ("*", "*"),
            _ => return None,
        };
        let mut clause = Self { main, sub, quality: 1.0, parameters: Vec::new() };
        for (name, value) in parts.filter_map(|p| p.split_once('=')) {
            if value.is_empty() || value.contains('=') {
                continue;
            }
            match name.trim_matches(' ') {
                "q" => clause.quality = value.parse().unwrap_or_default(),
                name => clause.parameters.push((name, value.trim_matches(' '))),
            }
        }
        Some(clause)
    }

    fn before(&self, other: &Self) -> bool {
        self.quality > other.quality
            || (self.main != "*" && other.main == "*")
            || (self.sub != "*" && other.sub == "*")
    }

    /// The value of a parameter; the last one counts.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().rev().find(|(n, _)| *n == name).map(|(_, value)| *value)
    }

    fn matches(&self, sub: &str) -> bool {
        match (self.main, self.sub) {
            ("application", own) => own == sub || own == "*",
            ("*", "*") => true,
            _ => false,
        }
    }

    fn accepted(&self, answer: Answer, tables: bool) -> Option<MediaType> {
        let matching = ENCODINGS.iter().filter(|(sub, _)| self.matches(sub));
        matching
            .map(|(_, encoding)| *encoding)
            .find_map(|encoding| self.accepted_as(encoding, answer, tables))
    }

    fn accepted_as(&self, encoding: Encoding, answer: Answer, tables: bool) -> Option<MediaType> {
        let streams = encoding != Encoding::Yaml;
        match self.parameter("stream") {
            None | Some("") => {}
            Some("watch") if streams => {}
            Some(_) => return None,
        }
        if answer == Answer::Watch && !streams {
            return None;
        }
        if self.parameter("sv").is_some_and(|version| version != "v1") {
            return None;
        }
        let shape = self.shape()?;
        let allowed = match shape {
            Shape::Table(_) => tables && encoding != Encoding::Protobuf,
            Shape::Whole | Shape::Metadata(_) | Shape::MetadataList(_) => true,
        };
        allowed.then(|| MediaType { encoding, shape, pretty: self.parameter("pretty") == Some("1") })
    }

    fn shape(&self) -> Option<Shape> {
        let (kind, group, version) = (self.parameter("as"), self.parameter("g"), self.parameter("v"));
        if kind.is_none() && group.is_none() && version.is_none() {
            return Some(Shape::Whole);
        }
        let version = match (group?, version?) {
            ("meta.k8s.io", "v1") => MetaVersion::V1,
            ("meta.k8s.io", "v1beta1") => MetaVersion::V1beta1,
            _ => return None,
        };
        match kind? {
            "PartialObjectMetadata" => Some(Shape::Metadata(version)),
            "PartialObjectMetadataList" => Some(Shape::MetadataList(version)),
            "Table" => Some(Shape::Table(version)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
