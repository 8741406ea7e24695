//! Many requests at a time, slow ones, and the end of the server.

use super::*;

#[tokio::test]
async fn the_time_of_a_request_is_limited_also_while_it_waits_for_its_turn() {
    let world = start(|settings| {
        settings.max_in_flight = 1;
        settings.request_time = Duration::from_secs(2);
    })
    .await;
    let mut jane = world.as_user("jane").await;
    let slow = tokio::spawn(jane.send_request(route("slow")));
    drop(world.echo.started.acquire().await);
    let turned = jane.send_request(route("a?timeout=40ms")).await.unwrap();
    assert_eq!(turned.status(), 429, "it waits for a part of its time only");
    let watch =
        jane.send_request(get("/apis/route.openshift.io/v1/routes?watch=1&timeout=1ns")).await.unwrap();
    assert_eq!(watch.status(), 200, "a watch has no such time");
    assert_eq!(slow.await.unwrap().unwrap().status(), 504);
    assert_eq!(
        jane.send_request(route("a?timeout=1h")).await.unwrap().status(),
        200,
        "the place is free again"
    );
}

#[tokio::test]
async fn too_much_at_a_time_is_429_but_not_for_masters_probes_and_watches() {
    let world = start(|settings| {
        settings.max_in_flight = 1;
        settings.max_watches = 1;
    })
    .await;
    let mut jane = world.as_user("jane").await;
    let slow = jane.send_request(route("slow"));
    let slow = tokio::spawn(slow);
    drop(world.echo.started.acquire().await);
    let full = jane.send_request(route("a?timeout=40ms")).await.unwrap();
    assert_eq!((full.status().as_u16(), full.headers()["retry-after"].clone()), (429, "1".parse().unwrap()));
    assert_eq!(text(full).await, "Too many requests, please try again later.\n");
    assert_eq!(world.metrics.dropped.get(), 1);
    let master = world.clients.client("root", &["system:masters"]);
    assert_eq!(world.http1(Some(&master)).await.send_request(route("a")).await.unwrap().status(), 200);
    assert_eq!(jane.send_request(get("/livez")).await.unwrap().status(), 200);
    let watch = || get("/apis/route.openshift.io/v1/routes?watch=true");
    let mut open = jane.send_request(watch()).await.unwrap();
    assert_eq!(open.status(), 200);
    assert_eq!(open.body_mut().frame().await.unwrap().unwrap().into_data().unwrap(), "event\n");
    assert_eq!(jane.send_request(watch()).await.unwrap().status(), 429);
    let waits = tokio::spawn(jane.send_request(route("a")));
    world.echo.go.add_permits(1);
    assert_eq!(slow.await.unwrap().unwrap().status(), 200);
    assert_eq!(waits.await.unwrap().unwrap().status(), 200, "it got its turn");
}

#[tokio::test]
async fn one_hot_user_does_not_starve_another() {
    let world = start(|settings| settings.max_in_flight = 100).await;
    let mut hot = world.as_user("hot").await;
    let _hundreds: Vec<_> = (0..250).map(|_| tokio::spawn(hot.send_request(route("slow")))).collect();
    drop(world.echo.started.acquire_many(76).await);
    let mut cold = world.as_user("cold").await;
    for _ in 0..100 {
        assert_eq!(cold.send_request(route("a")).await.unwrap().status(), 200);
    }
    assert_eq!(world.metrics.dropped.get(), 0);
    // The same over the one connection on which the front proxy brings everybody.
    let mut proxy = world.http2(Some(&world.proxy.client("front-proxy-client", &[]))).await;
    let by = |user: &'static str, name: &str| {
        let mut request = route(name);
        request.headers_mut().insert("x-remote-user", HeaderValue::from_static(user));
        request
    };
    let _more: Vec<_> = (0..400).map(|_| tokio::spawn(proxy.send_request(by("hotter", "slow")))).collect();
    for _ in 0..100 {
        assert_eq!(proxy.send_request(by("cold", "a")).await.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn draining_ends_watches_cleanly_and_lets_requests_finish() {
    let world = start(|_| {}).await;
    let (mut one, mut two) =
        (world.http1(Some(&world.clients.client("jane", &[]))).await, world.as_user("jane").await);
    let mut watches = vec![
        one.send_request(get("/apis/route.openshift.io/v1/routes?watch=1")).await.unwrap(),
        two.send_request(get("/apis/route.openshift.io/v1/routes?watch=1")).await.unwrap(),
    ];
    for watch in &mut watches {
        watch.body_mut().frame().await.unwrap().unwrap();
    }
    let slow = tokio::spawn(two.send_request(route("slow")));
    drop(world.echo.started.acquire().await);
    world.drain.start();
    for watch in watches {
        assert_eq!(text(watch).await, "", "a clean end");
    }
    world.echo.go.add_permits(1);
    assert_eq!(slow.await.unwrap().unwrap().status(), 200);
    world.done.await.unwrap();
}
