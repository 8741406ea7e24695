//! The client against a hostile registry.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::hostile::{Hostile, answer, ok};
use super::repository::digest;
use super::*;

fn quick() -> Limits {
    Limits { backoff: Duration::from_millis(1), request: Duration::from_secs(10), ..Limits::default() }
}

const MANIFEST: &str = "/v2/lab/app/manifests/1";

async fn failure(answers: &[&str], limits: Limits) -> (Error, usize) {
    let hostile = Hostile::start(&[(MANIFEST, answers)]).await;
    let error = hostile.repository(limits, None).manifest("1").await.unwrap_err();
    (error, hostile.paths().iter().filter(|path| *path == MANIFEST).count())
}

#[tokio::test]
async fn what_passes_is_tried_again_and_what_stays_is_not() {
    let good = ok("{}");
    let busy =
        answer("429 Too Many Requests", "retry-after: 0\r\n", r#"{"errors":[{"code":"TOOMANYREQUESTS"}]}"#);
    let broken = answer("500 Internal Server Error", "", "");
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"half\":";
    for passing in [busy.as_str(), broken.as_str(), cut, ""] {
        let hostile = Hostile::start(&[(MANIFEST, &[passing, good.as_str()])]).await;
        let fetched = hostile.repository(quick(), None).manifest("1").await.unwrap();
        assert_eq!(&fetched.bytes[..], b"{}", "{passing}");
    }
    let (error, asked) = failure(&[&broken], quick()).await;
    assert_eq!(
        (error.to_string().as_str(), asked),
        ("received unexpected HTTP status: 500 Internal Server Error", 3)
    );
    let (error, _) = failure(&[&busy], quick()).await;
    assert_eq!(error.to_string(), "toomanyrequests: too many requests");
    let (error, _) = failure(&[cut], quick()).await;
    assert_eq!(error.to_string(), "unexpected EOF");
    let later = busy.replace("retry-after: 0", "retry-after: 86400");
    let (error, asked) = failure(&[&later], quick()).await;
    assert_eq!((error.to_string().as_str(), asked), ("toomanyrequests: too many requests", 1));
    let unknown = answer("404 Not Found", "", r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"gone"}]}"#);
    let (error, asked) = failure(&[&unknown], quick()).await;
    assert!(error.is("MANIFEST_UNKNOWN") && asked == 1, "{error}");
    assert_eq!(error.to_string(), "manifest unknown: gone");
    let html = answer("404 Not Found", "", "<html>");
    let (error, _) = failure(&[&html], quick()).await;
    assert_eq!(
        error.to_string(),
        r#"error parsing HTTP 404 response body: invalid character '<' looking for beginning of value: "<html>""#
    );
}

#[tokio::test]
async fn an_answer_that_never_ends_is_cut_by_time_and_one_that_is_too_long_by_size() {
    let limits = || Limits { request: Duration::from_millis(300), manifest: 10, ..quick() };
    let (error, asked) = failure(&["…"], limits()).await;
    assert!(
        error
            .to_string()
            .ends_with("context deadline exceeded (Client.Timeout exceeded while awaiting headers)"),
        "{error}"
    );
    assert_eq!(asked, 1);
    let (error, _) = failure(&["HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{…"], limits()).await;
    assert!(error.to_string().ends_with("while reading body)"), "{error}");
    let (error, asked) = failure(&[&ok("{\"a\":\"123456789\"}")], limits()).await;
    assert_eq!((error.to_string().as_str(), asked), ("the registry's answer is longer than 10 bytes", 1));
    // Without a length too.
    let chunks =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n20\r\n12345678901234567890123456789012\r\n…";
    let (error, _) = failure(&[chunks], limits()).await;
    assert_eq!(error.to_string(), "the registry's answer is longer than 10 bytes");
}

#[tokio::test]
async fn content_has_the_digest_that_it_was_asked_by() {
    let (right, wrong) = (digest(b"{}"), digest(b"other"));
    let manifest = |digest: &str| format!("/v2/lab/app/manifests/{digest}");
    let blob = format!("/v2/lab/app/blobs/{wrong}");
    let (good, other) = (ok("{}"), ok("{}"));
    let hostile = Hostile::start(&[
        (&manifest(&right), &[good.as_str()]),
        (&manifest(&wrong), &[other.as_str()]),
        (&blob, &[other.as_str()]),
    ])
    .await;
    let repository = hostile.repository(quick(), None);
    assert_eq!(repository.manifest(&right).await.unwrap().digest, right);
    let error = repository.manifest(&wrong).await.unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "content integrity error: the manifest retrieved with digest {wrong} does not match the digest \
             calculated from the content {right}"
        )
    );
    let error = repository.config(&wrong).await.unwrap_err().to_string();
    assert!(error.starts_with("content integrity error: the blob retrieved"), "{error}");
    for bad in ["", "sha256:../../x", "md5:1"] {
        assert_eq!(repository.config(bad).await.unwrap_err().to_string(), "invalid checksum digest format");
    }
}

#[tokio::test]
async fn a_token_goes_to_its_registry_only_and_a_password_to_the_token_server() {
    let elsewhere = Hostile::start(&[]).await;
    let redirect = answer(
        "307 Temporary Redirect",
        &format!("location: http://{}/blob?sig=s3cret\r\n", elsewhere.address),
        "",
    );
    let tokens = Hostile::start(&[("/token", &[&answer("200 OK", "", r#"{"token":"t0ken"}"#)])]).await;
    let challenge =
        format!("www-authenticate: Bearer realm=\"http://{}/token\",service=\"s\"\r\n", tokens.address);
    let ping = answer("401 Unauthorized", &challenge, "");
    let hostile = Hostile::start(&[("/v2/", &[&ping]), (MANIFEST, &[&redirect])]).await;
    let repository = hostile.repository(quick(), Some(Credentials::new("ci", "passw0rd")));
    repository.manifest("1").await.unwrap();
    assert_eq!(
        tokens.seen.lock().clone(),
        [(
            "/token?account=ci&scope=repository%3Alab%2Fapp%3Apull&service=s".to_owned(),
            "Basic Y2k6cGFzc3cwcmQ=".to_owned()
        )]
    );
    let asked = hostile.seen.lock().clone();
    assert_eq!(asked.last().unwrap().1, "Bearer t0ken");
    assert_eq!(elsewhere.seen.lock().clone(), [("/blob?sig=s3cret".to_owned(), String::new())]);
}

#[tokio::test]
async fn errors_carry_no_secret() {
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let redirect =
        answer("307 Temporary Redirect", &format!("location: http://{gone}/blob?sig=s3cret\r\n"), "");
    let (error, _) = failure(&[&redirect], quick()).await;
    assert_eq!(
        error.to_string(),
        format!("Get \"http://{gone}/blob\": dial tcp {gone}: connect: connection refused")
    );
    let redirect = answer("302 Found", "location: file:///etc/passwd\r\n", "");
    let (error, _) = failure(&[&redirect], quick()).await;
    assert!(error.to_string().ends_with("redirect cannot be followed"), "{error}");
    let local = answer("302 Found", "location: http://169.254.169.254/latest\r\n", "");
    let (error, _) = failure(&[&local], quick()).await;
    assert!(error.to_string().contains("link-local"), "{error}");
    let around = answer("302 Found", "location: /v2/lab/app/manifests/1\r\n", "");
    let (error, asked) = failure(&[&around], quick()).await;
    assert!(error.to_string().ends_with("stopped after 10 redirects") && asked == 11, "{error}");
    let refused = answer("401 Unauthorized", "", "nope");
    let ping = answer("401 Unauthorized", "www-authenticate: Basic realm=x\r\n", "");
    let hostile = Hostile::start(&[("/v2/", &[&ping]), (MANIFEST, &[&refused])]).await;
    let error = hostile
        .repository(quick(), Some(Credentials::new("ci", "passw0rd")))
        .manifest("1")
        .await
        .unwrap_err();
    assert!(error.is("UNAUTHORIZED"), "{error}");
    assert!(!format!("{error:?}").contains("passw0rd"));
    let error = hostile.repository(quick(), None).manifest("1").await.unwrap_err();
    assert_eq!(error.to_string(), "no basic auth credentials");
}

#[tokio::test]
async fn a_token_server_that_is_away_does_not_show_whose_pull_secret_it_was() {
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let challenge = format!("www-authenticate: Bearer realm=\"http://{gone}/token\"\r\n");
    let ping = answer("401 Unauthorized", &challenge, "");
    let hostile = Hostile::start(&[("/v2/", &[&ping])]).await;
    let repository = hostile.repository(quick(), Some(Credentials::new("robot$ci", "passw0rd")));
    let error = repository.manifest("1").await.unwrap_err().to_string();
    assert!(error.contains(&format!("Get \"http://{gone}/token\": dial tcp {gone}")), "{error}");
    assert!(!error.contains("robot"), "{error}");
}

#[tokio::test]
async fn no_metadata_service_is_asked() {
    let services = [
        "169.254.169.254",
        "[fd00:ec2::254]",
        "[fd20:ce::254]",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
    ];
    for address in services {
        let there = answer("302 Found", &format!("location: http://{address}/latest\r\n"), "");
        let (error, _) = failure(&[&there], Limits { connect: Duration::from_millis(50), ..quick() }).await;
        assert!(
            error.to_string().ends_with("no registry is on a link-local address or a metadata service's"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn what_a_redirect_finds_inside_is_not_shown() {
    let found = [
        answer("403 Forbidden", "", "s3cret"),
        answer("404 Not Found", "", r#"{"errors":[{"message":"s3cret"}]}"#),
        answer(
            "401 Unauthorized",
            "www-authenticate: Bearer error=\"invalid_token\",error_description=\"s3cret\"\r\n",
            "",
        ),
        ok("s3cret"),
        ok(r#"{"mediaType":"s3cret"}"#),
        ok(r#"{"config":"s3cret"}"#),
        answer("200 OK", "content-type: s3cret\r\n", "{}"),
    ];
    for found in found {
        let inside = Hostile::start(&[("/secret", &[&found])]).await;
        let location = format!("location: http://{}/secret\r\n", inside.address);
        let redirect = answer("307 Temporary Redirect", &location, "");
        let list = "/v2/lab/app/tags/list";
        let hostile = Hostile::start(&[(MANIFEST, &[&redirect]), (list, &[&redirect])]).await;
        let repository = hostile.repository(quick(), None);
        let error = match repository.manifest("1").await {
            Ok(fetched) => fetched.parse().unwrap_err(),
            Err(error) => error,
        };
        let unexpected = ["received unexpected HTTP status: 40", "the content is not what it should be"];
        let text = error.to_string();
        assert!(unexpected.iter().any(|start| text.starts_with(start)) && !text.contains("s3cret"), "{text}");
        if let Err(error) = repository.tags().await {
            let text = error.to_string();
            assert!(
                unexpected.iter().any(|start| text.starts_with(start)) && !text.contains("s3cret"),
                "{text}"
            );
        }
    }
    // The address of tokens may be anything too.
    for found in [answer("403 Forbidden", "", "s3cret"), answer("200 OK", "", "\"s3cret\"")] {
        let inside = Hostile::start(&[("/secret", &[&found])]).await;
        let challenge = format!("www-authenticate: Bearer realm=\"http://{}/secret\"\r\n", inside.address);
        let hostile = Hostile::start(&[("/v2/", &[&answer("401 Unauthorized", &challenge, "")])]).await;
        let error = hostile.repository(quick(), None).manifest("1").await.unwrap_err().to_string();
        assert!(!error.contains("s3cret"), "{error}");
    }
}

#[tokio::test]
async fn plain_http_is_for_the_insecure_only() {
    let hostile = Hostile::start(&[]).await;
    let client = Client::new(&Trust::default(), quick()).unwrap();
    let location = Location { registry: hostile.address.to_string(), path: "a".into(), insecure: false };
    let deadline = Instant::now() + Duration::from_secs(60);
    let error =
        Repository::new(client, location, None, deadline).manifest("1").await.unwrap_err().to_string();
    let url = format!("https://{}/v2/", hostile.address);
    assert_eq!(error, format!("Get \"{url}\": http: server gave HTTP response to HTTPS client"));
    assert!(hostile.paths().is_empty());
}

#[tokio::test]
async fn a_slow_registry_takes_no_place_of_another() {
    let limits = Limits { requests: 3, requests_of_host: 2, ..quick() };
    let client = Client::new(&Trust::default(), limits).unwrap();
    let of = |hostile: &Hostile| {
        let registry = hostile.address.to_string();
        let location = Location { registry, path: "lab/app".into(), insecure: true };
        Repository::new(Arc::clone(&client), location, None, Instant::now() + Duration::from_secs(60))
    };
    let (slow, quick) = (Hostile::start(&[(MANIFEST, &["…"])]).await, Hostile::start(&[]).await);
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let repository = of(&slow);
            tokio::spawn(async move { repository.manifest("1").await })
        })
        .collect();
    while slow.paths().iter().filter(|path| *path == MANIFEST).count() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // The slow one would hold all places for ten seconds.
    let answered = tokio::time::timeout(Duration::from_secs(5), of(&quick).manifest("1")).await;
    assert_eq!(&answered.unwrap().unwrap().bytes[..], b"");
    for task in waiting {
        task.abort();
    }
}

#[tokio::test]
async fn tags_come_page_by_page() {
    let list = "/v2/lab/app/tags/list";
    let next = "link: </v2/lab/app/tags/list?last=b&n=2>; rel=\"next\"\r\n";
    let (first, second) =
        (answer("200 OK", next, r#"{"tags":["a","b"]}"#), answer("200 OK", "", r#"{"tags":null}"#));
    let hostile = Hostile::start(&[(list, &[&first, &second])]).await;
    assert_eq!(hostile.repository(quick(), None).tags().await.unwrap(), ["a", "b"]);
    assert!(hostile.paths().iter().any(|path| path.ends_with("?last=b&n=2")));
    let away = answer("200 OK", "link: <http://evil.example/>; rel=\"next\"\r\n", r#"{"tags":[]}"#);
    let endless = Hostile::start(&[(list, &[&first])]).await;
    let repository = endless.repository(Limits { tag_pages: 3, ..quick() }, None);
    assert_eq!(repository.tags().await.unwrap_err().to_string(), "the registry has too many tags");
    let repository =
        endless.repository(Limits { all_tags: 2 * r#"{"tags":["a","b"]}"#.len(), ..quick() }, None);
    assert_eq!(repository.tags().await.unwrap_err().to_string(), "the registry has too many tags");
    assert_eq!(endless.paths().iter().filter(|path| path.starts_with(list)).count(), 6);
    let hostile = Hostile::start(&[(list, &[&away])]).await;
    let error = hostile.repository(quick(), None).tags().await.unwrap_err();
    assert_eq!(error.to_string(), "the link to the next tags leads elsewhere");
}

#[tokio::test]
async fn what_is_no_registry_is_told() {
    let hostile = Hostile::start(&[("/v2/", &[&answer("404 Not Found", "", "")])]).await;
    let error = hostile.repository(quick(), None).manifest("1").await.unwrap_err().to_string();
    let base = format!("http://{}", hostile.address);
    assert_eq!(error, format!("endpoint {base:?} does not support v2 API (got 404 Not Found)"));
}

/// A registry that speaks TLS with a certificate for `names`, and what to trust it by.
async fn over_tls(
    names: &[&str],
    years: (i32, i32),
) -> (SocketAddr, CertificateDer<'static>, JoinHandle<()>) {
    let mut authority = rcgen::CertificateParams::default();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    authority.distinguished_name.push(rcgen::DnType::CommonName, "test authority");
    let issuer_key = rcgen::KeyPair::generate().unwrap();
    let root = authority.self_signed(&issuer_key).unwrap();
    let issuer = rcgen::Issuer::from_params(&authority, &issuer_key);
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = rcgen::CertificateParams::new(names).unwrap();
    (params.not_before, params.not_after) =
        (rcgen::date_time_ymd(years.0, 1, 1), rcgen::date_time_ymd(years.1, 1, 1));
    let key = rcgen::KeyPair::generate().unwrap();
    let leaf = params.signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { return };
                    head.push(byte);
                }
                let _ = stream.write_all(ok("{}").as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    (address, root.der().clone(), task)
}

#[tokio::test]
async fn a_certificate_is_believed_by_its_authority_only() {
    let ask = async |address: SocketAddr, extra: Vec<CertificateDer<'static>>, insecure: bool| {
        let client = Client::new(&Trust { system: false, extra }, quick()).unwrap();
        let location =
            Location { registry: format!("localhost:{}", address.port()), path: "a".into(), insecure };
        let deadline = Instant::now() + Duration::from_secs(60);
        match Repository::new(client, location, None, deadline).manifest("1").await {
            Ok(fetched) => String::from_utf8_lossy(&fetched.bytes).into_owned(),
            Err(error) => error.to_string().split(": ").skip(1).collect::<Vec<_>>().join(": "),
        }
    };
    let failed = "tls: failed to verify certificate: x509: ";
    let (address, root, task) = over_tls(&["localhost"], (2020, 4000)).await;
    assert_eq!(ask(address, vec![root.clone()], false).await, "{}");
    assert_eq!(ask(address, vec![], false).await, format!("{failed}certificate signed by unknown authority"));
    assert_eq!(ask(address, vec![], true).await, "{}");
    task.abort();
    let (address, root, task) = over_tls(&["a.example", "b.example"], (2020, 4000)).await;
    let names = "certificate is valid for a.example, b.example, not localhost";
    assert_eq!(ask(address, vec![root.clone()], false).await, format!("{failed}{names}"));
    task.abort();
    let (address, root, task) = over_tls(&["localhost"], (2020, 2021)).await;
    let text = ask(address, vec![root], false).await;
    assert!(
        text.starts_with(&format!("{failed}certificate has expired or is not yet valid: current time ")),
        "{text}"
    );
    assert!(text.ends_with(" is after 2021-01-01T00:00:00Z"), "{text}");
    task.abort();
}
