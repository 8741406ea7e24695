//! What is wrong with clients, tokens and authorizations, in the real server's words and order
//! (`oauth-apiserver/pkg/oauth/apis/oauth/validation`).

use picoshift_machinery::names::{dns1123_label, dns1123_subdomain, path_segment};
use picoshift_machinery::oauth_token::PREFIX;
use picoshift_machinery::{FieldError, Object, scope};
use serde_json::Value;

use super::go_json::{ACCESS_TOKEN, AUTHORIZE_TOKEN, GoStruct};
use super::redirect_uri;
use super::resources::{number, strings};
use crate::groups::user::user_name;

/// Shortest name of a token's object.
const MIN_TOKEN_NAME: usize = 32;
/// Shortest inactivity timeout of a client's tokens.
pub(super) const MIN_INACTIVITY_SECONDS: i64 = 300;
const AUTHORIZATION_FORM: &str = "must be in the format <userName>:<clientName>";
/// The bootstrap administrator may have tokens, though no `User` can have that name.
const BOOTSTRAP_USER: &str = "kube:admin";

/// What is wrong with the name of a token's object.
pub(super) fn token_name(name: &str, _prefix: bool) -> Vec<String> {
    let errors = path_segment(name);
    if !errors.is_empty() {
        return errors;
    }
    if name.len() < MIN_TOKEN_NAME {
        return vec![format!("must be at least {MIN_TOKEN_NAME} characters long")];
    }
    if !name.starts_with(PREFIX) {
        return vec![format!("only the new format of tokens (prefixed with {PREFIX}) is allowed")];
    }
    Vec::new()
}

/// What is wrong with the name of an authorization.
pub(super) fn authorization_name(name: &str, _prefix: bool) -> Vec<String> {
    let errors = path_segment(name);
    if !errors.is_empty() {
        return errors;
    }
    match name.split_once(':') {
        Some((user, client)) if !user.is_empty() && !client.is_empty() => Vec::new(),
        _ => vec![AUTHORIZATION_FORM.to_owned()],
    }
}

/// Errors of a client, its metadata apart.
pub(super) fn client(client: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, uri) in strings(client, "redirectURIs").into_iter().enumerate() {
        if let Err(why) = redirect_uri::check(uri) {
            errors.push(FieldError::invalid_str(format!("redirectURIs[{at}]"), uri, why.to_string()));
        }
    }
    for (at, secret) in strings(client, "additionalSecrets").into_iter().enumerate() {
        if secret.is_empty() {
            errors.push(FieldError::invalid_str(format!("additionalSecrets[{at}]"), "", "may not be empty"));
        }
    }
    let restrictions = client.0.get("scopeRestrictions").and_then(Value::as_array);
    for (at, restriction) in restrictions.into_iter().flatten().enumerate() {
        errors.extend(scope_restriction(restriction, &format!("scopeRestrictions[{at}]")));
    }
    let age = number(client, "accessTokenMaxAgeSeconds");
    if age < 0 {
        let field = "accessTokenMaxAgeSeconds";
        errors.push(FieldError::invalid(field, &age.into(), "value cannot be negative"));
    }
    let timeout = number(client, "accessTokenInactivityTimeoutSeconds");
    let field = "accessTokenInactivityTimeoutSeconds";
    if timeout > 0 && timeout < MIN_INACTIVITY_SECONDS {
        let why = format!("The minimum valid timeout value is {MIN_INACTIVITY_SECONDS} seconds");
        errors.push(FieldError::invalid(field, &timeout.into(), why));
    }
    if timeout < 0 {
        errors.push(FieldError::invalid(field, &timeout.into(), "value cannot be negative"));
    }
    match client.str_at(&["grantMethod"]) {
        "" => errors.push(FieldError::required("grantMethod", "must be auto or prompt")),
        "auto" | "prompt" => {}
        other => errors.push(FieldError::not_supported("grantMethod", other, &["auto", "prompt"])),
    }
    errors
}

fn scope_restriction(restriction: &Value, field: &str) -> Vec<FieldError> {
    let list = |of: &Value, name: &str| -> Vec<String> {
        let list = of.get(name).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|text| Some(text.as_str()?.to_owned())).collect()
    };
    let literals = list(restriction, "literals");
    let role = restriction.get("clusterRole").filter(|role| !role.is_null());
    match (literals.is_empty(), role) {
        (false, None) => {
            let empty = literals.iter().enumerate().filter(|(_, literal)| literal.is_empty());
            empty
                .map(|(at, _)| {
                    FieldError::invalid_str(format!("{field}.literals[{at}]"), "", "may not be empty")
                })
                .collect()
        }
        (true, Some(role)) => ["roleNames", "namespaces"]
            .into_iter()
            .filter(|name| list(role, name).is_empty())
            .map(|name| FieldError::required(format!("{field}.clusterRole.{name}"), "won't match anything"))
            .collect(),
        _ => {
            let shown = super::go_json::restriction(restriction);
            let why = "exactly one of literals, clusterRole is required";
            vec![FieldError::new(picoshift_machinery::FieldErrorKind::Invalid, field, Some(shown), why)]
        }
    }
}

/// Errors of a new access token, its metadata apart.
pub(super) fn access_token(token: &Object) -> Vec<FieldError> {
    let mut errors = whose(token);
    errors.extend(user_uid(token, "userUID"));
    errors.extend(not_negative(token, "inactivityTimeoutSeconds"));
    errors.extend(redirect(token));
    errors.extend(not_negative(token, "expiresIn"));
    errors
}

/// Errors of a new authorization code, its metadata apart.
pub(super) fn authorize_token(token: &Object) -> Vec<FieldError> {
    let mut errors = whose(token);
    errors.extend(user_uid(token, "userUID"));
    errors.extend(redirect(token));
    errors.extend(code_challenge(token));
    let expires = number(token, "expiresIn");
    if expires <= 0 {
        errors.push(FieldError::invalid("expiresIn", &expires.into(), "must be greater than zero"));
    }
    errors
}

/// Errors of an authorization; `metadata` are those of its metadata.
pub(super) fn authorization(authorization: &Object, metadata: &[FieldError]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if metadata.is_empty() && authorization.name() != authorization_of(authorization) {
        errors.push(FieldError::invalid_str("metadata.name", authorization.name(), AUTHORIZATION_FORM));
    }
    errors.extend(whose(authorization));
    // The real server calls the field so here.
    errors.extend(user_uid(authorization, "useruid"));
    errors
}

/// The name that an authorization has to have.
pub(super) fn authorization_of(authorization: &Object) -> String {
    format!("{}:{}", authorization.str_at(&["userName"]), authorization.str_at(&["clientName"]))
}

/// What an update of an authorization may not change.
pub(super) fn authorization_changed(new: &Object, old: &Object) -> Vec<FieldError> {
    let changed = ["clientName", "userName", "userUID"].into_iter().filter_map(|field| {
        let value = new.str_at(&[field]);
        let same = value == old.str_at(&[field]);
        (!same).then(|| FieldError::invalid_str(field, value, format!("{field} is not a mutable field")))
    });
    changed.collect()
}

/// What an update of an access token may not change: anything but its inactivity timeout, which only rises or ends.
pub(super) fn access_token_changed(new: &Object, old: &Object) -> Vec<FieldError> {
    const FIELD: &str = "inactivityTimeoutSeconds";
    let (timeout, before) = (number(new, FIELD), number(old, FIELD));
    let mut errors = Vec::new();
    if timeout > 0 && timeout < before {
        let why = format!("cannot be less than the current value={before}");
        errors.push(FieldError::invalid(FIELD, &timeout.into(), why));
    }
    errors.extend(not_negative(new, FIELD));
    if before == 0 && timeout != 0 {
        errors.push(FieldError::invalid(FIELD, &timeout.into(), "cannot update non-timing-out token"));
    }
    errors.extend(immutable(new, old, &ACCESS_TOKEN, Some(FIELD)));
    errors
}

/// An authorization code never changes.
pub(super) fn authorize_token_changed(new: &Object, old: &Object) -> Vec<FieldError> {
    immutable(new, old, &AUTHORIZE_TOKEN, None)
}

/// The error of a change of any field but `free`; it has no path, and shows the whole object.
fn immutable(new: &Object, old: &Object, shape: &GoStruct, free: Option<&str>) -> Vec<FieldError> {
    let same = shape.fields().filter(|field| Some(*field) != free).all(|field| {
        let set = |object: &Object| object.0.get(field).filter(|value| !value.is_null()).cloned();
        set(new) == set(old)
    });
    if same {
        return Vec::new();
    }
    let kind = picoshift_machinery::FieldErrorKind::Invalid;
    vec![FieldError::new(kind, "[]", Some(shape.show(new)), "field is immutable")]
}

/// Errors of who asked for what, on whose behalf.
fn whose(token: &Object) -> Vec<FieldError> {
    let mut errors = name_field(token, "clientName", client_name);
    errors.extend(name_field(token, "userName", |name| match name {
        BOOTSTRAP_USER => Vec::new(),
        name => user_name(name, false),
    }));
    errors.extend(scope::validate(&strings(token, "scopes"), "scopes"));
    errors
}

fn name_field(token: &Object, field: &str, rule: impl Fn(&str) -> Vec<String>) -> Vec<FieldError> {
    let name = token.str_at(&[field]);
    if name.is_empty() {
        return vec![FieldError::required(field, "")];
    }
    let why = rule(name);
    if why.is_empty() { Vec::new() } else { vec![FieldError::invalid_str(field, name, why.join(", "))] }
}

fn client_name(name: &str) -> Vec<String> {
    if service_account(name).is_some() { Vec::new() } else { dns1123_subdomain(name) }
}

/// Namespace and name of a service account that is a user or client; `None` for any other.
pub(super) fn service_account(name: &str) -> Option<(&str, &str)> {
    let (namespace, name) = name.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let good = dns1123_label(namespace).is_empty() && dns1123_subdomain(name).is_empty();
    good.then_some((namespace, name))
}

fn user_uid(token: &Object, field: &str) -> Option<FieldError> {
    token.str_at(&["userUID"]).is_empty().then(|| FieldError::required(field, ""))
}

fn not_negative(token: &Object, field: &str) -> Option<FieldError> {
    let value = number(token, field);
    (value < 0).then(|| FieldError::invalid(field, &value.into(), "cannot be a negative value"))
}

fn redirect(token: &Object) -> Option<FieldError> {
    let uri = token.str_at(&["redirectURI"]);
    redirect_uri::check(uri).err().map(|why| FieldError::invalid_str("redirectURI", uri, why.to_string()))
}

fn code_challenge(token: &Object) -> Vec<FieldError> {
    let (challenge, method) = (token.str_at(&["codeChallenge"]), token.str_at(&["codeChallengeMethod"]));
    if challenge.is_empty() && method.is_empty() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
    if challenge.is_empty() {
        let why = "required if codeChallengeMethod is specified";
        errors.push(FieldError::required("codeChallenge", why));
    } else if !(43..=128).contains(&challenge.len()) || !challenge.bytes().all(legal) {
        let why = "must be 43-128 characters [a-zA-Z0-9.~_-]";
        errors.push(FieldError::invalid_str("codeChallenge", challenge, why));
    }
    match method {
        "" => {
            let why = "required if codeChallenge is specified";
            errors.push(FieldError::required("codeChallengeMethod", why));
        }
        "plain" | "S256" => {}
        other => {
            errors.push(FieldError::not_supported("codeChallengeMethod", other, &["plain", "S256"]));
        }
    }
    errors
}

#[cfg(test)]
mod tests;
