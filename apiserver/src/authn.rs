//! Who makes a request: the front proxy's word, a client certificate, a bearer token, or nobody. The order and the
//! outcomes are those of the delegating authenticator in `k8s.io/apiserver`.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock, OnceLock};

use arc_swap::ArcSwap;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use parking_lot::Mutex;
use picoshift_machinery::peer::{BadSubject, Peer};
use picoshift_machinery::user_info::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED};
use picoshift_machinery::{UserInfo, oauth_token};
use rustls::pki_types::UnixTime;

pub mod client_certificate;
pub mod extension_config;
pub mod impersonation;
pub mod memberships;
pub mod request_header;
pub mod token_review;

use extension_config::ExtensionConfig;
use token_review::{TokenAuthenticator, TokenError, TokenReview};

/// How an identity was established.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By the headers of the front proxy.
    FrontProxy,
    /// By a client certificate of this connection.
    ClientCertificate,
    /// By a bearer token.
    BearerToken,
    /// There was no credential.
    Anonymous,
    /// By impersonation headers that the real caller may use.
    Impersonation,
}

/// A user with a hash that is made once.
#[derive(Debug)]
pub struct Identity {
    /// The user.
    pub user: Arc<UserInfo>,
    /// How we know.
    pub method: Method,
    /// [`user_hash`] of the user.
    pub hash: u64,
}

impl Identity {
    /// An identity.
    #[must_use]
    pub fn new(user: UserInfo, method: Method) -> Self {
        Self::of(Arc::new(user), method)
    }

    /// An identity of a user that is shared already.
    #[must_use]
    pub fn of(user: Arc<UserInfo>, method: Method) -> Self {
        let hash = user_hash(&user);
        Self { user, method, hash }
    }

    /// An identity of a user that authenticated: in `system:authenticated`, unless it is anonymous after all.
    fn authenticated(mut user: UserInfo, method: Method) -> Arc<Self> {
        let settled =
            user.name == ANONYMOUS || user.in_group(AUTHENTICATED) || user.in_group(UNAUTHENTICATED);
        if !settled {
            user.groups.push(AUTHENTICATED.to_owned());
        }
        Arc::new(Self::new(user, method))
    }
}

static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// A hash of a user that differs between processes. Equal hashes do not prove equal users.
#[must_use]
pub fn user_hash(user: &UserInfo) -> u64 {
    HASHER.hash_one(user)
}

/// The credentials are not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Unauthorized")]
pub struct Unauthorized;

/// What is known about a connection.
#[derive(Debug)]
pub struct Connection {
    /// The other end.
    pub peer: Peer,
    /// The identity that the certificate names, if it is good.
    own: OnceLock<Result<Option<Arc<Identity>>, BadSubject>>,
    /// The last identity that a front proxy named.
    fronted: Mutex<Option<request_header::Remembered>>,
}

impl Connection {
    /// A new connection.
    #[must_use]
    pub fn new(peer: Peer) -> Self {
        Self { peer, own: OnceLock::new(), fronted: Mutex::default() }
    }
}

/// Establishes identities.
pub struct Authenticator {
    config: Arc<ArcSwap<ExtensionConfig>>,
    tokens: TokenAuthenticator,
    own_tokens: Option<Arc<dyn TokenReview>>,
    anonymous: Arc<Identity>,
}

impl Authenticator {
    /// `config` follows kube-apiserver's ConfigMap, `tokens` knows bearer tokens.
    #[must_use]
    pub fn new(config: Arc<ArcSwap<ExtensionConfig>>, tokens: TokenAuthenticator) -> Self {
        let anonymous = Arc::new(Identity::new(UserInfo::anonymous(), Method::Anonymous));
        Self { config, tokens, own_tokens: None, anonymous }
    }

    /// The same, where OAuth tokens are known here: nobody else is asked about them, and no answer is remembered.
    #[must_use]
    pub fn with_own_tokens(self, own_tokens: Arc<dyn TokenReview>) -> Self {
        Self { own_tokens: Some(own_tokens), ..self }
    }

    async fn by_token(&self, token: &str) -> Result<Option<Arc<Identity>>, TokenError> {
        match &self.own_tokens {
            Some(own) if token.starts_with(oauth_token::PREFIX) => {
                let user = own.review(token).await.unwrap_or_else(|why| {
                    tracing::debug!(%why, "an OAuth token is no good");
                    None
                });
                Ok(user.map(|user| Identity::authenticated(user, Method::BearerToken)))
            }
            _ => self.tokens.authenticate(token).await,
        }
    }

    /// The identity of a request. One good credential is enough; a bad one without a good one is an error.
    ///
    /// # Errors
    /// [`Unauthorized`].
    pub async fn authenticate(
        &self,
        connection: &Connection,
        headers: &HeaderMap,
    ) -> Result<Arc<Identity>, Unauthorized> {
        let mut refused = false;
        if connection.peer.certificate.is_some() {
            let config = self.config.load();
            match by_certificate(&config, connection, headers) {
                Ok(Some(identity)) => return Ok(identity),
                // Nobody can tell yet whose it is; nobody's it is not.
                Ok(None) => refused = !config.is_read(),
                Err(Unauthorized) => refused = true,
            }
        }
        if let Some(token) = bearer(headers) {
            match self.by_token(token).await {
                Ok(Some(identity)) => return Ok(identity),
                Ok(None) => refused = true,
                Err(error) => {
                    tracing::warn!(%error, "a bearer token could not be reviewed");
                    refused = true;
                }
            }
        }
        if refused { Err(Unauthorized) } else { Ok(Arc::clone(&self.anonymous)) }
    }

    /// Takes every header out that carries a credential or a claim of identity.
    pub fn strip(&self, headers: &mut HeaderMap) {
        headers.remove(AUTHORIZATION);
        let config = self.config.load();
        let proxy = config.request_header.as_deref();
        while let Some(name) = headers
            .keys()
            .find(|name| name.as_str().starts_with("x-remote-") || proxy.is_some_and(|p| p.claims(name)))
            .cloned()
        {
            headers.remove(name);
        }
    }
}

fn by_certificate(
    config: &ExtensionConfig,
    connection: &Connection,
    headers: &HeaderMap,
) -> Result<Option<Arc<Identity>>, Unauthorized> {
    let Some(certificate) = &connection.peer.certificate else { return Ok(None) };
    let now = UnixTime::now();
    let mut refused = false;
    if let Some(proxy) = &config.request_header {
        match proxy.authenticate(certificate, &connection.fronted, headers, now) {
            Ok(Some(identity)) => return Ok(Some(identity)),
            Ok(None) => {}
            Err(error) => {
                tracing::trace!(%error, "not a front proxy");
                refused = true;
            }
        }
    }
    if let Some(authority) = &config.client_authority {
        match certificate.verify(authority, now) {
            Ok(()) => match connection.own.get_or_init(|| client_certificate::identity(certificate)) {
                Ok(Some(identity)) => return Ok(Some(Arc::clone(identity))),
                Ok(None) => {}
                Err(BadSubject) => refused = true,
            },
            Err(error) => {
                tracing::debug!(peer = %connection.peer.address, %error, "client certificate refused");
                refused = true;
            }
        }
    }
    if refused { Err(Unauthorized) } else { Ok(None) }
}

/// The bearer token of a request; `None` for another scheme or an empty token.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let mut parts = value.splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// What a request that nobody is believed to have sent has tried, in the words of the generic API server's audit.
#[must_use]
pub fn attempted(headers: &HeaderMap, peer: &Peer) -> String {
    let scheme = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default().trim();
    let begins = |word: &str| scheme.split(' ').next().is_some_and(|first| first.eq_ignore_ascii_case(word));
    let tried = [
        ("basic", begins("basic")),
        ("bearer", begins("bearer") && scheme.contains(' ')),
        ("x509", peer.certificate.is_some()),
    ];
    let tried: Vec<&str> = tried.iter().filter(|(_, tried)| *tried).map(|(name, _)| *name).collect();
    if tried.is_empty() {
        return "Authentication failed, no credentials provided".to_owned();
    }
    format!("Authentication failed, attempted: {}", tried.join(", "))
}

#[cfg(test)]
pub(crate) mod test_certificates;
#[cfg(test)]
mod tests;
