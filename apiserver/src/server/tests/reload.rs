//! Certificates and authorities are replaced while requests are under way: none of them notices.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;

/// The ConfigMap with the authorities of both sides.
fn bundles(clients: &[&Authority], proxies: &[&Authority]) -> BTreeMap<String, String> {
    let bundle = |authorities: &[&Authority]| -> String {
        authorities.iter().map(|authority| authority.pem.as_str()).collect()
    };
    let mut map = config_map(clients[0], proxies[0]);
    map.insert("client-ca-file".to_owned(), bundle(clients));
    map.insert("requestheader-client-ca-file".to_owned(), bundle(proxies));
    map
}

impl World {
    fn trust(&self, clients: &[&Authority], proxies: &[&Authority]) {
        let map = bundles(clients, proxies);
        let new = ExtensionConfig::parse(&map, &self.config.load()).unwrap();
        self.config.store(Arc::new(new));
    }

    /// Serves another certificate, which clients believe already.
    fn serve(&self, pair: &Pair) {
        pair.write(&self.files);
        assert!(self.certificate.reload_if_changed().unwrap());
    }
}

fn proxied(name: &str) -> Request<Full<Bytes>> {
    let mut request = route(name);
    request.headers_mut().insert("x-remote-user", HeaderValue::from_static("jane"));
    request
}

#[tokio::test]
async fn hundreds_of_requests_in_flight_survive_new_certificates_and_authorities() {
    let world = start(|_| {}).await;
    let (clients, proxies) = (Authority::new("new clients"), Authority::new("new front proxies"));
    let mut jane = world.as_user("jane").await;
    let mut proxy = world.http2(Some(&world.proxy.client("front-proxy-client", &[]))).await;
    let slow: Vec<_> = (0..200)
        .flat_map(|_| {
            [
                tokio::spawn(jane.send_request(route("slow"))),
                tokio::spawn(proxy.send_request(proxied("slow"))),
            ]
        })
        .collect();
    drop(world.echo.started.acquire_many(400).await);

    world.trust(&[&world.clients, &clients], &[&world.proxy, &proxies]);
    let pair = Pair::new();
    world.serving.lock().push(pair.certificate());
    world.serve(&pair);
    // Those who have not changed yet go on, on their connections and on new ones; and so do those who have.
    let new_proxy_certificate = proxies.client("front-proxy-client", &[]);
    for (user, proxy) in [
        (&world.clients.client("jane", &[]), &world.proxy.client("front-proxy-client", &[])),
        (&clients.client("jane", &[]), &new_proxy_certificate),
    ] {
        assert_eq!(jane.send_request(route("a")).await.unwrap().status(), 200);
        let user = world.http1(Some(user)).await.send_request(route("a")).await.unwrap();
        assert_eq!(value(user).await["user"], "jane");
        let fronted = world.http2(Some(proxy)).await.send_request(proxied("a")).await.unwrap();
        assert_eq!(value(fronted).await["user"], "jane");
    }

    world.trust(&[&clients], &[&proxies]);
    world.serving.lock().remove(0);
    assert_eq!(jane.send_request(route("a")).await.unwrap().status(), 401, "its authority is gone");
    assert_eq!(proxy.send_request(proxied("a")).await.unwrap().status(), 401);
    let mut proxy = world.http2(Some(&new_proxy_certificate)).await;
    assert_eq!(proxy.send_request(proxied("a")).await.unwrap().status(), 200);
    // Those that were under way do not notice.
    world.echo.go.add_permits(400);
    for request in slow {
        assert_eq!(request.await.unwrap().unwrap().status(), 200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_while_everything_is_replaced_again_and_again() {
    let world = Arc::new(start(|_| {}).await);
    let pairs: Vec<Pair> = (0..20).map(|_| Pair::new()).collect();
    world.serving.lock().extend(pairs.iter().map(Pair::certificate));
    let (done, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..8)
        .map(|n| {
            let (world, done, answered) = (Arc::clone(&world), Arc::clone(&done), Arc::clone(&answered));
            let (user, proxy) =
                (world.clients.client("jane", &[]), world.proxy.client("front-proxy-client", &[]));
            tokio::spawn(async move {
                let certificate = if n % 2 == 0 { &user } else { &proxy };
                let mut kept = world.http2(Some(certificate)).await;
                while !done.load(Ordering::Acquire) {
                    let mut fresh = world.http1(Some(certificate)).await;
                    for _ in 0..10 {
                        let answer = kept.send_request(proxied("a")).await.unwrap();
                        assert_eq!(value(answer).await["user"], "jane");
                    }
                    assert_eq!(fresh.send_request(proxied("a")).await.unwrap().status(), 200);
                    answered.fetch_add(11, Ordering::AcqRel);
                }
            })
        })
        .collect();
    let (other_clients, other_proxies) = (Authority::new("other"), Authority::new("other"));
    for (round, pair) in pairs.iter().enumerate() {
        let before = answered.load(Ordering::Acquire);
        world.serve(pair);
        if round % 2 == 0 {
            world.trust(&[&other_clients, &world.clients], &[&other_proxies, &world.proxy]);
        } else {
            world.trust(&[&world.clients], &[&world.proxy]);
        }
        while answered.load(Ordering::Acquire) < before + 22 && clients.iter().all(|c| !c.is_finished()) {
            tokio::task::yield_now().await;
        }
    }
    done.store(true, Ordering::Release);
    for client in clients {
        client.await.expect("none of its requests failed");
    }
    assert!(answered.load(Ordering::Acquire) >= 400);
}
