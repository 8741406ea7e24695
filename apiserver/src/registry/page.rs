//! Pages of a list: `limit` and `continue`, with tokens in the form of kube-apiserver's.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use picoshift_machinery::Status;
use serde::{Deserialize, Serialize};

use crate::decode::json;
use crate::store::Revision;

/// Longest token that is read.
const TOKEN_MAX: usize = 4096;

/// Where the next page begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
        Self { v: "meta.k8s.io/v1".to_owned(), rv, start: format!("{namespace}/{name}") }
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
        let bytes = URL_SAFE_NO_PAD.decode(token.trim_end_matches('=')).map_err(|e| bad(&e.to_string()))?;
        let token: Self = serde_json::from_slice(&bytes).map_err(|error| {
            // In Go's words where it is no JSON at all.
            let syntax = json::parse(&bytes).err().map(|error| error.0);
            bad(&syntax.unwrap_or_else(|| error.to_string()))
        })?;
        if token.v != "meta.k8s.io/v1" {
            return Err(bad(&format!("server does not recognize this encoded version {:?}", token.v)));
        }
        if token.start.is_empty() {
            return Err(bad("encoded start key empty (version meta.k8s.io/v1)"));
        }
        if token.rv == 0 {
            return Err(bad("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
        }
        Ok(token)
    }
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
        fn tokens_read_back(rv in 1..1u64 << 62, ns in "[a-z.-]{0,9}", name in "[a-z.-]{1,9}") {
            let token = Continue::after(rv, &ns, &name);
            let read = Continue::decode(&token.encode()).unwrap();
            prop_assert_eq!(read.last(), (ns.as_str(), name.as_str()));
            prop_assert_eq!(read.revision(), Some(rv));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,80}") {
            if let Err(status) = Continue::decode(&text) {
                prop_assert_eq!(status.code, 400);
            }
        }
    }
}
