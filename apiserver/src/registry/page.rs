//! Pages of a list: `limit` and `continue`, with tokens in the form of kube-apiserver's.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use picoshift_machinery::Status;
use serde::{Deserialize, Serialize};

use crate::decode::json;
use crate::store::Revision;

/// Longest token that is read.
const TOKEN_MAX: usize = 4096;

/// The version of the tokens.
const VERSION: &str = "meta.k8s.io/v1";

/// Where the next page begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Continue {
    v: String,
    /// Revision of the first page, which all pages are of; -1 goes on at the newest, come what may.
    rv: i64,
    /// The key at which to go on, within what is listed: `name` in a namespace or `namespace/name`. After an item that
    /// was sent it is that item's key with a zero byte, which is the next one there can be.
    start: String,
}

impl Continue {
    /// The token after an item of a list of namespace `within`, empty for a list of all.
    pub(crate) fn after(rv: Revision, within: &str, namespace: &str, name: &str) -> Self {
        let rv = i64::try_from(rv).unwrap_or(i64::MAX);
        let start = if namespace == within { format!("{name}\0") } else { format!("{namespace}/{name}\0") };
        Self { v: VERSION.to_owned(), rv, start }
    }

    /// The revision of the pages; `None` for the newest.
    pub(crate) fn revision(&self) -> Option<Revision> {
        Revision::try_from(self.rv).ok()
    }

    /// Namespace and name at which a list of namespace `within` goes on; `namespaced` says whether items have namespaces.
    pub(crate) fn from<'a>(&'a self, within: &'a str, namespaced: bool) -> (&'a str, &'a str) {
        let start = self.start.strip_prefix('/').unwrap_or(&self.start);
        if !within.is_empty() || !namespaced {
            return (within, start);
        }
        start.split_once('/').unwrap_or((start, ""))
    }

    /// Namespace and name of the item after which a list of namespace `within` goes on.
    pub(crate) fn last<'a>(&'a self, within: &'a str) -> (&'a str, &'a str) {
        let (namespace, name) = self.from(within, true);
        (namespace, name.strip_suffix('\0').unwrap_or(name))
    }

    pub(crate) fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Reads a token.
    pub(crate) fn decode(token: &str) -> Result<Self, Status> {
        let bad = |why: &str| {
            Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        if token.len() > TOKEN_MAX {
            return Err(bad("too long"));
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| bad(&base64_error(token)))?;
        let token =
            serde_json::from_slice::<Self>(&bytes).map_err(|error| bad(&unreadable(&bytes, &error)))?;
        if token.v != VERSION {
            return Err(bad(&format!("server does not recognize this encoded version {}", token.v)));
        }
        if token.rv == 0 {
            return Err(bad("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
        }
        if token.start.is_empty() {
            return Err(bad("encoded start key empty (version meta.k8s.io/v1)"));
        }
        let mut parts = token.start.strip_prefix('/').unwrap_or(&token.start).split('/');
        // Nothing that leads out of what is listed.
        if parts.any(|part| matches!(part, "" | "." | "..")) {
            return Err(bad(&token.start));
        }
        Ok(token)
    }
}

/// What Go says of a token that is no JSON, or whose fields are of other types.
fn unreadable(bytes: &[u8], error: &serde_json::Error) -> String {
    let value = match json::parse(bytes) {
        Err(syntax) => return syntax.0,
        Ok(_) => serde_json::from_slice::<serde_json::Value>(bytes).unwrap_or_default(),
    };
    let kind = |value: &serde_json::Value| match value {
        serde_json::Value::Null => None,
        serde_json::Value::Bool(_) => Some("bool"),
        serde_json::Value::Number(_) => Some("number"),
        serde_json::Value::String(_) => Some("string"),
        serde_json::Value::Array(_) => Some("array"),
        serde_json::Value::Object(_) => Some("object"),
    };
    if let Some(kind) = kind(&value).filter(|kind| *kind != "object") {
        return format!("json: cannot unmarshal {kind} into Go value of type storage.continueToken");
    }
    let fields = [("v", "string", "string"), ("rv", "int64", "number"), ("start", "string", "string")];
    let wrong = fields.iter().find_map(|(field, go, wanted)| {
        let found = value.get(field).and_then(kind).filter(|found| found != wanted)?;
        Some(format!(
            "json: cannot unmarshal {found} into Go struct field continueToken.{field} of type {go}"
        ))
    });
    wrong.unwrap_or_else(|| error.to_string())
}

/// What Go says of a text that is no base64: the place of the first byte that is wrong, or of the last piece when that is
/// too short.
fn base64_error(token: &str) -> String {
    let wrong = token.bytes().position(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'-' | b'_'));
    format!("illegal base64 data at input byte {}", wrong.unwrap_or(token.len() / 4 * 4))
}

/// 410: the revision of the first page is gone; the token in it goes on at the newest revision.
pub(crate) fn expired(token: &Continue) -> Status {
    let mut status = Status::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
         results. Continuing with the provided token results in an inconsistent list - objects that were created, \
         modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    status.continue_token = Continue { rv: -1, ..token.clone() }.encode();
    status
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn tokens_read_back(rv in 1..1u64 << 62, ns in "[a-z-]{1,9}", name in "[a-z-]{1,9}") {
            for within in ["", ns.as_str()] {
                let token = Continue::after(rv, within, &ns, &name);
                let read = Continue::decode(&token.encode()).unwrap();
                prop_assert_eq!(read.last(within), (ns.as_str(), name.as_str()));
                prop_assert_eq!(read.revision(), Some(rv));
            }
        }

        #[test]
        fn any_json_is_read_or_refused(json in "[{\\[\"]?(\"(v|rv|start)\":(\"meta.k8s.io/v1\"|-?[0-9]{1,3}|null|\\[\\]),?){0,3}[}\\]\"]?") {
            if let Err(status) = Continue::decode(&URL_SAFE_NO_PAD.encode(json)) {
                prop_assert_eq!(status.code, 400);
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,80}") {
            if let Err(status) = Continue::decode(&text) {
                prop_assert_eq!(status.code, 400);
            }
        }
    }

    #[test]
    fn what_is_wrong_with_a_token_is_said_in_the_real_words() {
        let why = |json: &str| {
            let message = Continue::decode(&URL_SAFE_NO_PAD.encode(json)).unwrap_err().message;
            message.replacen("invalid continue token: continue key is not valid: ", "", 1)
        };
        let version = "server does not recognize this encoded version";
        assert_eq!(why(r#"{"rv":1,"start":"a"}"#), format!("{version} "));
        assert_eq!(why(r#"{"v":"meta.k8s.io/v2"}"#), format!("{version} meta.k8s.io/v2"));
        let revision = "incorrect encoded start resourceVersion (version meta.k8s.io/v1)";
        assert_eq!(why(r#"{"v":"meta.k8s.io/v1","start":"a"}"#), revision);
        assert_eq!(why(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../x"}"#), "../x");
        let unmarshal = "json: cannot unmarshal string into Go struct field continueToken.rv of type int64";
        assert_eq!(why(r#"{"v":"meta.k8s.io/v1","rv":"x"}"#), unmarshal);
        assert!(why("[1]").starts_with("json: cannot unmarshal array into Go value of type"));
    }
}
