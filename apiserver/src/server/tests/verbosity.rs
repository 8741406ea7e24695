//! What `/debug/` answers to whom.

use super::*;

#[tokio::test]
async fn verbosity_is_set_by_who_may() {
    let world = start(|_| {}).await;
    let put = |level: &str| {
        let body = Full::from(level.to_owned());
        Request::put("https://localhost/debug/flags/v").body(body).unwrap()
    };
    let mut nobody = world.as_user("nobody").await;
    for path in ["/debug/flags/v", "/debug/flags", "/debug/pprof/profile"] {
        assert_eq!(nobody.send_request(get(path)).await.unwrap().status(), 403, "{path}");
    }
    assert_eq!(nobody.send_request(put("4")).await.unwrap().status(), 403);
    let mut jane = world.as_user("jane").await;
    for (level, code, says) in [
        ("4", 200, "successfully set klog.logging.verbosity to 4\n"),
        ("high", 400, "strconv.ParseUint: parsing \"high\": invalid syntax\n"),
    ] {
        let answer = jane.send_request(put(level)).await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["content-type"]),
            (code, &HeaderValue::from_static("text/plain"))
        );
        assert_eq!(text(answer).await, says);
    }
    assert_eq!(jane.send_request(put(&"4".repeat(5000))).await.unwrap().status(), 400);
    let other = jane.send_request(get("/debug/flags/v")).await.unwrap();
    assert_eq!((other.status().as_u16(), text(other).await), (406, "unsupported http method\n".to_owned()));
    assert!(text(jane.send_request(get("/debug/flags/")).await.unwrap()).await.starts_with("<html>"));
    assert_eq!(jane.send_request(get("/debug/pprof/profile")).await.unwrap().status(), 404);
}
