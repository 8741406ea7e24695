//! `/healthz`, `/livez`, `/readyz`: in kube-apiserver's words, with `?verbose` and `?exclude=NAME`.

use std::fmt::Write as _;

use http::{Response, StatusCode};

use crate::body::Body;
use crate::field_error::quote;
use crate::plain;
use crate::query::pairs;
use crate::readiness::{Checks, Probe};

/// The probe of a path, with the name of a single check if there is one.
#[must_use]
pub fn probe(path: &str) -> Option<(Probe, Option<&str>)> {
    [Probe::Health, Probe::Live, Probe::Ready].into_iter().find_map(|probe| {
        let rest = path.strip_prefix('/')?.strip_prefix(probe.name())?;
        if rest.is_empty() { Some((probe, None)) } else { Some((probe, Some(rest.strip_prefix('/')?))) }
    })
}

/// Answers a probe.
#[must_use]
pub fn answer(checks: &Checks, probe: Probe, name: Option<&str>, query: Option<&str>) -> Response<Body> {
    match name {
        None => all(checks, probe, query),
        Some(name) => match checks.of(probe).into_iter().find(|check| check.name == name) {
            None => plain::not_found(),
            Some(check) => match check.run() {
                Ok(()) => plain::text(StatusCode::OK, "ok"),
                Err(why) => plain::plain_error(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    &format!("internal server error: {why}"),
                ),
            },
        },
    }
}

fn all(checks: &Checks, probe: Probe, query: Option<&str>) -> Response<Body> {
    let word = probe.name();
    let excluded: std::collections::BTreeSet<_> =
        pairs(query).filter(|(key, _)| key == "exclude").map(|(_, value)| value).collect();
    let mut unmatched = excluded.clone();
    let mut lines = String::new();
    let mut failed = Vec::new();
    for check in checks.of(probe) {
        let name = check.name.as_str();
        if excluded.contains(name) {
            unmatched.remove(name);
            let _ = writeln!(lines, "[+]{name} excluded: ok");
            continue;
        }
        match check.run() {
            Ok(()) => {
                let _ = writeln!(lines, "[+]{name} ok");
            }
            Err(why) => {
                // Why is for the log: the probe is open to everybody.
                let _ = writeln!(lines, "[-]{name} failed: reason withheld");
                failed.push(format!("{name}: {why}"));
            }
        }
    }
    if !unmatched.is_empty() {
        let names: Vec<String> = unmatched.iter().map(|name| quote(name)).collect();
        let _ = writeln!(
            lines,
            "warn: some health checks cannot be excluded: no matches for {}",
            names.join(", ")
        );
    }
    if !failed.is_empty() {
        tracing::debug!(probe = word, failed = failed.join("; "), "check failed");
        return plain::plain_error(StatusCode::INTERNAL_SERVER_ERROR, &format!("{lines}{word} check failed"));
    }
    if pairs(query).any(|(key, _)| key == "verbose") {
        plain::ok(format!("{lines}{word} check passed\n"))
    } else {
        plain::ok("ok")
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;
    use crate::readiness::Shown;

    async fn ask(checks: &Checks, path: &str, query: &str) -> (u16, String) {
        let (probe, name) = probe(path).unwrap();
        let response = answer(checks, probe, name, Some(query));
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn answers_in_kube_apiserver_s_words() {
        let checks = Checks::new();
        checks.add("ping", Shown::Everywhere, || Ok(()));
        let store = checks.latch("store", Shown::NotLive, "the file is locked");
        assert_eq!(ask(&checks, "/livez", "").await, (200, "ok".to_owned()));
        assert_eq!(
            ask(&checks, "/livez", "verbose").await,
            (200, "[+]ping ok\nlivez check passed\n".to_owned())
        );
        let failed = "[+]ping ok\n[-]store failed: reason withheld\nreadyz check failed\n";
        assert_eq!(ask(&checks, "/readyz", "").await, (500, failed.to_owned()));
        assert_eq!(ask(&checks, "/readyz/ping", "").await, (200, "ok".to_owned()));
        assert_eq!(
            ask(&checks, "/readyz/store", "").await,
            (500, "internal server error: the file is locked\n".to_owned())
        );
        assert_eq!(ask(&checks, "/livez/store", "").await.0, 404);
        let excluded = "[+]ping ok\n[+]store excluded: ok\n\
            warn: some health checks cannot be excluded: no matches for \"etcd\"\nhealthz check passed\n";
        assert_eq!(
            ask(&checks, "/healthz", "verbose&exclude=store&exclude=etcd").await,
            (200, excluded.to_owned())
        );
        store.release();
        assert_eq!(ask(&checks, "/readyz", "").await, (200, "ok".to_owned()));
        assert_eq!(probe("/healthzz"), None);
        assert_eq!(probe("/apis"), None);
    }
}
