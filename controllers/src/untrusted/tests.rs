//! Short runs of every target: on its corpus, and on inputs that look like what is expected.

use std::fs;
use std::panic::catch_unwind;
use std::path::PathBuf;

use proptest::prelude::*;

use super::{TARGETS, oauth_requests, passwords, redirects};

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
    fn places(text in "(https?|app.example)?(:|:?/|//|\\\\)?(app.example|127.0.0.1|\\[::1\\]|evil.example|@|:[0-9x]{0,3}){0,4}(/|cb|callback|%2e|%2f|\\.\\.|\\\\|\\?|#|[a-zé ]){0,8}") {
        redirects::redirects(&text);
    }

    #[test]
    fn files(
        lines in prop::collection::vec("[a-c]{0,2}:?((\\$apr1\\$|\\$2[aby]\\$0?4\\$|\\{SHA\\})[a-zA-Z0-9./$=]{0,60})?", 0..4),
        name in "[a-c:]{0,3}",
        password in "[a-c]{0,3}",
    ) {
        passwords::htpasswd(format!("{}\0{name}\0{password}", lines.join("\n")).as_bytes());
    }

    #[test]
    fn requests(
        method in "GET|POST",
        path in "/(oauth/(authorize(/approve)?|token(/request|/display|/implicit)?|info)|login(/p)?|logout|healthz)",
        parameters in prop::collection::vec("(client_id=(auto|ask|cli)|response_type=(code|token)|redirect_uri=(https%3A%2F%2F(app|evil).example%2Fcb[a-z%25.]{0,4}|x)|then=(%2F|%5C|x|\\.\\.%2Fauthorize|https:){0,3}|csrf=x|state=[a-z%]{0,3}|scope=(user:full|x| ){0,2}|approve=1|user_name=a|error=[a-z<]{0,3}|username=a|password=b|idp=p|code_challenge=[a-z]{0,44})", 0..7),
        headers in "(Cookie: (csrf=x; )?ssn=\\{session\\}\n)?(Authorization: Basic YTpi\n)?(X-CSRF-Token: 1\n)?",
    ) {
        let parameters = parameters.join("&");
        oauth_requests::oauth_requests(format!("{method} {path}?{parameters}\n{headers}\n").as_bytes());
        oauth_requests::oauth_requests(format!("POST {path}\n{headers}\n{parameters}").as_bytes());
    }

    #[test]
    fn bytes(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        for (_, target) in TARGETS {
            target(&bytes);
        }
    }
}
