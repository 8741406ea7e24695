//! Between RBAC's objects and OpenShift's older form of them
//! (`openshift-apiserver/pkg/authorization/apis/authorization/{rbacconversion,v1}`).

use std::collections::BTreeSet;

use picoshift_machinery::field_error::quote;
use picoshift_machinery::names::{dns1123_label, dns1123_subdomain};
use picoshift_machinery::{Object, Status};
use serde_json::{Map, Value, json};

use crate::authz::rbac::Rule;
use crate::groups::user::{group_name, user_name};
use crate::rest::query::without_reason;

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
const RBAC_VERSION: &str = "rbac.authorization.k8s.io/v1";
const OUR_VERSION: &str = "authorization.openshift.io/v1";
/// Of RBAC: whether the bootstrap roles are kept as they are. OpenShift's annotation says the opposite.
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
const PROTECT: &str = "openshift.io/reconcile-protect";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// A Role or ClusterRole in OpenShift's form.
pub(super) fn role_from_rbac(mut role: Object) -> Object {
    let rules = list(role.0.remove("rules"));
    let rules = rules.into_iter().filter_map(|rule| serde_json::from_value::<Rule>(rule).ok());
    let rules: Vec<Value> = rules.map(|r| self::rule(&r)).collect();
    role.0.insert("rules".to_owned(), rules.into());
    from_rbac(role)
}

/// A Role or ClusterRole in RBAC's form.
pub(super) fn role_to_rbac(mut role: Object) -> Object {
    let mut rules = list(role.0.remove("rules"));
    // A rule with a restriction has never allowed anything; without it, it would.
    rules.retain(|rule| rule["attributeRestrictions"].is_null());
    let rules = rules.into_iter().filter_map(|rule| serde_json::from_value::<Rule>(rule).ok());
    let rules: Vec<Value> = rules.flat_map(rules_to_rbac).collect();
    role.0.insert("rules".to_owned(), rules.into());
    to_rbac(role)
}

/// A binding in OpenShift's form.
///
/// # Errors
/// 500 for kinds that RBAC does not have.
pub(super) fn binding_from_rbac(mut binding: Object) -> Result<Object, Status> {
    let namespace = binding.namespace().to_owned();
    let subjects = list(binding.0.remove("subjects"));
    let subjects = subjects.iter().map(subject_from_rbac).collect::<Result<Vec<_>, _>>()?;
    let (mut users, mut groups) = (Vec::new(), Vec::new());
    for subject in &subjects {
        let name = text(subject, "name");
        match text(subject, "kind") {
            "ServiceAccount" => {
                let own = text(subject, "namespace");
                let own = if own.is_empty() { namespace.as_str() } else { own };
                if !own.is_empty() {
                    users.push(format!("{SERVICE_ACCOUNT}{own}:{name}"));
                }
            }
            "User" | "SystemUser" => users.push(name.to_owned()),
            _ => groups.push(name.to_owned()),
        }
    }
    let role = binding.0.remove("roleRef").unwrap_or_default();
    let role = match (text(&role, "kind"), text(&role, "name")) {
        ("ClusterRole", name) => reference(&[("name", name)]),
        ("Role", name) => reference(&[("name", name), ("namespace", &namespace)]),
        (kind, name) => {
            let why = format!("invalid kind {} for rbac role ref {}", quote(kind), quote(name));
            return Err(without_reason(why));
        }
    };
    // None is null, not an empty list.
    let names = |names: Vec<String>| if names.is_empty() { Value::Null } else { json!(names) };
    binding.0.insert("userNames".to_owned(), names(users));
    binding.0.insert("groupNames".to_owned(), names(groups));
    binding.0.insert("subjects".to_owned(), subjects.into());
    binding.0.insert("roleRef".to_owned(), role);
    Ok(from_rbac(binding))
}

/// A binding in RBAC's form. `userNames` and `groupNames` count before `subjects`, where either is there.
///
/// # Errors
/// 500 without a reason, as upstream: a role of another namespace, a kind of subject that is none.
pub(super) fn binding_to_rbac(mut binding: Object, cluster: bool) -> Result<Object, Status> {
    let role = binding.0.remove("roleRef").unwrap_or_default();
    let (name, elsewhere) = (binding.name(), text(&role, "namespace"));
    if cluster && !elsewhere.is_empty() {
        return Err(without_reason(format!(
            "invalid origin cluster role binding {name}: attempts to reference role in namespace {} instead of cluster scope",
            quote(elsewhere)
        )));
    }
    if !elsewhere.is_empty() && elsewhere != binding.namespace() {
        return Err(without_reason(format!(
            "invalid origin role binding {name}: attempts to reference role in namespace {} instead of current namespace {}",
            quote(elsewhere),
            quote(binding.namespace())
        )));
    }
    let kind = if elsewhere.is_empty() { "ClusterRole" } else { "Role" };
    let role = json!({"apiGroup": RBAC_GROUP, "kind": kind, "name": text(&role, "name")});
    let (users, groups) = (binding.0.remove("userNames"), binding.0.remove("groupNames"));
    let subjects = list(binding.0.remove("subjects"));
    let named = |names: &Option<Value>| names.as_ref().is_some_and(Value::is_array);
    let subjects = if named(&users) || named(&groups) {
        let users = texts(users).into_iter().map(|user| subject_of_user(&user));
        users.chain(texts(groups).into_iter().map(|group| rbac_subject("Group", &group))).collect()
    } else {
        subjects.iter().map(subject_to_rbac).collect::<Result<Vec<_>, _>>()?
    };
    binding.0.insert("roleRef".to_owned(), role);
    binding.0.insert("subjects".to_owned(), subjects.into());
    Ok(to_rbac(binding))
}

/// A rule in OpenShift's form: sorted, each word once.
pub(super) fn rule(rule: &Rule) -> Value {
    let mut out = json!({
        "verbs": set(&rule.verbs),
        "attributeRestrictions": null,
        "resources": set(&rule.resources),
    });
    if !rule.api_groups.is_empty() {
        out["apiGroups"] = json!(rule.api_groups);
    }
    for (field, list) in
        [("resourceNames", &rule.resource_names), ("nonResourceURLs", &rule.non_resource_urls)]
    {
        if !list.is_empty() {
            out[field] = json!(set(list));
        }
    }
    out
}

/// A rule in RBAC's form, where resources and paths are rules of their own. Rules of old that name no group are about the
/// core group; the one that allows all is about all groups.
fn rules_to_rbac(mut rule: Rule) -> Vec<Value> {
    let all = |list: &[String]| matches!(list, [one] if one == "*");
    if rule.api_groups.is_empty() && !rule.resources.is_empty() {
        let everything = all(&rule.verbs)
            && all(&rule.resources)
            && rule.resource_names.is_empty()
            && rule.non_resource_urls.is_empty();
        rule.api_groups = vec![if everything { "*" } else { "" }.to_owned()];
    }
    let mut whole = json!({"verbs": set(&rule.verbs)});
    let paths = json!({"verbs": set(&rule.verbs), "nonResourceURLs": set(&rule.non_resource_urls)});
    let of_resources =
        !(rule.api_groups.is_empty() && rule.resources.is_empty() && rule.resource_names.is_empty());
    let of_paths = !rule.non_resource_urls.is_empty();
    if of_paths && !of_resources {
        return vec![paths];
    }
    for (field, list) in [("resources", &rule.resources), ("resourceNames", &rule.resource_names)] {
        if !list.is_empty() {
            whole[field] = json!(set(list));
        }
    }
    if !rule.api_groups.is_empty() {
        whole["apiGroups"] = json!(rule.api_groups);
    }
    if of_paths { vec![whole, paths] } else { vec![whole] }
}

/// Each word once, sorted.
fn set(words: &[String]) -> BTreeSet<&str> {
    words.iter().map(String::as_str).collect()
}

fn subject_from_rbac(subject: &Value) -> Result<Value, Status> {
    let name = text(subject, "name");
    let system = |wrong: Vec<String>, kind: &'static str, system: &'static str| {
        reference(&[("kind", if wrong.is_empty() { kind } else { system }), ("name", name)])
    };
    Ok(match text(subject, "kind") {
        "ServiceAccount" => {
            let namespace = text(subject, "namespace");
            reference(&[("kind", "ServiceAccount"), ("name", name), ("namespace", namespace)])
        }
        "User" => system(user_name(name, false), "User", "SystemUser"),
        "Group" => system(group_name(name, false), "Group", "SystemGroup"),
        kind => return Err(without_reason(format!("invalid kind for rbac subject: {}", quote(kind)))),
    })
}

fn subject_to_rbac(subject: &Value) -> Result<Value, Status> {
    let name = text(subject, "name");
    Ok(match text(subject, "kind") {
        "ServiceAccount" => service_account(text(subject, "namespace"), name),
        "User" | "SystemUser" => rbac_subject("User", name),
        "Group" | "SystemGroup" => rbac_subject("Group", name),
        kind => return Err(without_reason(format!("invalid kind for origin subject: {}", quote(kind)))),
    })
}

/// A user of `userNames`, where service accounts have their user names.
fn subject_of_user(user: &str) -> Value {
    let account = user.strip_prefix(SERVICE_ACCOUNT).and_then(|rest| rest.split_once(':'));
    let well_formed = |(namespace, name): &(&str, &str)| {
        dns1123_label(namespace).is_empty() && dns1123_subdomain(name).is_empty()
    };
    match account.filter(well_formed) {
        Some((namespace, name)) => service_account(namespace, name),
        None => rbac_subject("User", user),
    }
}

fn rbac_subject(kind: &str, name: &str) -> Value {
    json!({"apiGroup": RBAC_GROUP, "kind": kind, "name": name})
}

fn service_account(namespace: &str, name: &str) -> Value {
    reference(&[("kind", "ServiceAccount"), ("name", name), ("namespace", namespace)])
}

/// An object reference without its empty fields.
fn reference(fields: &[(&str, &str)]) -> Value {
    let set = fields.iter().filter(|(_, text)| !text.is_empty());
    Value::Object(set.map(|(field, text)| ((*field).to_owned(), (*text).into())).collect())
}

fn from_rbac(mut object: Object) -> Object {
    object.0.insert("apiVersion".to_owned(), OUR_VERSION.into());
    turn_annotation(&mut object, AUTO_UPDATE, PROTECT);
    object
}

fn to_rbac(mut object: Object) -> Object {
    object.0.insert("apiVersion".to_owned(), RBAC_VERSION.into());
    turn_annotation(&mut object, PROTECT, AUTO_UPDATE);
    object
}

/// `from: "true"` becomes `to: "false"`, and the other way round; any other text stays where it is.
fn turn_annotation(object: &mut Object, from: &str, to: &str) {
    let turned = match object.annotation(from) {
        Some("true") => "false",
        Some("false") => "true",
        _ => return,
    };
    if let Some(annotations) = object.metadata_mut().get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(from);
        annotations.insert(to.to_owned(), turned.into());
    }
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

fn texts(value: Option<Value>) -> Vec<String> {
    list(value).iter().filter_map(|text| text.as_str().map(ToOwned::to_owned)).collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.as_object().and_then(|map: &Map<String, Value>| map.get(field)?.as_str()).unwrap_or_default()
}
