//! The description of routes, and their table row (`openshift-apiserver/pkg/route/printers`).

use picoshift_machinery::GroupVersionKind;
use serde_json::Value;

use super::GROUP;
use super::view::{Backend, Tls, View};
use crate::resource::column::{NAME, text};
use crate::resource::{Resource, Subresource, Verb};

/// `routes`. The field selector `spec.subdomain` matches here; the real server accepts it and finds nothing.
pub static ROUTES: Resource = Resource {
    gvk: GroupVersionKind { group: GROUP, version: "v1", kind: "Route" },
    plural: "routes",
    singular: "route",
    namespaced: true,
    verbs: Verb::ALL,
    short_names: &[],
    categories: &["all"],
    subresources: &[Subresource {
        name: "status",
        verbs: &[Verb::Get, Verb::Patch, Verb::Update],
        answers: None,
    }],
    columns: &[
        NAME,
        text(
            "Host/Port",
            "host is an alias/DNS that points to the service. Optional. If not specified a route name will typically be automatically chosen. Must follow DNS952 subdomain conventions.",
        ),
        text("Path", "path that the router watches for, to route traffic for to the service. Optional"),
        text("Services", "Primary and alternate route backends."),
        text(
            "Port",
            "If specified, the port to be used by the router. Most routers will use all endpoints exposed by the service by default - set this value to instruct routers which port to use.",
        ),
        text("Termination", "Indicates termination type."),
        text(
            "Wildcard",
            "Wildcard policy if any for the route. Currently only 'Subdomain' or 'None' is allowed.",
        ),
    ],
    field_labels: &["spec.host", "spec.path", "spec.subdomain", "spec.to.name"],
    garbage_collected: true,
    bare: false,
    schema: "com.github.openshift.api.route.v1.Route",
};

/// The cells of a route.
pub(super) fn row(view: View<'_>) -> Vec<Value> {
    [
        view.0.name().to_owned(),
        host(view),
        view.path().to_owned(),
        services(view),
        port(view),
        termination(view),
        view.wildcard_policy().to_owned(),
    ]
    .into_iter()
    .map(Value::String)
    .collect()
}

/// The first admitted host, `spec.host` before others, with how many more there are; or why there is none.
fn host(view: View<'_>) -> String {
    let wanted = view.host();
    let Some(ingress) = view.0.at(&["status", "ingress"]).and_then(Value::as_array) else {
        return wanted.to_owned();
    };
    let (mut host, mut matched, mut reason) = (wanted, false, "");
    let (mut admitted, mut rejected) = (0_usize, 0_usize);
    for entry in ingress {
        let conditions = entry.get("conditions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let Some(condition) = conditions.iter().find(|condition| text_at(condition, "type") == "Admitted")
        else {
            continue;
        };
        match text_at(condition, "status") {
            "True" => {
                admitted += 1;
                if !matched {
                    host = text_at(entry, "host");
                    matched = host == wanted;
                }
            }
            "False" => {
                rejected += 1;
                reason = text_at(condition, "reason");
            }
            _ => {}
        }
    }
    match (admitted, rejected) {
        (0, 0) => "Pending".to_owned(),
        (0, _) => reason.to_owned(),
        (1, 0) => host.to_owned(),
        (more, 0) => format!("{host} ... {} more", more - 1),
        (_, rejected) => format!("{host} ... {rejected} rejected"),
    }
}

fn text_at<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or("")
}

fn services(view: View<'_>) -> String {
    let backends: Vec<Backend<'_>> = std::iter::once(view.to()).chain(view.alternates()).collect();
    let weight = |backend: &Backend<'_>| backend.weight().and_then(Value::as_i64);
    let total = backends.iter().filter_map(weight).fold(0_i64, i64::saturating_add);
    let shown = backends.iter().map(|backend| {
        let name = backend.name();
        match weight(backend) {
            None => name.to_owned(),
            Some(_) if backends.len() == 1 && total != 0 => name.to_owned(),
            Some(weight) => {
                let share = weight.saturating_mul(100).checked_div(total).unwrap_or(0);
                format!("{name}({share}%)")
            }
        }
    });
    shown.collect::<Vec<_>>().join(",")
}

fn port(view: View<'_>) -> String {
    match view.target_port() {
        None => "<all>".to_owned(),
        Some(Some(Value::String(name))) => name.clone(),
        Some(Some(Value::Number(number))) => number.to_string(),
        Some(_) => "0".to_owned(),
    }
}

fn termination(view: View<'_>) -> String {
    let (termination, policy) =
        view.tls().map_or(("", ""), |tls: Tls<'_>| (tls.termination(), tls.insecure_policy()));
    match (termination, policy) {
        ("", "") => String::new(),
        ("", policy) => format!("default/{policy}"),
        (termination, "") => termination.to_owned(),
        (termination, policy) => format!("{termination}/{policy}"),
    }
}
