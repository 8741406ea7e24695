//! A borrowed, typed reading of a route; a field of a wrong type reads as absent.

use picoshift_machinery::Object;
use serde_json::{Map, Value};

/// Fields of `spec.tls` that hold certificate material.
pub(super) const MATERIAL: [&str; 4] = ["caCertificate", "certificate", "destinationCACertificate", "key"];

/// A route.
#[derive(Clone, Copy)]
pub(super) struct View<'a>(pub(super) &'a Object);

impl<'a> View<'a> {
    pub(super) fn host(self) -> &'a str {
        self.0.str_at(&["spec", "host"])
    }

    pub(super) fn subdomain(self) -> &'a str {
        self.0.str_at(&["spec", "subdomain"])
    }

    pub(super) fn path(self) -> &'a str {
        self.0.str_at(&["spec", "path"])
    }

    pub(super) fn wildcard_policy(self) -> &'a str {
        self.0.str_at(&["spec", "wildcardPolicy"])
    }

    /// `spec.to` and `spec.alternateBackends`.
    pub(super) fn to(self) -> Backend<'a> {
        Backend(self.0.at(&["spec", "to"]))
    }

    pub(super) fn alternates(self) -> impl ExactSizeIterator<Item = Backend<'a>> {
        self.list(&["spec", "alternateBackends"]).iter().map(|value| Backend(Some(value)))
    }

    /// `spec.port.targetPort`; the outer level is whether there is a port at all.
    pub(super) fn target_port(self) -> Option<Option<&'a Value>> {
        let port = self.0.at(&["spec", "port"])?.as_object()?;
        Some(port.get("targetPort"))
    }

    pub(super) fn tls(self) -> Option<Tls<'a>> {
        self.0.at(&["spec", "tls"])?.as_object().map(Tls)
    }

    /// The list at a path, empty where there is none.
    pub(super) fn list(self, path: &[&str]) -> &'a [Value] {
        self.0.at(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
}

/// A target of a route.
#[derive(Clone, Copy)]
pub(super) struct Backend<'a>(Option<&'a Value>);

impl<'a> Backend<'a> {
    pub(super) fn kind(self) -> &'a str {
        self.text("kind")
    }

    pub(super) fn name(self) -> &'a str {
        self.text("name")
    }

    /// The weight as sent; `None` where absent or null.
    pub(super) fn weight(self) -> Option<&'a Value> {
        self.0?.get("weight").filter(|value| !value.is_null())
    }

    fn text(self, field: &str) -> &'a str {
        self.0.and_then(|value| value.get(field)).and_then(Value::as_str).unwrap_or("")
    }
}

/// `spec.tls`.
#[derive(Clone, Copy)]
pub(super) struct Tls<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Tls<'a> {
    pub(super) fn termination(self) -> &'a str {
        self.text("termination")
    }

    pub(super) fn insecure_policy(self) -> &'a str {
        self.text("insecureEdgeTerminationPolicy")
    }

    /// `externalCertificate`, when it is set at all.
    pub(super) fn external(self) -> Option<&'a Value> {
        self.0.get("externalCertificate").filter(|value| !value.is_null())
    }

    /// Name of the external certificate's secret, empty for none.
    pub(super) fn external_name(self) -> &'a str {
        self.external().and_then(|value| value.get("name")).and_then(Value::as_str).unwrap_or("")
    }

    /// Whether any certificate, key or secret is given.
    pub(super) fn has_material(self) -> bool {
        MATERIAL.iter().any(|field| !self.text(field).is_empty()) || !self.external_name().is_empty()
    }

    pub(super) fn text(self, field: &str) -> &'a str {
        self.0.get(field).and_then(Value::as_str).unwrap_or("")
    }
}
