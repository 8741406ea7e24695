//! A TokenReview is answered through the shim byte for byte as without it, whatever token, audiences, encoding and caller.

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use http::header::{ACCEPT, HeaderValue};
use http::{HeaderMap, Method};
use picoshift_tests::eventually::eventually;
use picoshift_tests::http::{Answer, Http};
use picoshift_tests::objects::unique;
use picoshift_tests::shim::Shim;
use picoshift_tests::tls::Protocol;
use picoshift_tests::tokens::Token;
use picoshift_tests::{Actor, ControlPlane};
use serde_json::{Value, json};

use crate::support::{assert_forbidden, new_namespace};

const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// What is sent, and what is accepted.
const ENCODINGS: [(&str, &str); 4] = [(JSON, JSON), (PROTOBUF, PROTOBUF), (JSON, PROTOBUF), (PROTOBUF, JSON)];
/// Answers hold the second in which they were made: two are alike if no second begins between them.
const ATTEMPTS: usize = 10;

/// A token that is to be reviewed, and for whom.
#[derive(Debug, Clone, Copy)]
struct Question<'a> {
    token: &'a str,
    audiences: &'a [&'a str],
}

impl Question<'_> {
    fn body(&self, content_type: &str) -> anyhow::Result<Bytes> {
        if content_type == PROTOBUF {
            return Ok(self.message());
        }
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": self.token, "audiences": self.audiences}});
        Ok(serde_json::to_vec(&review)?.into())
    }

    /// The same in protobuf, in its envelope.
    fn message(&self) -> Bytes {
        let audiences = self.audiences.iter().flat_map(|audience| field(2, audience.as_bytes()));
        let spec: Vec<u8> = field(1, self.token.as_bytes()).into_iter().chain(audiences).collect();
        let kind = [field(1, b"authentication.k8s.io/v1"), field(2, b"TokenReview")].concat();
        [b"k8s\0".to_vec(), field(1, &kind), field(2, &field(2, &spec))].concat().into()
    }
}

/// A field of bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut length = content.len();
    while length > 0x7f {
        field.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    field.push((length & 0x7f) as u8);
    field.extend(content);
    field
}

async fn ask(http: &Http, question: Question<'_>, encoding: (&'static str, &str)) -> anyhow::Result<Answer> {
    let mut request = http.request(Method::POST, REVIEWS, Some(encoding.0), question.body(encoding.0)?)?;
    request.headers_mut().insert(ACCEPT, HeaderValue::from_str(encoding.1)?);
    http.send(request).await
}

/// The headers without those that name one request.
fn lasting(answer: &Answer) -> HeaderMap {
    let mut headers = answer.headers.clone();
    for name in ["date", "audit-id"] {
        headers.remove(name);
    }
    headers
}

/// Fails unless both answer alike in every encoding; gives the answer in JSON.
async fn alike(through: &Http, behind: &Http, question: Question<'_>) -> anyhow::Result<Answer> {
    let mut first = None;
    'encodings: for encoding in ENCODINGS {
        let mut different = None;
        for _ in 0..ATTEMPTS {
            let (one, other) =
                (ask(through, question, encoding).await?, ask(behind, question, encoding).await?);
            let parts = |answer: &Answer| (answer.status, lasting(answer), answer.body.clone());
            if parts(&one) == parts(&other) {
                ensure!(one.status == 403 || one.headers["content-type"] == encoding.1, "{:?}", one.headers);
                first.get_or_insert(one);
                continue 'encodings;
            }
            different = Some((parts(&one), parts(&other)));
        }
        bail!("{encoding:?}, {:?}: {different:?}", question.audiences);
    }
    first.context("no encoding")
}

/// A service account in a namespace, by a token for these audiences.
async fn account(admin: &Actor, namespace: &str, name: &str, audiences: &[&str]) -> anyhow::Result<String> {
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    let made = admin.api.post(&accounts, &json!({"metadata": {"name": name}})).await?;
    ensure!([201, 409].contains(&made.status.as_u16()), "{}", made.text());
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"audiences": audiences}});
    let answer = admin.api.post(&format!("{accounts}/{name}/token"), &request).await?.expect_code(201)?;
    Ok(answer["status"]["token"].as_str().context("no token")?.to_owned())
}

/// Lets a service account review tokens, as istiod's may.
async fn let_review(admin: &Actor, namespace: &str, name: &str) -> anyhow::Result<()> {
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": unique("reviews")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:auth-delegator"},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": name}]});
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    admin.api.post(path, &binding).await?.expect_code(201)?;
    Ok(())
}

fn bearer(http: &Http, token: &str) -> anyhow::Result<Http> {
    http.clone().with_header("Authorization", &format!("Bearer {token}"))
}

/// Waits until kube-apiserver, which remembers tokens, knows of the end of one.
async fn expired(admin: &Actor) -> anyhow::Result<String> {
    let token = Token::issue(admin, &unique("late"), &json!({"expiresIn": 1})).await?.raw;
    let question = Question { token: &token, audiences: &[] };
    eventually("the token expires", 20, async || {
        let status = ask(&admin.api, question, (JSON, JSON)).await?.expect_code(201)?["status"].clone();
        Ok(if status.get("authenticated").is_none() { Ok(()) } else { Err(status.to_string()) })
    })
    .await?;
    Ok(token)
}

#[tokio::test]
async fn token_reviews_are_the_same_through_the_shim() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (shim, admin) = (Shim::start(&plane, &[]).await?, plane.admin()?);
    let namespace = new_namespace(&admin, "reviews").await?;
    let plain = account(&admin, &namespace, "plain", &[]).await?;
    let proxy = account(&admin, &namespace, "proxy", &["istio-ca"]).await?;
    let both = account(&admin, &namespace, "proxy", &["istio-ca", ISSUER]).await?;
    let istiod = account(&admin, &namespace, "istiod", &[]).await?;
    let_review(&admin, &namespace, "istiod").await?;
    let opaque = Token::issue(&admin, &unique("opal"), &json!({})).await?.raw;
    let late = expired(&admin).await?;
    // Each token, and for which audiences it is good: its own, or kube-apiserver's when none is asked for.
    let no = &[][..];
    let questions = [
        (plain.as_str(), [true, false, true, false]),
        (proxy.as_str(), [false, true, true, false]),
        (both.as_str(), [true, true, true, false]),
        (opaque.as_str(), [true, false, true, false]),
        (late.as_str(), [false; 4]),
        ("sha256~of-nobody", [false; 4]),
        ("no-token", [false; 4]),
    ];
    let audiences = [no, &["istio-ca"][..], &["istio-ca", ISSUER][..], &["elsewhere"][..]];
    let master = plane.sign("reviewer", Some("system:masters"))?;
    let nobody = (shim.client(None, Protocol::Http1)?, shim.behind(None)?);
    let callers = [
        (shim.client(Some(&master), Protocol::Http2)?, shim.behind(Some(&master))?),
        (bearer(&nobody.0, &istiod)?, bearer(&nobody.1, &istiod)?),
    ];
    // RBAC learns of the binding in a moment.
    eventually("istiod may review", 20, async || {
        let answer = ask(&callers[1].1, Question { token: &proxy, audiences: no }, (JSON, JSON)).await?;
        Ok(if answer.status == 201 { Ok(()) } else { Err(answer.text()) })
    })
    .await?;
    for (through, behind) in &callers {
        for (token, good) in questions {
            for (audiences, good) in audiences.into_iter().zip(good) {
                let answer = alike(through, behind, Question { token, audiences }).await?;
                let status = answer.expect_code(201)?["status"].clone();
                assert_eq!(
                    status.get("authenticated"),
                    good.then_some(&Value::Bool(true)),
                    "{audiences:?}: {status}"
                );
            }
        }
        for token in ["", " "] {
            alike(through, behind, Question { token, audiences: no }).await?;
        }
    }
    // What istiod looks at.
    let question = Question { token: &proxy, audiences: &["istio-ca"] };
    let status = alike(&callers[1].0, &callers[1].1, question).await?.expect_code(201)?["status"].clone();
    assert_eq!(status["audiences"], json!(["istio-ca"]));
    assert_eq!(status["user"]["username"], format!("system:serviceaccount:{namespace}:proxy"));
    let groups = json!([
        "system:serviceaccounts",
        format!("system:serviceaccounts:{namespace}"),
        "system:authenticated"
    ]);
    assert_eq!(status["user"]["groups"], groups);
    // Who may not review is told so in the same words, and a token for others does not log in.
    let (through, behind) = (bearer(&nobody.0, &plain)?, bearer(&nobody.1, &plain)?);
    let refused = alike(&through, &behind, question).await?.expect_code(403)?;
    assert_forbidden(&refused, &format!("system:serviceaccount:{namespace}:plain"));
    let (through, behind) = (bearer(&nobody.0, &proxy)?, bearer(&nobody.1, &proxy)?);
    alike(&through, &behind, question).await?.expect_code(401)?;
    Ok(())
}
