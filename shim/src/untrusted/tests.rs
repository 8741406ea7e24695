//! Short runs of every target: on its corpus, and on inputs that look like what is expected.

use std::fs;
use std::panic::catch_unwind;
use std::path::PathBuf;

use proptest::prelude::*;

use super::TARGETS;
use super::request_heads::request_heads;

/// Inputs that reach what was ever reached, those of former findings among them.
#[test]
fn no_corpus_has_a_finding() {
    let corpora = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let mut failed = Vec::new();
    for (name, target) in TARGETS {
        let files: Vec<_> =
            fs::read_dir(corpora.join(name)).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(!files.is_empty(), "the corpus of {name} is empty");
        for file in files {
            let bytes = fs::read(&file).unwrap();
            if catch_unwind(|| target(&bytes)).is_err() {
                failed.push(file);
            }
        }
    }
    assert!(failed.is_empty(), "what fails is said above: {failed:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn heads(
        target in "(/|//|https?://[a-z:@%]{0,5}|\\*|[a-zé%2F.]{1,5}|apis/route.openshift.io/v1/){1,5}",
        lines in prop::collection::vec("(X[-_]Remote[-_](User|Uid|Extra-a)|Host|Connection|Upgrade|TE|Cookie|Authorization|Impersonate-(User|User-Scope|Group)|Content-Length|Transfer-Encoding|Sec-WebSocket-Protocol|Proxy-Connection|X-Forwarded-For| ): ?(websocket|Upgrade, X-Remote-User|Bearer a|base64url.bearer.authorization.k8s.io.YQ, b|chunked|[0-9]{1,2}|trailers|é|[a-z, ]{0,6})", 0..8),
        body in "[0-9a-f\r\n]{0,12}",
    ) {
        let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{}\r\n\r\n{body}", lines.join("\r\n"));
        request_heads(head.as_bytes());
    }

    #[test]
    fn bytes(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        request_heads(&bytes);
    }
}
