//! The pages: plain HTML that works without scripts, on a phone, and for a screen reader. Everything that is put into a
//! page is escaped by the templates; no page may load or run anything.

use std::sync::LazyLock;

use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use picoshift_machinery::body::full;
use picoshift_machinery::plain;
use sha2::{Digest as _, Sha256};

use super::reply::{Reply, with_header};
use super::scopes::Described;

/// All there is of style.
pub const STYLE: &str = include_str!("../../templates/oauth/style.css");

/// Nothing but our own style. Where forms lead is not bound: a login ends in a redirect to a client.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(STYLE));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; img-src data:; base-uri 'none'; frame-ancestors 'none'"
    )
});

#[derive(Template)]
#[template(path = "oauth/login.html")]
struct Login<'a> {
    action: &'a str,
    then: &'a str,
    csrf: &'a str,
    error: &'a str,
}

#[derive(Template)]
#[template(path = "oauth/providers.html")]
struct Providers {
    providers: Vec<(String, String)>,
}

#[derive(Template)]
#[template(path = "oauth/error.html")]
struct Error<'a> {
    text: &'a str,
}

/// What the user is asked on behalf of a client.
#[derive(Template)]
#[template(path = "oauth/grant.html")]
pub struct GrantPage<'a> {
    /// Where it goes on.
    pub then: &'a str,
    /// The form's token.
    pub csrf: &'a str,
    /// The client's name.
    pub client: &'a str,
    /// Namespace and name, if the client is a service account.
    pub account: Option<(&'a str, &'a str)>,
    /// Who is asked.
    pub user: &'a str,
    /// Where the client is told.
    pub redirect_uri: &'a str,
    /// What the client may do already.
    pub granted: Vec<Described>,
    /// What it wants to do.
    pub asked: Vec<Described>,
}

#[derive(Template)]
#[template(path = "oauth/display_form.html")]
struct DisplayForm<'a> {
    action: &'a str,
    code: &'a str,
    csrf: &'a str,
}

#[derive(Template)]
#[template(path = "oauth/display_token.html")]
struct DisplayToken<'a> {
    error: &'a str,
    token: &'a str,
    server: &'a str,
    may_log_out: bool,
}

fn page(code: StatusCode, template: &impl Template, form: &'static str) -> Reply {
    let text = match template.render() {
        Ok(text) => text,
        Err(error) => {
            tracing::error!(%error, "cannot make a page");
            return plain::plain_error(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error");
        }
    };
    let mut reply = Reply::new(full(text));
    *reply.status_mut() = code;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(form));
    with_header(reply, CONTENT_SECURITY_POLICY, &POLICY)
}

const UPPER: &str = "text/html; charset=UTF-8";
const LOWER: &str = "text/html; charset=utf-8";

/// The login page; `error` is what went wrong before, if anything.
#[must_use]
pub fn login(code: StatusCode, action: &str, then: &str, csrf: &str, error: &str) -> Reply {
    page(code, &Login { action, then, csrf, error }, UPPER)
}

/// The choice between providers: names, and where they lead.
#[must_use]
pub fn providers(providers: Vec<(String, String)>) -> Reply {
    page(StatusCode::OK, &Providers { providers }, UPPER)
}

/// An error for a browser, whose code is 200 as upstream's.
#[must_use]
pub fn error(text: &str) -> Reply {
    page(StatusCode::OK, &Error { text }, UPPER)
}

/// The question of a client.
#[must_use]
pub fn grant(grant: &GrantPage<'_>) -> Reply {
    page(StatusCode::OK, grant, LOWER)
}

/// Why there is no question.
#[must_use]
pub fn grant_error(text: &str) -> Reply {
    page(StatusCode::OK, &Error { text }, LOWER)
}

/// The button that shows a token, so that whoever fetches links in advance does not use up the code.
#[must_use]
pub fn display_form(action: &str, code: &str, csrf: &str) -> Reply {
    page(StatusCode::OK, &DisplayForm { action, code, csrf }, UPPER)
}

/// A token.
#[must_use]
pub fn display_token(token: &str, server: &str, may_log_out: bool) -> Reply {
    page(StatusCode::OK, &DisplayToken { error: "", token, server, may_log_out }, UPPER)
}

/// Why there is no token.
#[must_use]
pub fn display_error(code: StatusCode, error: &str) -> Reply {
    page(code, &DisplayToken { error, token: "", server: "", may_log_out: false }, UPPER)
}

/// What a reason in the address of the login page means.
#[must_use]
pub fn text_of(reason: &str) -> &'static str {
    match reason {
        "user_required" => "Login is required. Please try again.",
        "token_expired" => "Could not check CSRF token. Please try again.",
        "access_denied" => "Invalid login or password. Please try again.",
        "mapping_claim_error" => "Could not create user.",
        "mapping_lookup_error" => "Could not find user.",
        _ => "An authentication error occurred.",
    }
}

/// Text that stands in plain text as it would in HTML, as upstream writes it.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&#34;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use http_body_util::BodyExt as _;
    use proptest::prelude::*;

    use super::*;
    use crate::oauth::scopes::describe;

    fn text(reply: Reply) -> String {
        // A page is there as a whole: nothing is waited for.
        let body = reply.into_body().collect().now_or_never().unwrap().unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    fn all(evil: &str) -> Vec<String> {
        let granted = [evil.to_owned()];
        let grant = GrantPage {
            then: evil,
            csrf: evil,
            client: evil,
            account: Some((evil, evil)),
            user: evil,
            redirect_uri: evil,
            granted: vec![describe(evil, &granted)],
            asked: vec![describe(evil, &granted), describe(evil, &[])],
        };
        let pages = [
            login(StatusCode::OK, evil, evil, evil, evil),
            providers(vec![(evil.to_owned(), evil.to_owned())]),
            error(evil),
            super::grant(&grant),
            display_form(evil, evil, evil),
            display_token(evil, evil, true),
            display_error(StatusCode::BAD_REQUEST, evil),
        ];
        pages.into_iter().map(text).collect()
    }

    #[test]
    fn pages_are_for_everybody() {
        for page in all("x") {
            for needed in ["<html lang=\"en\">", "<title>", "name=\"viewport\"", "<main>", "<h1>"] {
                assert!(page.contains(needed), "{needed} in {page}");
            }
            assert!(
                !page.contains("<script") && !page.contains(" style=") && !page.contains("onclick"),
                "{page}"
            );
            let inputs = page.matches("<input type=\"text\"").count()
                + page.matches("<input type=\"password\"").count();
            assert_eq!(page.matches("<label for=\"input").count(), inputs, "{page}");
        }
        let policy = login(StatusCode::OK, "", "", "", "").headers()[CONTENT_SECURITY_POLICY].clone();
        let policy = policy.to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"),
            "{policy}"
        );
    }

    #[test]
    fn what_scripts_look_for_is_there() {
        let login = text(login(StatusCode::OK, "/login", "/", "c", ""));
        for needed in [
            "id=\"inputUsername\" name=\"username\"",
            "id=\"inputPassword\" name=\"password\"",
            "id=\"co-login-button\"",
            "name=\"then\" value=\"/\"",
            "name=\"csrf\" value=\"c\"",
        ] {
            assert!(login.contains(needed), "{needed}");
        }
        let token = text(display_token("sha256~t", "https://api:6443", false));
        assert!(token.contains("oc login --token=sha256~t --server=https://api:6443"), "{token}");
        assert!(!token.contains("Logout"));
    }

    proptest! {
        #[test]
        fn nothing_gets_out_of_its_place(evil in "[<>\"'&a-z/= ]{1,12}") {
            let plain = all("plain");
            for (page, plain) in all(&evil).iter().zip(&plain) {
                // Tags and quotes are ours alone, so their number does not depend on what is put in.
                for mark in ["<", ">", "\""] {
                    let (own, usual) = (page.matches(mark).count(), plain.matches(mark).count());
                    prop_assert!(own == usual || evil.trim().is_empty(), "{} of {}: {}", mark, evil, page);
                }
            }
        }
    }
}
