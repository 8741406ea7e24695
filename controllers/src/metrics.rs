//! What is counted, by controller, under upstream's names where it has one.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::oauth::metrics::OAuthMetrics;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Named {
    name: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Import {
    scheduled: bool,
    result: &'static str,
}

/// The counters of one controller.
#[derive(Clone, Debug, Default)]
pub struct ControllerMetrics {
    /// Keys worked on.
    pub reconciles: Counter,
    /// Of these, those that failed.
    pub errors: Counter,
    /// Starts after an end that was not wanted.
    pub restarts: Counter,
    /// Interruptions of its watches.
    pub watch_errors: Counter,
    /// Keys that wait, those that are not due yet included.
    pub depth: Gauge,
}

/// The counters of the process.
#[derive(Debug, Default)]
pub struct Metrics {
    registry: Registry,
    reconciles: Family<Named, Counter>,
    errors: Family<Named, Counter>,
    restarts: Family<Named, Counter>,
    watch_errors: Family<Named, Counter>,
    depth: Family<Named, Gauge>,
    imports: Family<Import, Counter>,
    oauth: OAuthMetrics,
    /// 1 while this process leads.
    pub leading: Gauge,
}

impl Metrics {
    /// All at zero.
    #[must_use]
    pub fn new() -> Self {
        let mut metrics = Self::default();
        let r = &mut metrics.registry;
        r.register(
            "picoshift_controller_reconciles",
            "Keys that a controller worked on",
            metrics.reconciles.clone(),
        );
        r.register(
            "picoshift_controller_reconcile_errors",
            "Keys that a controller could not bring to what is wanted",
            metrics.errors.clone(),
        );
        r.register("picoshift_controller_restarts", "Controllers started anew", metrics.restarts.clone());
        r.register(
            "picoshift_controller_watch_errors",
            "Interruptions of a controller's watches",
            metrics.watch_errors.clone(),
        );
        r.register("workqueue_depth", "Keys that wait", metrics.depth.clone());
        r.register(
            "picoshift_image_imports",
            "Images and repositories imported for ImageStreams, by result",
            metrics.imports.clone(),
        );
        metrics.oauth = OAuthMetrics::new(r);
        r.register("leader_election_master_status", "1 while this process leads", metrics.leading.clone());
        metrics
    }

    /// The counters of a controller.
    #[must_use]
    pub fn of(&self, name: &'static str) -> ControllerMetrics {
        let named = Named { name };
        ControllerMetrics {
            reconciles: self.reconciles.get_or_create_owned(&named),
            errors: self.errors.get_or_create_owned(&named),
            restarts: self.restarts.get_or_create_owned(&named),
            watch_errors: self.watch_errors.get_or_create_owned(&named),
            depth: self.depth.get_or_create_owned(&named),
        }
    }

    /// Where imports are counted.
    #[must_use]
    pub fn imports(&self) -> ImportMetrics {
        ImportMetrics { imports: self.imports.clone() }
    }

    /// Where logins and tokens are counted.
    #[must_use]
    pub fn oauth(&self) -> OAuthMetrics {
        self.oauth.clone()
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

/// Counts imports.
#[derive(Clone, Debug, Default)]
pub struct ImportMetrics {
    imports: Family<Import, Counter>,
}

impl ImportMetrics {
    /// Counts one image or repository.
    pub fn count(&self, scheduled: bool, good: bool) {
        let result = if good { "success" } else { "failure" };
        self.imports.get_or_create(&Import { scheduled, result }).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_carry_their_controller() {
        let metrics = Metrics::new();
        metrics.of("image-import").reconciles.inc();
        metrics.imports().count(true, false);
        let text = metrics.text().unwrap();
        assert!(text.contains("picoshift_controller_reconciles_total{name=\"image-import\"} 1\n"), "{text}");
        let import = "picoshift_image_imports_total{scheduled=\"true\",result=\"failure\"} 1\n";
        assert!(text.contains(import), "{text}");
        assert!(text.contains("leader_election_master_status 0\n"), "{text}");
    }
}
