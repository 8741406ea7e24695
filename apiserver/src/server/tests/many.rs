//! Many watches and requests over one HTTP/2 connection, as front proxies and informers have them.

use std::time::Duration;

use tokio::time::timeout;

use super::*;

fn watch() -> Request<Full<Bytes>> {
    get("/apis/route.openshift.io/v1/routes?watch=1")
}

#[tokio::test]
async fn hundreds_of_watches_on_one_connection_hold_up_no_request() {
    let world = start(|_| {}).await;
    let mut jane = world.as_user("jane").await;
    let mut watches = Vec::new();
    for _ in 0..300 {
        let open = timeout(Duration::from_secs(30), jane.send_request(watch())).await;
        watches.push(open.expect("a stream for each").unwrap());
    }
    assert_eq!(world.metrics.long_running.get(), 300);
    // Nobody has read an event yet.
    let requests: Vec<_> = (0..300).map(|_| tokio::spawn(jane.send_request(route("a")))).collect();
    for request in requests {
        let answer = timeout(Duration::from_secs(30), request).await.expect("it is answered");
        assert_eq!(text(answer.unwrap().unwrap()).await, "{\"groups\":1,\"user\":\"jane\"}\n".to_owned());
    }
    for watch in &mut watches {
        assert_eq!(watch.body_mut().frame().await.unwrap().unwrap().into_data().unwrap(), "event\n");
    }
    drop(watches);
    while world.metrics.long_running.get() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(jane.send_request(route("a")).await.unwrap().status(), 200);
}

#[tokio::test]
async fn more_than_the_connection_takes_waits_at_the_client_and_goes_on_when_others_end() {
    let world = start(|settings| settings.limits.streams = 100).await;
    let mut jane = world.as_user("jane").await;
    let mut watches: Vec<_> = Vec::new();
    for _ in 0..99 {
        watches.push(jane.send_request(watch()).await.unwrap());
    }
    assert_eq!(jane.send_request(route("a")).await.unwrap().status(), 200);
    watches.push(jane.send_request(watch()).await.unwrap());
    let more: Vec<_> = (0..50).map(|_| tokio::spawn(jane.send_request(route("a")))).collect();
    drop(watches.pop());
    for request in more {
        let answer = timeout(Duration::from_secs(30), request).await.expect("it gets its stream");
        assert_eq!(answer.unwrap().unwrap().status(), 200);
    }
}
