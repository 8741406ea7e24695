//! What is counted.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Forwarded to kube-apiserver.
    Kubernetes,
    /// Forwarded to our API server.
    Direct,
    /// A tunnel was asked for.
    Upgrade,
    /// Answered from a ConfigMap.
    Document,
    /// Refused here.
    Refused,
}

impl Kind {
    /// The word for labels and the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kubernetes => "kubernetes",
            Self::Direct => "direct",
            Self::Upgrade => "upgrade",
            Self::Document => "document",
            Self::Refused => "refused",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    kind: &'static str,
    code: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPool {
    pool: &'static str,
}

/// The counters of one pool of connections.
#[derive(Clone, Debug)]
pub struct PoolMetrics {
    /// Connections opened.
    pub opened: Counter,
    /// Requests that got no answer.
    pub failures: Counter,
    /// Requests sent again.
    pub retries: Counter,
    /// Requests going on.
    pub running: Gauge,
}

/// All counters of the process.
pub struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    added: Histogram,
    opened: Family<OfPool, Counter>,
    failures: Family<OfPool, Counter>,
    retries: Family<OfPool, Counter>,
    running: Family<OfPool, Gauge>,
    /// Tunnels open now.
    pub tunnels: Gauge,
    /// Identities remembered now.
    pub identities: Gauge,
    /// Identities answered from memory.
    pub identity_hits: Counter,
    /// Identities asked for.
    pub identity_reviews: Counter,
    /// Requests with a revoked token.
    pub revoked: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All at zero.
    #[must_use]
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            added: Histogram::new([
                0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1.0,
            ]),
            opened: Family::default(),
            failures: Family::default(),
            retries: Family::default(),
            running: Family::default(),
            tunnels: Gauge::default(),
            identities: Gauge::default(),
            identity_hits: Counter::default(),
            identity_reviews: Counter::default(),
            revoked: Counter::default(),
        };
        let r = &mut metrics.registry;
        let name = |rest: &str| format!("picoshift_shim_{rest}");
        r.register(name("requests"), "Requests by what became of them", metrics.requests.clone());
        r.register(
            name("added_seconds"),
            "Time that we took from the head of a request to the head of its answer, beside the server's",
            metrics.added.clone(),
        );
        r.register(name("connections_opened"), "Connections opened upstream", metrics.opened.clone());
        r.register(name("upstream_failures"), "Requests without an answer", metrics.failures.clone());
        r.register(name("upstream_retries"), "Requests sent again", metrics.retries.clone());
        r.register(name("upstream_requests_running"), "Requests and streams now", metrics.running.clone());
        r.register(name("tunnels"), "Upgraded connections now", metrics.tunnels.clone());
        r.register(name("identities"), "Identities remembered now", metrics.identities.clone());
        r.register(name("identity_hits"), "Identities from memory", metrics.identity_hits.clone());
        r.register(name("identity_reviews"), "SelfSubjectReviews sent", metrics.identity_reviews.clone());
        r.register(name("revoked_tokens_refused"), "Requests with a revoked token", metrics.revoked.clone());
        metrics
    }

    /// The counters of a pool.
    #[must_use]
    pub fn pool(&self, pool: &'static str) -> PoolMetrics {
        let of = OfPool { pool };
        PoolMetrics {
            opened: self.opened.get_or_create_owned(&of),
            failures: self.failures.get_or_create_owned(&of),
            retries: self.retries.get_or_create_owned(&of),
            running: self.running.get_or_create_owned(&of),
        }
    }

    /// Counts an answer; `added` in seconds, where somebody else answered.
    pub fn answered(&self, kind: Kind, code: u16, added: Option<f64>) {
        self.requests.get_or_create(&Answered { kind: kind.name(), code }).inc();
        if let Some(added) = added {
            self.added.observe(added);
        }
    }

    /// All of it in OpenMetrics' text form.
    ///
    /// # Errors
    /// When a metric cannot be written; none can fail to.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_their_labels() {
        let metrics = Metrics::new();
        metrics.answered(Kind::Direct, 200, Some(0.0002));
        metrics.pool("apiserver").opened.inc();
        let text = metrics.text().unwrap();
        assert!(text.contains("picoshift_shim_requests_total{kind=\"direct\",code=\"200\"} 1\n"), "{text}");
        assert!(text.contains("picoshift_shim_connections_opened_total{pool=\"apiserver\"} 1\n"), "{text}");
        assert!(text.contains("picoshift_shim_added_seconds_count 1\n"), "{text}");
    }
}
