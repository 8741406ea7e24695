//! Identity providers: who can say that a name and a password belong together.

use std::sync::Arc;
use std::thread::available_parallelism;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use picoshift_machinery::bootstrap_user::{self, MIN_PASSWORD};
use tokio::sync::Semaphore;

use super::htpasswd::Htpasswd;
use super::session::User;

/// Guesses that wait for a turn; more are sent away.
const LONGEST_QUEUE: usize = 256;

/// Who somebody is to a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The provider's name.
    pub provider: String,
    /// The name that the provider knows, encoded if it could not stand in an object's name.
    pub user_name: String,
    /// The name that the user is to have.
    pub preferred_name: String,
}

impl Identity {
    /// An identity without anything further.
    #[must_use]
    pub fn new(provider: &str, user_name: &str) -> Self {
        let user_name = if user_name.contains([':', '/']) {
            format!("b64:{}", STANDARD_NO_PAD.encode(user_name))
        } else {
            user_name.to_owned()
        };
        Self { provider: provider.to_owned(), preferred_name: user_name.clone(), user_name }
    }

    /// The name of its object.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}:{}", self.provider, self.user_name)
    }
}

/// Who was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Somebody who is to be mapped to a user.
    Identity(Identity),
    /// Somebody without a User object.
    User(User),
}

/// Why a provider cannot say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// Too many guesses wait already.
    #[error("too many logins at a time")]
    Busy,
    /// Something is wrong with what it was asked, or with it.
    #[error("{0}")]
    Failed(String),
}

/// Somebody who knows names and passwords.
#[async_trait]
pub trait PasswordProvider: Send + Sync + 'static {
    /// Its name in OAuth/cluster.
    fn name(&self) -> &str;

    /// Who `name` is if `password` is right; `None` if it is not, or nobody has the name.
    ///
    /// # Errors
    /// [`ProviderError`].
    async fn authenticate(
        &self,
        name: &str,
        password: &str,
        hashing: &Hashing,
    ) -> Result<Option<Found>, ProviderError>;
}

/// Runs what takes a core for a while, beside the threads that answer requests, as many at a time as there are cores.
#[derive(Clone, Debug)]
pub struct Hashing {
    turns: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl Default for Hashing {
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self {
            turns: Arc::new(Semaphore::new(cores)),
            waiting: Arc::new(Semaphore::new(LONGEST_QUEUE + cores)),
        }
    }
}

impl Hashing {
    /// Runs `work` when its turn comes.
    ///
    /// # Errors
    /// [`ProviderError::Busy`] when too many wait.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ProviderError> {
        let Ok(_place) = self.waiting.try_acquire() else { return Err(ProviderError::Busy) };
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| ProviderError::Busy)?;
        let done = tokio::task::spawn_blocking(move || {
            let result = work();
            // Also when nobody waits for the result any more: the core was busy until now.
            drop(turn);
            result
        });
        done.await.map_err(|error| ProviderError::Failed(error.to_string()))
    }
}

/// An htpasswd file.
pub struct HtpasswdProvider {
    name: String,
    file: Arc<Htpasswd>,
}

impl HtpasswdProvider {
    /// A provider for a file.
    #[must_use]
    pub fn new(name: &str, file: Arc<Htpasswd>) -> Self {
        Self { name: name.to_owned(), file }
    }
}

#[async_trait]
impl PasswordProvider for HtpasswdProvider {
    fn name(&self) -> &str {
        &self.name
    }

    async fn authenticate(
        &self,
        name: &str,
        password: &str,
        hashing: &Hashing,
    ) -> Result<Option<Found>, ProviderError> {
        let (file, name, password) = (Arc::clone(&self.file), name.to_owned(), password.to_owned());
        let checked = hashing.run(move || file.check(&name, &password)).await?;
        let found = checked.map_err(|error| ProviderError::Failed(error.to_string()))?;
        Ok(found.map(|name| Found::Identity(Identity::new(&self.name, &name))))
    }
}

/// The administrator of the first hour.
pub struct KubeAdmin {
    /// The password's bcrypt hash.
    pub hash: String,
    /// The user's uid as long as the Secret stays as it is.
    pub uid: String,
}

#[async_trait]
impl PasswordProvider for KubeAdmin {
    fn name(&self) -> &str {
        bootstrap_user::NAME
    }

    async fn authenticate(
        &self,
        name: &str,
        password: &str,
        hashing: &Hashing,
    ) -> Result<Option<Found>, ProviderError> {
        if !matches!(name, bootstrap_user::NAME | bootstrap_user::LOGIN_NAME) {
            return Ok(None);
        }
        if password.len() < MIN_PASSWORD {
            let text = format!(
                "{} password must be at least {MIN_PASSWORD} characters long",
                bootstrap_user::LOGIN_NAME
            );
            return Err(ProviderError::Failed(text));
        }
        let (hash, password) = (self.hash.clone(), password.to_owned());
        let checked = hashing.run(move || bcrypt::verify(password, &hash)).await?;
        let fits = checked.map_err(|error| ProviderError::Failed(error.to_string()))?;
        let user = User { name: bootstrap_user::NAME.to_owned(), uid: self.uid.clone() };
        Ok(fits.then_some(Found::User(user)))
    }
}

/// The provider of a cluster that has none: it knows nobody.
pub struct NoProvider;

#[async_trait]
impl PasswordProvider for NoProvider {
    fn name(&self) -> &'static str {
        "defaultDenyAll"
    }

    async fn authenticate(
        &self,
        _name: &str,
        _password: &str,
        _hashing: &Hashing,
    ) -> Result<Option<Found>, ProviderError> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_stand_in_an_object_s_are_encoded() {
        assert_eq!(Identity::new("p", "alice").name(), "p:alice");
        assert_eq!(Identity::new("p", "a/b").name(), "p:b64:YS9i");
    }

    #[tokio::test]
    async fn kube_admin_has_two_names_and_a_long_password() {
        let password = "abcde-fghij-klmno-pqrst";
        let admin = KubeAdmin { hash: bcrypt::hash(password, 4).unwrap(), uid: "u".to_owned() };
        let hashing = Hashing::default();
        for name in ["kubeadmin", "kube:admin"] {
            let found = admin.authenticate(name, password, &hashing).await.unwrap();
            assert_eq!(found, Some(Found::User(User { name: "kube:admin".to_owned(), uid: "u".to_owned() })));
            assert_eq!(admin.authenticate(name, "abcde-fghij-klmno-pqrsX", &hashing).await, Ok(None));
            let short = admin.authenticate(name, "short", &hashing).await.unwrap_err();
            assert_eq!(short.to_string(), "kubeadmin password must be at least 23 characters long");
        }
        assert_eq!(admin.authenticate("admin", password, &hashing).await, Ok(None));
    }

    #[tokio::test]
    async fn too_many_guesses_are_sent_away() {
        let hashing = Hashing::default();
        let held =
            hashing.turns.acquire_many(u32::try_from(hashing.turns.available_permits()).unwrap()).await;
        let places =
            hashing.waiting.try_acquire_many(u32::try_from(hashing.waiting.available_permits()).unwrap());
        assert_eq!(hashing.run(|| 1).await, Err(ProviderError::Busy));
        drop((held, places));
        assert_eq!(hashing.run(|| 1).await, Ok(1));
    }
}
