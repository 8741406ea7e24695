//! Linux capabilities of a container.

use std::collections::BTreeSet;

use picoshift_machinery::FieldError;
use serde_json::json;

use super::Errors;
use crate::constraints::Scc;
use crate::pod::Capabilities;

/// What a container gets: its own, those that the SCC adds unless the container drops them, and those that it takes away.
/// Where nothing comes to it, its own are left as they are.
pub(super) fn complete(scc: &Scc, own: Option<&Capabilities>) -> Option<Capabilities> {
    let set = |list: Option<&Vec<String>>| list.into_iter().flatten().cloned().collect::<BTreeSet<_>>();
    let own_add = set(own.and_then(|own| own.add.as_ref()));
    let own_drop = set(own.and_then(|own| own.drop.as_ref()));
    let defaults = scc.default_add_capabilities.iter().filter(|name| !own_drop.contains(*name)).cloned();
    let add: BTreeSet<String> = own_add.iter().cloned().chain(defaults).collect();
    let drop: BTreeSet<String> = own_drop.iter().chain(&scc.required_drop_capabilities).cloned().collect();
    if add.len() == own_add.len() && drop.len() == own_drop.len() {
        return own.cloned();
    }
    let list = |set: BTreeSet<String>| (!set.is_empty()).then(|| set.into_iter().collect());
    Some(Capabilities { add: list(add), drop: list(drop) })
}

pub(super) fn check(scc: &Scc, path: &str, own: Option<&Capabilities>, errors: &mut Errors) {
    let Some(own) = own else {
        if !scc.default_add_capabilities.is_empty() || !scc.required_drop_capabilities.is_empty() {
            let detail = "required capabilities are not set on the securityContext";
            errors.push(FieldError::invalid(format!("{path}.capabilities"), &json!(null), detail));
        }
        return;
    };
    if scc.allowed_capabilities.iter().any(|name| name == "*") {
        return;
    }
    for name in own.add.iter().flatten() {
        if !scc.default_add_capabilities.contains(name) && !scc.allowed_capabilities.contains(name) {
            let field = format!("{path}.capabilities.add");
            errors.push(FieldError::invalid_str(field, name, "capability may not be added"));
        }
    }
    for name in &scc.required_drop_capabilities {
        if !own.drop.iter().flatten().any(|dropped| dropped == name) {
            let detail = format!("{name} is required to be dropped but was not found");
            errors.push(FieldError::invalid(format!("{path}.capabilities.drop"), &json!(own.drop), detail));
        }
    }
}
