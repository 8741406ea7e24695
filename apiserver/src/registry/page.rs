//! Pages of a list: `limit` and `continue`, with tokens in the form of kube-apiserver's.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use picoshift_machinery::Status;
use serde::Serialize;
use serde_json::Value;

use crate::decode::json;
use crate::store::Revision;

/// The only version of tokens.
const VERSION: &str = "meta.k8s.io/v1";
/// Longest token that is read.
const TOKEN_MAX: usize = 4096;

/// Where the next page begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Continue {
    v: String,
    /// Revision of the first page, which all pages are of; -1 goes on at the newest, come what may.
    rv: i64,
    /// `namespace/name` of the last item already sent.
    start: String,
}

impl Continue {
    /// The token after an item.
    pub(crate) fn after(rv: Revision, namespace: &str, name: &str) -> Self {
        let rv = i64::try_from(rv).unwrap_or(i64::MAX);
        Self { v: VERSION.to_owned(), rv, start: format!("{namespace}/{name}") }
    }

    /// The revision of the pages; `None` for the newest.
    pub(crate) fn revision(&self) -> Option<Revision> {
        Revision::try_from(self.rv).ok()
    }

    /// Namespace and name of the last item sent.
    pub(crate) fn last(&self) -> (&str, &str) {
        self.start.split_once('/').unwrap_or(("", &self.start))
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
        let value = serde_json::from_slice(&bytes).map_err(|error| {
            // In Go's words where it is no JSON at all.
            let syntax = json::parse(&bytes).err().map(|error| error.0);
            bad(&syntax.unwrap_or_else(|| error.to_string()))
        })?;
        let token = Self::from_json(&value).map_err(|why| bad(&why))?;
        if token.v != VERSION {
            return Err(bad(&format!("server does not recognize this encoded version {}", token.v)));
        }
        if token.rv == 0 {
            return Err(bad("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
        }
        if token.start.is_empty() {
            return Err(bad("encoded start key empty (version meta.k8s.io/v1)"));
        }
        if !is_clean(token.start.strip_prefix('/').unwrap_or(&token.start)) {
            return Err(bad(&token.start));
        }
        Ok(token)
    }

    /// As Go's JSON package reads it: what is missing or null is empty, what is unknown does not matter.
    fn from_json(value: &Value) -> Result<Self, String> {
        let mismatch = |value: &Value, target: &str| {
            let kind = match value {
                Value::Null => "null",
                Value::Bool(_) => "bool",
                Value::Number(number) if number.is_i64() => "number",
                Value::Number(number) => {
                    return format!("json: cannot unmarshal number {number} into {target}");
                }
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            };
            format!("json: cannot unmarshal {kind} into {target}")
        };
        let fields = match value {
            Value::Object(fields) => fields,
            Value::Null => return Ok(Self { v: String::new(), rv: 0, start: String::new() }),
            other => return Err(mismatch(other, "Go value of type storage.continueToken")),
        };
        let text = |name: &str| match fields.get(name) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => {
                Err(mismatch(other, &format!("Go struct field continueToken.{name} of type string")))
            }
        };
        let v = text("v")?;
        let rv = match fields.get("rv") {
            None | Some(Value::Null) => 0,
            Some(number) => number
                .as_i64()
                .ok_or_else(|| mismatch(number, "Go struct field continueToken.rv of type int64"))?,
        };
        Ok(Self { v, rv, start: text("start")? })
    }
}

/// Whether a path is as Go's `path.Clean` would make it: nothing in it leads elsewhere.
fn is_clean(path: &str) -> bool {
    path.is_empty() || path.split('/').all(|part| !matches!(part, "" | "." | ".."))
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
        fn tokens_read_back(rv in 1..1u64 << 62, ns in "([a-z][a-z.-]{0,8})?", name in "[a-z][a-z.-]{0,8}") {
            let token = Continue::after(rv, &ns, &name);
            let read = Continue::decode(&token.encode()).unwrap();
            prop_assert_eq!(read.last(), (ns.as_str(), name.as_str()));
            prop_assert_eq!(read.revision(), Some(rv));
        }

        #[test]
        fn any_object_is_read_or_refused(v in "meta.k8s.io/v[12]|", rv in any::<i64>(), start in "[./a]{0,9}") {
            let text = serde_json::json!({"v": v, "rv": rv, "start": start}).to_string();
            match Continue::decode(&URL_SAFE_NO_PAD.encode(text)) {
                Ok(token) => prop_assert!(v == VERSION && rv != 0 && !token.last().1.contains("..")),
                Err(status) => prop_assert_eq!(status.code, 400),
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
    fn refusals_are_in_the_real_words() {
        let cases = [
            (
                r#"{"v":"meta.k8s.io/v2","rv":1,"start":"a"}"#,
                "server does not recognize this encoded version meta.k8s.io/v2",
            ),
            ("null", "server does not recognize this encoded version "),
            (
                r#"{"v":"meta.k8s.io/v1","start":"a"}"#,
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ),
            (
                r#"{"v":"meta.k8s.io/v1","rv":0}"#,
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ),
            (r#"{"v":"meta.k8s.io/v1","rv":1}"#, "encoded start key empty (version meta.k8s.io/v1)"),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a/../b"}"#, "a/../b"),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a//b"}"#, "a//b"),
            ("[]", "json: cannot unmarshal array into Go value of type storage.continueToken"),
            (
                r#"{"v":7}"#,
                "json: cannot unmarshal number into Go struct field continueToken.v of type string",
            ),
            (
                r#"{"rv":"7"}"#,
                "json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
            ),
            (
                r#"{"rv":1.5}"#,
                "json: cannot unmarshal number 1.5 into Go struct field continueToken.rv of type int64",
            ),
        ];
        for (token, why) in cases {
            let status = Continue::decode(&URL_SAFE_NO_PAD.encode(token)).unwrap_err();
            let expected = format!("invalid continue token: continue key is not valid: {why}");
            assert_eq!((status.code, status.message), (400, expected), "{token}");
        }
    }
}
