//! What the audit log says of requests, from the wire to the file.

use std::path::PathBuf;

use super::*;

const POLICY: &str = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [
    {level: None, nonResourceURLs: [/livez]}, {level: RequestResponse}]}";

struct Audited {
    world: World,
    log: Arc<Log>,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

async fn audited() -> Audited {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let log = Log::open(&path).unwrap();
    let world = start_audited(|_| {}, Some((Policy::parse(POLICY).unwrap(), Arc::clone(&log)))).await;
    Audited { world, log, path, _folder: folder }
}

impl Audited {
    /// The events of a request in the order in which they came, when there are so many.
    async fn events(&self, id: &str, count: usize) -> Vec<Value> {
        let read = async {
            loop {
                let text = std::fs::read_to_string(&self.path).unwrap();
                let whole = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
                let events: Vec<Value> = whole.filter(|event| event["auditID"] == id).collect();
                if events.len() >= count {
                    return events;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let events =
            tokio::time::timeout(Duration::from_secs(10), read).await.expect("the events are written");
        assert_eq!(events.len(), count, "{events:#?}");
        events
    }
}

fn with_id(mut request: Request<Full<Bytes>>, id: &'static str) -> Request<Full<Bytes>> {
    request.headers_mut().insert("audit-id", HeaderValue::from_static(id));
    request
}

fn stages(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["stage"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn every_request_has_its_events_however_it_ends() {
    let audited = audited().await;
    let mut jane = audited.world.as_user("jane").await;
    assert_eq!(jane.send_request(with_id(get("/livez"), "probe")).await.unwrap().status(), 200);
    jane.send_request(with_id(route("a"), "good")).await.unwrap();
    let events = audited.events("good", 2).await;
    assert_eq!(stages(&events), ["RequestReceived", "ResponseComplete"]);
    assert_eq!(events[0]["user"]["username"], "jane");
    assert_eq!(events[0].get("responseStatus"), None);
    assert_eq!(events[1]["responseStatus"], json!({"metadata": {}, "code": 200}));
    let annotations = json!({"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""});
    assert_eq!(events[1]["annotations"], annotations);
    assert_eq!(events[1]["sourceIPs"], json!(["127.0.0.1"]));

    let mut nobody = audited.world.as_user("nobody").await;
    nobody.send_request(with_id(route("a"), "denied")).await.unwrap();
    let events = audited.events("denied", 2).await;
    assert_eq!(events[1]["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!(events[1]["annotations"]["authorization.k8s.io/reason"], "no rule");
    assert_eq!(events[1]["responseStatus"]["reason"], "Forbidden");
    assert_eq!(events[1]["responseObject"]["kind"], "Status");

    jane.send_request(with_id(route("panic"), "panics")).await.unwrap();
    let events = audited.events("panics", 2).await;
    assert_eq!(stages(&events), ["RequestReceived", "Panic"]);
    assert_eq!(events[1]["responseStatus"]["message"], "APIServer panic'd: as the test wants");

    jane.send_request(with_id(route("forever?timeout=10ms"), "late")).await.unwrap();
    assert_eq!(audited.events("late", 2).await[1]["responseStatus"]["code"], 504);

    // A client that hides its tracks by going away.
    let slow = tokio::spawn(jane.send_request(with_id(route("forever"), "gone")));
    audited.events("gone", 1).await;
    slow.abort();
    assert!(slow.await.is_err());
    drop(jane);
    let events = audited.events("gone", 2).await;
    assert_eq!(events[1]["responseStatus"]["message"], "Connection closed early");

    let stranger = audited.world.proxy.client("stranger", &[]);
    let mut stranger = audited.world.http2(Some(&stranger)).await;
    stranger.send_request(with_id(route("a"), "stranger")).await.unwrap();
    let events = audited.events("stranger", 1).await;
    assert_eq!((stages(&events), &events[0]["user"]), (vec!["ResponseStarted"], &json!({})));
    let message = "Authentication failed, attempted: x509";
    assert_eq!(events[0]["responseStatus"], json!({"metadata": {}, "message": message, "code": 401}));
    audited.log.close();
    audited.events("probe", 0).await;
    assert_eq!(audited.world.metrics.text().matches("apiserver_audit_event_total").count(), 1);
}

#[tokio::test]
async fn a_watch_has_a_beginning_and_an_end_and_impersonation_names_both() {
    let audited = audited().await;
    let mut boss = audited.world.as_user("boss").await;
    let mut request = with_id(get("/apis/route.openshift.io/v1/routes?watch=1"), "watch");
    request.headers_mut().insert("impersonate-user", HeaderValue::from_static("jane"));
    let mut watch = boss.send_request(request).await.unwrap();
    watch.body_mut().frame().await.unwrap().unwrap();
    let events = audited.events("watch", 2).await;
    assert_eq!(stages(&events), ["RequestReceived", "ResponseStarted"]);
    assert_eq!(events[1]["user"]["username"], "boss");
    assert_eq!(events[1]["impersonatedUser"]["username"], "jane");
    assert_eq!(events[1]["verb"], "watch");
    drop(watch);
    assert_eq!(stages(&audited.events("watch", 3).await)[2], "ResponseComplete");
}
