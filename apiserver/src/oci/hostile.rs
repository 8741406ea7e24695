//! A server for tests that sends exactly what a test wants.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Client, Credentials, Limits, Location, Repository, Trust};

/// What is sent for a path, one after the other; the last one for ever.
type Script = HashMap<String, Vec<String>>;

pub(crate) struct Hostile {
    pub(crate) address: SocketAddr,
    /// Path and `Authorization` of each request.
    pub(crate) seen: Arc<Mutex<Vec<(String, String)>>>,
    task: JoinHandle<()>,
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Hostile {
    pub(crate) async fn start(script: &[(&str, &[&str])]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let script: Script = script
            .iter()
            .map(|(path, answers)| ((*path).to_owned(), answers.iter().map(|a| (*a).to_owned()).collect()))
            .collect();
        let (script, log) = (Arc::new(Mutex::new(script)), Arc::clone(&seen));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&log)));
            }
        });
        Self { address, seen, task }
    }

    pub(super) fn repository(&self, limits: Limits, credentials: Option<Credentials>) -> Repository {
        let client = Client::new(&Trust::default(), limits).unwrap();
        let location =
            Location { registry: self.address.to_string(), path: "lab/app".into(), insecure: true };
        Repository::new(client, location, credentials, Instant::now() + Duration::from_secs(60))
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.seen.lock().iter().map(|(path, _)| path.clone()).collect()
    }
}

/// Reads one request, sends its answer as it is; a text that ends in `…` leaves the connection open.
async fn serve(mut stream: TcpStream, script: Arc<Mutex<Script>>, seen: Arc<Mutex<Vec<(String, String)>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            // A TLS greeting is answered as a plain server does.
            Ok(0x16) if head.is_empty() => {
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
                return;
            }
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let authorization =
        head.lines().find_map(|line| line.strip_prefix("authorization: ")).unwrap_or_default().to_owned();
    seen.lock().push((path.clone(), authorization));
    let answer = {
        let mut script = script.lock();
        match script.get_mut(path.split('?').next().unwrap_or_default()) {
            Some(answers) if answers.len() > 1 => answers.remove(0),
            Some(answers) => answers[0].clone(),
            None => ok(""),
        }
    };
    let (text, hold) = answer.strip_suffix('…').map_or((answer.as_str(), false), |text| (text, true));
    let _ = stream.write_all(text.as_bytes()).await;
    if hold {
        std::future::pending::<()>().await;
    }
}

pub(crate) fn answer(code: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {code}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}", body.len())
}

pub(crate) fn ok(body: &str) -> String {
    answer("200 OK", "content-type: application/vnd.oci.image.manifest.v1+json\r\n", body)
}
