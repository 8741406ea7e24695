//! What is counted of logins and tokens, under upstream's names where it has one.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// By which means somebody logged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// The login page.
    Form,
    /// The `Authorization` header.
    Basic,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A user.
    Success,
    /// The wrong name or password.
    Failure,
    /// Nobody could say.
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Result {
    result: &'static str,
}

/// The counters.
#[derive(Clone, Debug, Default)]
pub struct OAuthMetrics {
    passwords: Counter,
    form: Family<Result, Counter>,
    basic: Family<Result, Counter>,
    /// Attempts that were refused because too many had failed.
    pub throttled: Counter,
    /// Access tokens that were made.
    pub tokens: Counter,
}

impl OAuthMetrics {
    /// Counters that `registry` shows.
    #[must_use]
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let mut add = |name: &str, help: &str, counter: Counter| registry.register(name, help, counter);
        add(
            "openshift_auth_password",
            "Counts total password authentication attempts",
            metrics.passwords.clone(),
        );
        add("picoshift_oauth_throttled", "Logins refused after too many failures", metrics.throttled.clone());
        add("picoshift_oauth_access_tokens", "Access tokens made", metrics.tokens.clone());
        registry.register(
            "openshift_auth_form_password_count_result",
            "Counts form password authentication attempts by result",
            metrics.form.clone(),
        );
        registry.register(
            "openshift_auth_basic_password_count_result",
            "Counts basic password authentication attempts by result",
            metrics.basic.clone(),
        );
        for result in ["success", "failure", "error"] {
            metrics.form.get_or_create_owned(&Result { result });
            metrics.basic.get_or_create_owned(&Result { result });
        }
        metrics
    }

    /// Counts an attempt.
    pub fn count(&self, means: Means, outcome: Outcome) {
        let result = match outcome {
            Outcome::Success => "success",
            Outcome::Failure => "failure",
            Outcome::Error => "error",
        };
        let family = match means {
            Means::Form => &self.form,
            Means::Basic => &self.basic,
        };
        self.passwords.inc();
        family.get_or_create(&Result { result }).inc();
    }
}
