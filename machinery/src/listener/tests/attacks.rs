//! Clients that mean no good, or are broken, on the wire: whatever they do, the others are served.

use http_body_util::Full;
use tokio::io::AsyncWriteExt;

use super::*;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
/// `GET https://localhost/`, by the static table.
const GET: &[u8] = b"\x82\x87\x84\x41\x09localhost";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

impl Running {
    /// A connection on which the protocol has begun.
    async fn raw(&self) -> tokio_rustls::client::TlsStream<TcpStream> {
        let mut stream = self.connect("h2", false).await.into_inner();
        stream.write_all(PREFACE).await.unwrap();
        stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
        stream
    }

    async fn serves(&self) {
        let mut other = self.http2(false).await;
        let answer = other.send_request(get("/", 0));
        let answer = timeout(Duration::from_secs(10), answer).await.expect("others are served");
        assert_eq!(answer.unwrap().status(), 200);
    }
}

/// Sends `attack` again and again, for some megabytes; the server must have ended the connection by then.
async fn is_cut_off(running: &Running, first: Vec<u8>, attack: Vec<u8>) {
    let (mut read, mut write) = tokio::io::split(running.raw().await);
    let reader = tokio::spawn(async move {
        let mut all = Vec::new();
        let _ = read.read_to_end(&mut all).await;
        all
    });
    let writing = async {
        write.write_all(&first).await?;
        let burst = attack.repeat(16_384 / attack.len() + 1);
        for _ in 0..2_000 {
            write.write_all(&burst).await?;
        }
        write.flush().await
    };
    let cut = timeout(Duration::from_secs(30), writing).await.expect("it neither ends nor stops reading");
    assert!(cut.is_err(), "still listening");
    let _ = reader.await.unwrap();
    running.serves().await;
}

#[tokio::test]
async fn a_flood_of_continuations_is_cut_off() {
    let running = start(Limits::default()).await;
    // One whose headers are too long, and one that never says anything.
    let literal = [b"\x00\x01a\x7f\x80\x7e".as_slice(), &[b'x'; 16_255]].concat();
    is_cut_off(&running, frame(HEADERS, 1, 1, GET), frame(CONTINUATION, 0, 1, &literal)).await;
    is_cut_off(&running, frame(HEADERS, 1, 1, GET), frame(CONTINUATION, 0, 1, &[])).await;
}

#[tokio::test]
async fn requests_reset_at_once_leave_nothing_behind() {
    let running = start(Limits::default()).await;
    let (mut read, mut write) = tokio::io::split(running.raw().await);
    let reader = tokio::spawn(async move {
        let mut all = Vec::new();
        let _ = read.read_to_end(&mut all).await;
    });
    let mut burst = Vec::new();
    for stream in (1..40_000).step_by(2) {
        burst.extend(frame(HEADERS, 5, stream, GET));
        burst.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
    }
    // Cut off or served, but soon.
    let _ = timeout(Duration::from_secs(30), write.write_all(&burst)).await.expect("it is read");
    running.serves().await;
    drop(write);
    running.drain.start();
    running.done.await.unwrap();
    reader.await.unwrap();
}

#[tokio::test]
async fn frames_without_sense_and_pings_without_end_harm_nobody() {
    let running = start(Limits::default()).await;
    let mut raw = running.raw().await;
    raw.write_all(&frame(DATA, 0, 0, b"for no stream")).await.unwrap();
    let _ = timeout(Duration::from_secs(10), raw.read_to_end(&mut Vec::new())).await.expect("it is ended");
    // A client that asks for answers and takes none.
    let limits = Limits { write: Duration::from_millis(100), ..Limits::default() };
    let running = start(limits).await;
    let mut raw = running.raw().await;
    let pings = frame(PING, 0, 0, b"12345678").repeat(1_000);
    let flood = async { while raw.write_all(&pings).await.is_ok() {} };
    timeout(Duration::from_secs(30), flood).await.expect("it is cut off");
    running.serves().await;
}

#[tokio::test]
async fn bodies_that_nobody_reads_hold_up_no_other_on_the_connection() {
    let running = start(Limits::default()).await;
    let stream = running.connect("h2", false).await;
    let (mut sender, connection) = client2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let post = |path: &str| {
        let body = Full::new(Bytes::from(vec![b'x'; 1 << 20]));
        Request::post(format!("https://localhost{path}")).body(body).unwrap()
    };
    let mut stuck = Vec::new();
    for _ in 0..150 {
        sender.ready().await.unwrap();
        stuck.push(tokio::spawn(sender.send_request(post("/slow"))));
    }
    running.echo.slow_started.notified().await;
    for _ in 0..10 {
        let answer = timeout(Duration::from_secs(30), sender.send_request(post("/body"))).await;
        assert_eq!(text(answer.expect("it gets through").unwrap()).await, "1048576");
    }
    stuck.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn who_does_not_read_is_cut_off_over_both_protocols() {
    let limits = Limits { write: Duration::from_millis(100), ..Limits::default() };
    let running = start(limits).await;
    let mut one = running.connect("http/1.1", false).await.into_inner();
    one.write_all(b"GET /watch HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut two = running.raw().await;
    // The largest windows there are, so that nothing but the socket holds the answer up.
    let largest = [0, 4, 0x7f, 0xff, 0xff, 0xff];
    two.write_all(&frame(SETTINGS, 0, 0, &largest)).await.unwrap();
    two.write_all(&frame(8, 0, 0, &0x7fff_0000_u32.to_be_bytes())).await.unwrap();
    let watch = [b"\x82\x87\x41\x09localhost\x04\x06".as_slice(), b"/watch"].concat();
    two.write_all(&frame(HEADERS, 5, 1, &watch)).await.unwrap();
    two.flush().await.unwrap();
    running.serves().await;
    // Both are given up without being read: nothing is left for the drain to wait for.
    while running.echo.connections.load(Ordering::SeqCst) < 3 {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    running.drain.start();
    timeout(Duration::from_secs(10), running.done).await.expect("both connections were ended").unwrap();
    drop((one, two));
}
