//! A token server as registries use it: [`crate::registry::USER`] may pull, nobody else.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use rcgen::{KeyPair, PKCS_ED25519, SigningKey as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::registry::{PASSWORD, USER};

/// The server; it ends when this is dropped.
#[derive(Debug)]
pub struct TokenServer {
    address: SocketAddr,
    key: Arc<KeyPair>,
    task: JoinHandle<()>,
}

impl Drop for TokenServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TokenServer {
    /// Starts one.
    ///
    /// # Errors
    /// When there is no key or no port.
    pub async fn start() -> anyhow::Result<Self> {
        let key = Arc::new(KeyPair::generate_for(&PKCS_ED25519)?);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let signer = Arc::clone(&key);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&signer)));
            }
        });
        Ok(Self { address, key, task })
    }

    /// Where tokens are given.
    pub fn realm(&self) -> String {
        format!("http://{}/token", self.address)
    }

    /// The public key, as a JSON Web Key Set.
    pub fn keys(&self) -> Value {
        let x = BASE64_URL_SAFE_NO_PAD.encode(self.key.public_key_raw());
        json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "tests", "use": "sig", "alg": "EdDSA", "x": x}]})
    }
}

async fn answer(mut stream: TcpStream, key: Arc<KeyPair>) -> anyhow::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(head)?;
    let path = head.split(' ').nth(1).context("no path")?;
    let known = format!("Basic {}", BASE64_STANDARD.encode(format!("{USER}:{PASSWORD}")));
    let may = head.lines().any(|line| {
        line.split_once(": ")
            .is_some_and(|(name, value)| name.eq_ignore_ascii_case("authorization") && value == known)
    });
    let scope = path.split(['?', '&']).find_map(|part| part.strip_prefix("scope=")).unwrap_or_default();
    let scope = scope.replace("%3A", ":").replace("%2F", "/").replace("%2C", ",");
    let mut parts = scope.splitn(3, ':');
    let (kind, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let access = if may { json!([{"type": kind, "name": name, "actions": ["pull"]}]) } else { json!([]) };
    let body = json!({"token": token(&key, &access)?, "expires_in": 300}).to_string();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    Ok(())
}

fn token(key: &KeyPair, access: &Value) -> anyhow::Result<String> {
    let now = jiff::Timestamp::now().as_second();
    let part = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let header = part(json!({"typ": "JWT", "alg": "EdDSA", "kid": "tests"}));
    let claims = part(json!({"iss": "tests", "sub": USER, "aud": "tests", "exp": now + 300, "nbf": now - 60,
        "iat": now - 60, "jti": "1", "access": access}));
    let signed = format!("{header}.{claims}");
    let signature = BASE64_URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes())?);
    Ok(format!("{signed}.{signature}"))
}

/// The digest of content.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    let hex: String = sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
