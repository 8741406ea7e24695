//! Secrets of clients, and service accounts that are clients.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::*;
use crate::oauth::fake::Fake;

async fn find(fake: &Arc<Fake>, id: &str) -> Result<Option<Client>, ClientError> {
    let api: Arc<dyn Api> = Arc::clone(fake) as _;
    Client::find(api.as_ref(), id).await
}

async fn has_secret(fake: &Arc<Fake>, client: &Client, secret: &str) -> bool {
    let api: Arc<dyn Api> = Arc::clone(fake) as _;
    client.has_secret(api.as_ref(), secret).await
}

fn jwt(audience: &str) -> String {
    let encode = |text: String| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.{}", encode("{}".to_owned()), encode(format!("{{\"aud\":[\"{audience}\"]}}")), "c2ln")
}

#[tokio::test]
async fn secrets_are_compared() {
    let stored = json!({"secret": "the-first", "additionalSecrets": ["two"], "grantMethod": "prompt", "redirectURIs": ["https://x"]});
    let fake = Arc::new(Fake::with(&[
        ("/apis/oauth.openshift.io/v1/oauthclients/web", stored),
        ("/apis/oauth.openshift.io/v1/oauthclients/public", json!({"respondWithChallenges": true})),
        ("/apis/oauth.openshift.io/v1/oauthclients/odd", json!({"additionalSecrets": ["two"]})),
    ]));
    let web = find(&fake, "web").await.unwrap().unwrap();
    assert_eq!((web.grant, web.challenges, web.redirect_uris.len()), (GrantMethod::Prompt, false, 1));
    for (secret, fits) in
        [("the-first", true), ("two", true), ("", false), ("three", false), ("the-firstx", false)]
    {
        assert_eq!(has_secret(&fake, &web, secret).await, fits, "{secret}");
    }
    let public = find(&fake, "public").await.unwrap().unwrap();
    assert!(public.challenges && public.grant == GrantMethod::Deny);
    assert!(has_secret(&fake, &public, "").await && !has_secret(&fake, &public, "x").await);
    let odd = find(&fake, "odd").await.unwrap().unwrap();
    assert!(!has_secret(&fake, &odd, "").await, "who has a secret must know it");
    assert!(!format!("{web:?}").contains("the-first"));
    assert!(find(&fake, "nobody").await.unwrap().is_none());
    assert!(find(&fake, "../x").await.unwrap().is_none());
    assert!(matches!(find(&fake, "").await, Err(ClientError::Nameless)));
}

#[tokio::test]
async fn a_service_account_proves_itself_by_its_token() {
    let id = "system:serviceaccount:ns:proxy";
    let annotations = json!({
        "serviceaccounts.openshift.io/oauth-redirecturi.a": "https://a.example/cb",
        "serviceaccounts.openshift.io/oauth-redirectreference.b":
            "{\"kind\":\"OAuthRedirectReference\",\"apiVersion\":\"v1\",\"reference\":{\"kind\":\"Route\",\"name\":\"web\"}}",
        "serviceaccounts.openshift.io/oauth-want-challenges": "true",
    });
    let route = json!({"spec": {"tls": {"termination": "edge"}}, "status": {"ingress": [
        {"host": "web.example", "conditions": [{"type": "Admitted", "status": "True"}]}]}});
    let account = json!({"metadata": {"name": "proxy", "namespace": "ns", "annotations": annotations}});
    let fake = Arc::new(Fake::with(&[
        ("/api/v1/namespaces/ns/serviceaccounts/proxy", account),
        ("/apis/route.openshift.io/v1/namespaces/ns/routes/web", route),
    ]));
    let client = find(&fake, id).await.unwrap().unwrap();
    assert_eq!(client.redirect_uris, ["https://a.example/cb", "https://web.example"]);
    assert!(client.challenges && client.grant == GrantMethod::Prompt);
    for (scope, may) in
        [("user:info", true), ("role:admin:ns:!", true), ("user:full", false), ("role:admin:other", false)]
    {
        assert_eq!(client.may_ask_for(&[scope.to_owned()]).is_ok(), may, "{scope}");
    }
    fake.tokens.lock().insert(jwt("own"), id.to_owned());
    fake.tokens.lock().insert(jwt("other"), "system:serviceaccount:ns:other".to_owned());
    assert!(has_secret(&fake, &client, &jwt("own")).await);
    for wrong in [String::new(), "x".to_owned(), jwt("other"), jwt("nobody's")] {
        assert!(!has_secret(&fake, &client, &wrong).await, "{wrong}");
    }
    // A token of another client is no way in either, whatever it says.
    assert!(find(&fake, "system:serviceaccount:ns:gone").await.unwrap().is_none());
}

#[tokio::test]
async fn a_service_account_without_redirects_is_told() {
    let account = json!({"metadata": {"name": "bare", "namespace": "ns"}});
    let fake = Arc::new(Fake::with(&[("/api/v1/namespaces/ns/serviceaccounts/bare", account)]));
    let error = find(&fake, "system:serviceaccount:ns:bare").await.unwrap_err();
    let text = "system:serviceaccount:ns:bare has no redirectURIs; set \
        serviceaccounts.openshift.io/oauth-redirecturi.<some-value>=<redirect> or create a dynamic URI using \
        serviceaccounts.openshift.io/oauth-redirectreference.<some-value>=<reference>";
    assert_eq!(error.to_string(), text);
    let events = fake.all("events");
    assert_eq!(events[0]["reason"], "NoSAOAuthRedirectURIs");
    assert_eq!(events[0]["involvedObject"]["name"], "bare");
    // Whoever asks again and again, and that is anybody, leaves no more.
    for _ in 0..3 {
        assert!(find(&fake, "system:serviceaccount:ns:bare").await.is_err());
    }
    assert_eq!(fake.all("events").len(), 1);
    assert!(events[0]["metadata"]["name"].as_str().unwrap().starts_with("bare."));
}
