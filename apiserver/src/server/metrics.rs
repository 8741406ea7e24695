//! What is counted, under kube-apiserver's names where it has one.

use http::Response;
use http::header::CONTENT_TYPE;
use picoshift_machinery::body::Body;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::flow_metrics::{FlowFamilies, FlowMetrics, Level};
use super::respond;

/// What a request was about. Only words that we know: clients cannot grow the label set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Target {
    /// `GET`, `LIST`, `WATCH`, `POST`, …
    pub verb: &'static str,
    /// API group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Plural resource, empty for other paths.
    pub resource: &'static str,
    /// Subresource; for other paths the path if we know it.
    pub subresource: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    verb: &'static str,
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    subresource: &'static str,
    code: u16,
}

/// Reading or changing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestKind {
    request_kind: &'static str,
}

impl RequestKind {
    /// Reads.
    pub const READ_ONLY: Self = Self { request_kind: "readOnly" };
    /// Changes.
    pub const MUTATING: Self = Self { request_kind: "mutating" };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    result: &'static str,
}

/// All counters of the process.
pub struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    durations: Family<Target, Histogram, fn() -> Histogram>,
    in_flight: Family<RequestKind, Gauge>,
    flow: FlowFamilies,
    /// Watches that are open.
    pub long_running: Gauge,
    /// Requests turned away because too many ran.
    pub dropped: Counter,
    /// Requests whose handler panicked.
    pub panics: Counter,
    authenticated: Counter,
    not_authenticated: Counter,
    /// SubjectAccessReviews sent.
    pub access_reviews: Counter,
    /// Access questions answered from memory.
    pub access_cache_hits: Counter,
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
        let authentication = Family::<Outcome, Counter>::default();
        let attempts = |result| authentication.get_or_create_owned(&Outcome { result });
        let mut registry = Registry::default();
        let flow = FlowFamilies::register(&mut registry);
        let mut metrics = Self {
            registry,
            flow,
            requests: Family::default(),
            durations: Family::new_with_constructor(latency),
            in_flight: Family::default(),
            long_running: Gauge::default(),
            dropped: Counter::default(),
            panics: Counter::default(),
            authenticated: attempts("success"),
            not_authenticated: attempts("failure"),
            access_reviews: Counter::default(),
            access_cache_hits: Counter::default(),
        };
        let r = &mut metrics.registry;
        r.register(
            "apiserver_request",
            "Requests by what they were about and the code",
            metrics.requests.clone(),
        );
        r.register(
            "apiserver_request_duration_seconds",
            "Time until the answer began, watches excepted",
            metrics.durations.clone(),
        );
        r.register("apiserver_current_inflight_requests", "Requests running now", metrics.in_flight.clone());
        r.register("apiserver_longrunning_requests", "Watches open now", metrics.long_running.clone());
        r.register("apiserver_dropped_requests", "Requests turned away with 429", metrics.dropped.clone());
        r.register("apiserver_request_panics", "Requests whose handler panicked", metrics.panics.clone());
        r.register("authentication_attempts", "Authentications by result", authentication);
        r.register(
            "apiserver_delegated_authz_request",
            "SubjectAccessReviews sent",
            metrics.access_reviews.clone(),
        );
        r.register(
            "apiserver_delegated_authz_cache_hits",
            "Access questions answered from memory",
            metrics.access_cache_hits.clone(),
        );
        metrics
    }

    /// Adds metrics of another room, before the server runs.
    pub fn registry_mut(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// The gauge of running requests of a kind.
    #[must_use]
    pub fn in_flight(&self, kind: RequestKind) -> Gauge {
        self.in_flight.get_or_create_owned(&kind)
    }

    /// The counters of a room of requests.
    #[must_use]
    pub fn flow(&self, level: Level) -> FlowMetrics {
        self.flow.of(level)
    }

    /// Counts an answer; `seconds` unless it is a watch.
    pub fn answered(&self, target: Target, code: u16, seconds: Option<f64>) {
        let Target { verb, group, version, resource, subresource } = target;
        let labels = Answered { verb, group, version, resource, subresource, code };
        self.requests.get_or_create(&labels).inc();
        if let Some(seconds) = seconds {
            self.durations.get_or_create(&target).observe(seconds);
        }
    }

    /// Counts an authentication.
    pub fn authenticated(&self, good: bool) {
        let counter = if good { &self.authenticated } else { &self.not_authenticated };
        counter.inc();
    }

    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).unwrap();
        text
    }

    /// `/metrics`.
    #[must_use]
    pub fn answer(&self) -> Response<Body> {
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &self.registry) {
            return respond::internal_error("/metrics", &error.to_string());
        }
        let mut response = respond::text(http::StatusCode::OK, text);
        response.headers_mut().insert(
            CONTENT_TYPE,
            http::HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8"),
        );
        response
    }
}

/// Buckets from a tenth of a millisecond to a minute.
fn latency() -> Histogram {
    Histogram::new([
        0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
        10.0, 30.0, 60.0,
    ])
}
