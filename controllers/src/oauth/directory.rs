//! What the server knows of the cluster, as of now: providers, how long tokens live, keys of sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use parking_lot::Mutex;
use picoshift_machinery::Object;
use picoshift_machinery::bootstrap_user::BootstrapUser;
use picoshift_machinery::url;
use serde_json::Value;

use super::htpasswd::Htpasswd;
use super::mapping::Method;
use super::provider::{HtpasswdProvider, KubeAdmin, NoProvider, PasswordProvider};
use super::session::Keys;

/// The key of an htpasswd file in its Secret.
const HTPASSWD: &str = "htpasswd";
/// Seconds that access tokens live, if nobody says otherwise.
const ACCESS: i64 = 86_400;
/// Seconds that codes live.
pub const CODE: i64 = 300;

/// A provider, and how its identities become users.
pub struct Provider {
    /// Who knows passwords.
    pub passwords: Box<dyn PasswordProvider>,
    /// How its identities become users.
    pub mapping: Method,
}

/// What is known.
pub struct Known {
    /// In the order in which they are asked; never none.
    pub providers: Vec<Arc<Provider>>,
    /// The uid of kube:admin while there is one.
    pub kube_admin: Option<String>,
    /// Seconds that access tokens live; 0 for ever.
    pub access_seconds: i64,
    /// Seconds that access tokens may be unused; 0 for any time.
    pub inactivity_seconds: i64,
    /// Keys of sessions, once they are there.
    pub keys: Option<Arc<Keys>>,
    /// Providers that are left out, and why.
    pub left_out: Vec<String>,
}

impl Known {
    /// The provider of a name.
    #[must_use]
    pub fn provider(&self, name: &str) -> Option<&Arc<Provider>> {
        self.providers.iter().find(|provider| provider.passwords.name() == name)
    }

    /// The path of the login page of a provider: only if there are several it needs its own.
    #[must_use]
    pub fn login_path(&self, provider: &Provider) -> String {
        match self.providers.len() {
            1 => "/login".to_owned(),
            _ => format!("/login/{}", url::path_escape(provider.passwords.name())),
        }
    }
}

/// What watches have told.
#[derive(Default)]
struct Told {
    /// `spec` of OAuth/cluster.
    oauth: Value,
    /// Files by the name of their Secret in openshift-config.
    files: BTreeMap<String, Arc<Htpasswd>>,
    kube_admin: Option<Secret>,
    kube_system_created: Option<Timestamp>,
    keys: Option<Arc<Keys>>,
}

/// Keeps what is known.
pub struct Directory {
    told: Mutex<Told>,
    known: ArcSwap<Known>,
}

impl Default for Directory {
    fn default() -> Self {
        let told = Told::default();
        let known = ArcSwap::from_pointee(told.known());
        Self { told: Mutex::new(told), known }
    }
}

impl Directory {
    /// What is known now.
    #[must_use]
    pub fn known(&self) -> Arc<Known> {
        self.known.load_full()
    }

    /// `spec` of OAuth/cluster; null for none.
    pub fn set_oauth(&self, spec: Value) {
        self.change(|told| told.oauth = spec);
    }

    /// The Secrets of openshift-config are these, and no others.
    pub fn set_files(&self, secrets: &[Secret]) {
        self.change(|told| told.files = secrets.iter().filter_map(file).collect());
    }

    /// A Secret of openshift-config is there, or looks like this now.
    pub fn set_file(&self, secret: &Secret) {
        self.change(|told| {
            told.files.remove(&secret.name_any());
            told.files.extend(file(secret));
        });
    }

    /// A Secret of openshift-config is gone.
    pub fn remove_file(&self, name: &str) {
        self.change(|told| {
            told.files.remove(name);
        });
    }

    /// The Secret of kube:admin, if there is one.
    pub fn set_kube_admin(&self, secret: Option<Secret>) {
        self.change(|told| told.kube_admin = secret);
    }

    /// When the cluster was made.
    pub fn set_kube_system_created(&self, created: Timestamp) {
        self.change(|told| told.kube_system_created = Some(created));
    }

    /// The keys of sessions, if there are any.
    pub fn set_keys(&self, keys: Option<Keys>) {
        self.change(|told| told.keys = keys.map(Arc::new));
    }

    fn change(&self, change: impl FnOnce(&mut Told)) {
        let mut told = self.told.lock();
        change(&mut told);
        let known = told.known();
        if known.left_out != self.known.load().left_out {
            for why in &known.left_out {
                tracing::warn!(why, "an identity provider is left out");
            }
        }
        self.known.store(Arc::new(known));
    }
}

impl Told {
    fn known(&self) -> Known {
        let (mut providers, mut left_out) = (Vec::new(), Vec::new());
        let kube_admin = self.kube_admin();
        let kube_admin_uid = kube_admin.as_ref().map(|admin| admin.uid.clone());
        if let Some(admin) = kube_admin {
            providers.push(Arc::new(Provider { passwords: Box::new(admin), mapping: Method::Claim }));
        }
        for provider in self.oauth["identityProviders"].as_array().into_iter().flatten() {
            match self.provider(provider) {
                Ok(provider) => providers.push(Arc::new(provider)),
                Err(why) => left_out.push(why),
            }
        }
        if providers.is_empty() {
            providers.push(Arc::new(Provider { passwords: Box::new(NoProvider), mapping: Method::Claim }));
        }
        let tokens = &self.oauth["tokenConfig"];
        let access = tokens["accessTokenMaxAgeSeconds"].as_i64().filter(|seconds| *seconds > 0);
        Known {
            providers,
            kube_admin: kube_admin_uid,
            access_seconds: access.unwrap_or(ACCESS),
            inactivity_seconds: inactivity(&tokens["accessTokenInactivityTimeout"]),
            keys: self.keys.clone(),
            left_out,
        }
    }

    fn provider(&self, provider: &Value) -> Result<Provider, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (name, kind) = (text(&provider["name"]), text(&provider["type"]));
        let method = text(&provider["mappingMethod"]);
        let mapping =
            Method::parse(&method).ok_or_else(|| format!("{name}: no mapping method {method:?}"))?;
        if kind != "HTPasswd" {
            return Err(format!("{name}: identity providers of type {kind:?} are not supported"));
        }
        // A name is a segment of the path of its login page, and comes before the colon in those of identities.
        if name.is_empty() || name.contains([':', '/', '%']) || matches!(name.as_str(), "." | "..") {
            return Err(format!("{name:?} is no name for an identity provider"));
        }
        let secret = text(&provider["htpasswd"]["fileData"]["name"]);
        let file = self.files.get(&secret).ok_or_else(|| {
            format!("{name}: there is no Secret openshift-config/{secret} with the key {HTPASSWD}")
        })?;
        Ok(Provider { passwords: Box::new(HtpasswdProvider::new(&name, Arc::clone(file))), mapping })
    }

    fn kube_admin(&self) -> Option<KubeAdmin> {
        let secret = Object::from_value(serde_json::to_value(self.kube_admin.as_ref()?).ok()?)?;
        let BootstrapUser { hash, uid } =
            BootstrapUser::of_secret(&secret, self.kube_system_created?).ok().flatten()?;
        Some(KubeAdmin { hash: String::from_utf8(hash).ok()?, uid })
    }
}

fn file(secret: &Secret) -> Option<(String, Arc<Htpasswd>)> {
    let file = secret.data.as_ref()?.get(HTPASSWD)?;
    Some((secret.name_any(), Arc::new(Htpasswd::parse(&String::from_utf8_lossy(&file.0)))))
}

/// Seconds of a duration as Go writes it (`5m0s`); 0 for none.
fn inactivity(duration: &Value) -> i64 {
    let duration = duration.as_str().and_then(|text| text.parse::<SignedDuration>().ok());
    duration.map_or(0, |duration| duration.as_secs().max(0))
}

#[cfg(test)]
mod tests;
