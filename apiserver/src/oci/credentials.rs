//! Credentials of docker configurations, as pull secrets hold them, and which of them fit an image
//! (`k8s.io/kubernetes/pkg/credentialprovider`).

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;

/// As Go's decoder after the trailing padding was cut off.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// Where credentials for Docker Hub are kept.
const HUB: &str = "index.docker.io";

/// A user and a password. They are shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub(super) username: String,
    pub(super) password: String,
}

impl Credentials {
    /// Credentials.
    #[must_use]
    pub fn new(username: impl Into<String>, password: impl Into<String>) -> Self {
        Self { username: username.into(), password: password.into() }
    }

    /// Whether there is something to be told by them.
    pub(super) fn usable(&self) -> bool {
        !self.username.is_empty() && !self.password.is_empty()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}

/// A docker configuration that cannot be read. Says nothing of what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the docker configuration cannot be read")]
pub struct ParseError;

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    password: Option<String>,
    #[serde(default)]
    auth: Option<String>,
}

#[derive(Deserialize)]
struct ConfigJson {
    #[serde(default)]
    auths: Option<BTreeMap<String, Entry>>,
}

impl Entry {
    fn credentials(self) -> Result<Credentials, ParseError> {
        let (username, password) = (self.username.unwrap_or_default(), self.password.unwrap_or_default());
        let auth = self.auth.unwrap_or_default();
        if auth.is_empty() {
            return Ok(Credentials { username, password });
        }
        let decoded = BASE64.decode(auth.trim_end_matches('=')).map_err(|_| ParseError)?;
        let text = String::from_utf8(decoded).map_err(|_| ParseError)?;
        let (username, password) = text.split_once(':').ok_or(ParseError)?;
        // Docker writes the password with NUL bytes at its end.
        Ok(Credentials::new(username, password.trim_end_matches('\0')))
    }
}

/// Credentials by place: a host, perhaps with a port, a path, or `*` for a part of the host.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    places: BTreeMap<String, Vec<Credentials>>,
}

impl Keyring {
    /// Adds what a Secret of type `kubernetes.io/dockerconfigjson` holds.
    ///
    /// # Errors
    /// When it cannot be read; nothing of it is added then.
    pub fn add_config_json(&mut self, bytes: &[u8]) -> Result<(), ParseError> {
        let config: ConfigJson = serde_json::from_slice(bytes).map_err(|_| ParseError)?;
        self.add(config.auths.unwrap_or_default())
    }

    /// Adds what a Secret of type `kubernetes.io/dockercfg` holds.
    ///
    /// # Errors
    /// When it cannot be read; nothing of it is added then.
    pub fn add_config(&mut self, bytes: &[u8]) -> Result<(), ParseError> {
        self.add(serde_json::from_slice(bytes).map_err(|_| ParseError)?)
    }

    fn add(&mut self, entries: BTreeMap<String, Entry>) -> Result<(), ParseError> {
        let mut read = Vec::new();
        for (place, entry) in entries {
            read.push((place_key(&place), entry.credentials()?));
        }
        for (place, credentials) in read {
            self.places.entry(place).or_default().push(credentials);
        }
        Ok(())
    }

    /// The credentials for an image such as `quay.io/lab/app:1`: those of the longest place, the first of them.
    #[must_use]
    pub fn find(&self, image: &str) -> Option<&Credentials> {
        // From the end of the order: a longer path comes before what it begins with.
        let fitting = self.places.iter().rev().find(|(place, _)| fits(place, image));
        let found = fitting.map(|(_, credentials)| credentials);
        let found = found.or_else(|| is_hub(image).then(|| self.places.get(HUB)).flatten());
        found.and_then(|credentials| credentials.first())
    }
}

/// The key of a place: without scheme, and without the path of an API version.
fn place_key(place: &str) -> String {
    let bare = place.strip_prefix("https://").or_else(|| place.strip_prefix("http://")).unwrap_or(place);
    let bare = bare.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = bare.find('/').map_or((bare, ""), |at| bare.split_at(at));
    let path = match path.get(..4) {
        Some("/v1/" | "/v2/") => path.get(3..).unwrap_or_default(),
        _ => path,
    };
    if path == "/" { host.to_owned() } else { format!("{host}{path}") }
}

fn is_hub(image: &str) -> bool {
    match image.split_once('/') {
        None => true,
        Some(("", _)) => false,
        Some(("docker.io" | HUB, _)) => true,
        Some((first, _)) => !first.contains(['.', ':']),
    }
}

fn fits(place: &str, image: &str) -> bool {
    let split = |text: &str| match text.find('/') {
        Some(at) => (text[..at].to_owned(), text[at..].to_owned()),
        None => (text.to_owned(), String::new()),
    };
    let ((place_host, place_path), (host, path)) = (split(place), split(image));
    let (place_name, place_port) = host_port(&place_host);
    let (name, port) = host_port(&host);
    let (wanted, given): (Vec<&str>, Vec<&str>) =
        (place_name.split('.').collect(), name.split('.').collect());
    place_port == port
        && wanted.len() == given.len()
        && path.starts_with(&place_path)
        && wanted.iter().zip(&given).all(|(pattern, part)| matches_part(pattern.as_bytes(), part.as_bytes()))
}

fn host_port(host: &str) -> (&str, &str) {
    match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, port),
        _ => (host, ""),
    }
}

/// Whether a part of a host fits a pattern with `*` (any letters) and `?` (one); linear in both.
fn matches_part(pattern: &[u8], part: &[u8]) -> bool {
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < part.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(b'?') => (p, t) = (p + 1, t + 1),
            Some(letter) if *letter == part[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, from)) => {
                    (p, t) = (at + 1, from + 1);
                    star = Some((at, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyring(places: &[&str]) -> Keyring {
        let mut keyring = Keyring::default();
        for place in places {
            let entry = serde_json::json!({*place: {"username": place, "password": "p"}});
            keyring.add_config(entry.to_string().as_bytes()).unwrap();
        }
        keyring
    }

    fn found<'a>(keyring: &'a Keyring, image: &str) -> &'a str {
        keyring.find(image).map_or("", |credentials| credentials.username.as_str())
    }

    #[test]
    fn the_most_specific_place_wins() {
        let all = keyring(&[
            "quay.io",
            "https://quay.io/v2/lab",
            "*.example.com",
            "r.example.com:5000",
            "quay.io/lab/a",
        ]);
        assert_eq!(found(&all, "quay.io/other/app"), "quay.io");
        assert_eq!(found(&all, "quay.io/lab/b"), "https://quay.io/v2/lab");
        assert_eq!(found(&all, "quay.io/lab/app:1"), "quay.io/lab/a");
        assert_eq!(found(&all, "r.example.com/x"), "*.example.com");
        assert_eq!(found(&all, "r.example.com:5000/x"), "r.example.com:5000");
        for none in ["a.r.example.com/x", "r.example.com:80/x", "example.com/x", "quay.io.evil.com/lab/a"] {
            assert_eq!(found(&all, none), "", "{none}");
        }
    }

    #[test]
    fn docker_hub_has_several_names() {
        let hub = keyring(&["https://index.docker.io/v1/"]);
        for image in ["docker.io/library/busybox:latest", "index.docker.io/a/b", "busybox", "a/b"] {
            assert_eq!(found(&hub, image), "https://index.docker.io/v1/", "{image}");
        }
        assert_eq!(found(&hub, "quay.io/a/b"), "");
        assert_eq!(found(&keyring(&["docker.io"]), "docker.io/library/busybox"), "docker.io");
    }

    #[test]
    fn both_forms_are_read() {
        let mut keyring = Keyring::default();
        // ci:s3:cret
        keyring
            .add_config_json(
                br#"{"auths":{"a.io":{"auth":"Y2k6czM6Y3JldA==","email":"x"}},"credsStore":"y"}"#,
            )
            .unwrap();
        assert_eq!(keyring.find("a.io/x"), Some(&Credentials::new("ci", "s3:cret")));
        assert!(!format!("{keyring:?}").contains("s3"));
        keyring.add_config_json(b"{}").unwrap();
        for broken in ["", "7", r#"{"auths":{"a":{"auth":"%%%"}}}"#, r#"{"auths":{"a":{"auth":"YQ=="}}}"#] {
            assert_eq!(keyring.add_config_json(broken.as_bytes()), Err(ParseError), "{broken}");
        }
    }

    #[test]
    fn patterns_end() {
        assert!(matches_part(b"*a*b", b"xxaxxb"));
        assert!(!matches_part(b"*a*b", b"xxaxx"));
        assert!(matches_part(b"?*", b"x") && !matches_part(b"?", b"") && matches_part(b"*", b""));
        assert!(!matches_part("*a".repeat(40).as_bytes(), "a".repeat(39).as_bytes()));
    }
}
