//! ConfigMap `kube-system/extension-apiserver-authentication`: which authorities vouch for clients and for the front
//! proxy, and in which headers the front proxy names its users. Watched, so that a rotation needs no restart.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use arc_swap::ArcSwap;
use futures::StreamExt;
use http::HeaderName;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use picoshift_machinery::readiness::Latch;
use picoshift_machinery::tls::{TrustBundle, TrustError};

use super::request_header::RequestHeader;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// What the ConfigMap says; empty until it has been read: until then nobody is believed, and certificates are refused.
#[derive(Debug, Default)]
pub struct ExtensionConfig {
    /// Authority of client certificates.
    pub client_authority: Option<Arc<TrustBundle>>,
    /// The front proxy.
    pub request_header: Option<Arc<RequestHeader>>,
    data: BTreeMap<String, String>,
}

impl ExtensionConfig {
    /// Whether the ConfigMap has been read.
    #[must_use]
    pub fn is_read(&self) -> bool {
        !self.data.is_empty()
    }
}

/// Why the ConfigMap cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A bundle of authorities is not usable.
    #[error("{key}: {source}")]
    Authority {
        /// The key in the ConfigMap.
        key: &'static str,
        /// Why.
        source: TrustError,
    },
    /// A list is no JSON array of strings.
    #[error("{key}: {source}")]
    List {
        /// The key in the ConfigMap.
        key: &'static str,
        /// Why.
        source: serde_json::Error,
    },
    /// A header name is none.
    #[error("{key}: {name:?} is not a header name")]
    Header {
        /// The key in the ConfigMap.
        key: &'static str,
        /// The name.
        name: String,
    },
}

impl ExtensionConfig {
    /// Reads the ConfigMap's data. Bundles that did not change since `old` keep their generation, and with it what
    /// connections remember.
    ///
    /// # Errors
    /// [`ConfigError`]; the old configuration then stays in force.
    pub fn parse(data: &BTreeMap<String, String>, old: &Self) -> Result<Self, ConfigError> {
        let same = |key: &str| data.get(key) == old.data.get(key);
        let client_authority = match &old.client_authority {
            Some(bundle) if same("client-ca-file") => Some(Arc::clone(bundle)),
            _ => authority(data, "client-ca-file")?,
        };
        let proxy_authority = match &old.request_header {
            Some(proxy) if same("requestheader-client-ca-file") => Some(Arc::clone(&proxy.authority)),
            _ => authority(data, "requestheader-client-ca-file")?,
        };
        let request_header = match proxy_authority {
            None => None,
            Some(authority) => Some(Arc::new(RequestHeader {
                authority,
                allowed_names: list(data, "requestheader-allowed-names")?,
                user_headers: headers(data, "requestheader-username-headers")?,
                group_headers: headers(data, "requestheader-group-headers")?,
                uid_headers: headers(data, "requestheader-uid-headers")?,
                extra_prefixes: list(data, "requestheader-extra-headers-prefix")?
                    .into_iter()
                    .filter(|prefix| !prefix.is_empty())
                    .map(|prefix| prefix.to_ascii_lowercase())
                    .collect(),
            })),
        };
        Ok(Self { client_authority, request_header, data: data.clone() })
    }
}

fn authority(
    data: &BTreeMap<String, String>,
    key: &'static str,
) -> Result<Option<Arc<TrustBundle>>, ConfigError> {
    match data.get(key).filter(|pem| !pem.trim().is_empty()) {
        None => Ok(None),
        Some(pem) => TrustBundle::from_pem(pem.as_bytes())
            .map(|bundle| Some(Arc::new(bundle)))
            .map_err(|source| ConfigError::Authority { key, source }),
    }
}

fn list(data: &BTreeMap<String, String>, key: &'static str) -> Result<Vec<String>, ConfigError> {
    match data.get(key).filter(|text| !text.is_empty()) {
        None => Ok(Vec::new()),
        Some(text) => serde_json::from_str::<Option<Vec<String>>>(text)
            .map(Option::unwrap_or_default)
            .map_err(|source| ConfigError::List { key, source }),
    }
}

fn headers(data: &BTreeMap<String, String>, key: &'static str) -> Result<Vec<HeaderName>, ConfigError> {
    list(data, key)?
        .into_iter()
        .map(|name| HeaderName::try_from(&name).map_err(|_| ConfigError::Header { key, name }))
        .collect()
}

/// Keeps `config` as the ConfigMap says, for ever, and releases `synced` once it has been read.
pub async fn follow(client: Client, config: Arc<ArcSwap<ExtensionConfig>>, synced: Latch) {
    let maps = Api::<ConfigMap>::namespaced(client, NAMESPACE);
    let mut changes = pin!(
        watcher(maps, watcher::Config::default().fields(&format!("metadata.name={NAME}")))
            .default_backoff()
            .applied_objects()
    );
    while let Some(change) = changes.next().await {
        let data = match change {
            Ok(map) => map.data.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(%error, "cannot watch ConfigMap {NAMESPACE}/{NAME}");
                continue;
            }
        };
        match ExtensionConfig::parse(&data, &config.load()) {
            Ok(new) => {
                tracing::info!(
                    client_authority = new.client_authority.is_some(),
                    front_proxy = new.request_header.is_some(),
                    "authentication configuration read"
                );
                config.store(Arc::new(new));
                synced.release();
            }
            Err(error) => tracing::error!(%error, "ConfigMap {NAMESPACE}/{NAME} is not usable"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lists_and_refuses_what_is_no_list() {
        let data = BTreeMap::from([
            ("a".to_owned(), r#"["X-Remote-User","X-Other"]"#.to_owned()),
            ("b".to_owned(), "null".to_owned()),
            ("c".to_owned(), "X-Remote-User".to_owned()),
            ("d".to_owned(), r#"["not a header"]"#.to_owned()),
        ]);
        let names = headers(&data, "a").unwrap();
        assert_eq!(names, ["x-remote-user", "x-other"]);
        assert!(list(&data, "b").unwrap().is_empty());
        assert!(list(&data, "absent").unwrap().is_empty());
        assert!(matches!(list(&data, "c"), Err(ConfigError::List { .. })));
        assert!(matches!(headers(&data, "d"), Err(ConfigError::Header { .. })));
    }

    #[test]
    fn an_unchanged_bundle_keeps_its_generation() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        let mut data = BTreeMap::from([
            ("client-ca-file".to_owned(), pem.clone()),
            ("requestheader-client-ca-file".to_owned(), pem),
        ]);
        let generations = |config: &ExtensionConfig| {
            (
                config.client_authority.as_ref().unwrap().generation(),
                config.request_header.as_ref().unwrap().authority.generation(),
            )
        };
        let first = ExtensionConfig::parse(&data, &ExtensionConfig::default()).unwrap();
        data.insert("requestheader-allowed-names".to_owned(), r#"["front-proxy-client"]"#.to_owned());
        let second = ExtensionConfig::parse(&data, &first).unwrap();
        assert_eq!(generations(&first), generations(&second));
        data.insert("client-ca-file".to_owned(), params.self_signed(&key).unwrap().pem());
        data.remove("requestheader-client-ca-file");
        let third = ExtensionConfig::parse(&data, &second).unwrap();
        assert!(third.request_header.is_none());
        assert_ne!(third.client_authority.unwrap().generation(), generations(&second).0);
    }
}
