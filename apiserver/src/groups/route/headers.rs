//! Rules of `spec.httpHeaders.actions`: which headers may be set to what.

use std::collections::HashSet;

use picoshift_machinery::{FieldError, FieldErrorKind};
use serde_json::Value;

use super::shown;
use super::view::{Tls, View};

const ACTIONS_MAX: usize = 20;
const NAME_MAX: usize = 255;
const VALUE_MAX: usize = 16384;
const PROTECTED: [&str; 4] = ["strict-transport-security", "proxy", "cookie", "set-cookie"];
const PROTECTED_TEXT: &str = "the following headers may not be modified using this API: strict-transport-security, proxy, cookie, set-cookie";
const NAME_TEXT: &str = "name must be a valid HTTP header name as defined in RFC 2616 section 4.2";

/// One direction of header actions.
#[derive(Clone, Copy)]
enum Direction {
    Request,
    Response,
}

impl Direction {
    fn word(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
        }
    }

    /// HAProxy's fetcher of headers.
    fn fetcher(self) -> &'static str {
        match self {
            Self::Request => "req.hdr",
            Self::Response => "res.hdr",
        }
    }
}

/// Errors of `spec.httpHeaders`, in upstream's order.
pub(super) fn validate(view: View<'_>) -> Vec<FieldError> {
    let lists = [Direction::Response, Direction::Request]
        .map(|direction| (direction, view.list(&["spec", "httpHeaders", "actions", direction.word()])));
    let mut errors = Vec::new();
    let any = lists.iter().any(|(_, list)| !list.is_empty());
    if any && view.tls().map(Tls::termination) == Some("passthrough") {
        errors.push(FieldError::invalid_str(
            "spec.tls.termination",
            "passthrough",
            "only edge and re-encrypt routes are supported for providing customized headers.",
        ));
    }
    for (direction, list) in lists {
        let field = format!("spec.httpHeaders.actions.{}", direction.word());
        if list.len() > ACTIONS_MAX {
            errors.push(FieldError::new(
                FieldErrorKind::Invalid,
                field,
                Some(shown::headers(list)),
                format!("{} headers list can't exceed {ACTIONS_MAX} items", direction.word()),
            ));
        } else {
            validate_list(direction, &field, list, &mut errors);
        }
    }
    errors
}

fn validate_list(direction: Direction, field: &str, list: &[Value], errors: &mut Vec<FieldError>) {
    let mut seen = HashSet::new();
    for (index, header) in list.iter().enumerate() {
        let field = format!("{field}[{index}]");
        let text = |path: &str| header.pointer(path).and_then(Value::as_str).unwrap_or("");
        let name = text("/name");
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(format!("{field}.name"), name));
        }
        errors.extend(name_error(format!("{field}.name"), name));
        let kind = text("/action/type");
        if !["Set", "Delete"].contains(&kind) {
            let why = "type must be \"Set\" or \"Delete\"";
            errors.push(FieldError::invalid_str(format!("{field}.action.type"), kind, why));
        }
        let set = header.pointer("/action/set").is_some_and(Value::is_object);
        if (kind == "Set") != set {
            errors.push(FieldError::required(
                format!("{field}.action.set"),
                "set is required when type is Set, and forbidden otherwise",
            ));
        }
        if set {
            let field = format!("{field}.action.set.value");
            errors.extend(value_error(direction, field, text("/action/set/value")));
        }
    }
}

fn name_error(field: String, name: &str) -> Option<FieldError> {
    if name.is_empty() {
        Some(FieldError::required(field, ""))
    } else if name.len() > NAME_MAX {
        let why = format!("name exceeds the maximum length, which is {NAME_MAX}");
        Some(FieldError::invalid_str(field, name, why))
    } else if PROTECTED.contains(&name.to_lowercase().as_str()) {
        Some(FieldError::forbidden(field, PROTECTED_TEXT))
    } else if !is_name(name) {
        Some(FieldError::invalid_str(field, name, NAME_TEXT))
    } else {
        None
    }
}

fn value_error(direction: Direction, field: String, value: &str) -> Option<FieldError> {
    if value.is_empty() {
        return Some(FieldError::required(field, ""));
    }
    if value.len() > VALUE_MAX {
        let why = format!("value exceeds the maximum length, which is {VALUE_MAX}");
        return Some(FieldError::invalid_str(field, value, why));
    }
    if is_value(direction, value) {
        return None;
    }
    let why = format!(
        "Either header value provided is not in correct format or the converter specified is not allowed. The dynamic header value  may use HAProxy's %[] syntax and otherwise must be a valid HTTP header value as defined in https://datatracker.ietf.org/doc/html/rfc7230#section-3.2 Sample fetchers allowed are {}, ssl_c_der. Converters allowed are lower, base64.",
        direction.fetcher()
    );
    Some(FieldError::invalid_str(field, value, why))
}

fn is_name(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-!#$%&'*+.^_`|~".contains(&b))
}

/// Plain text without control characters, where each `%` begins `%%` or a sample expression.
fn is_value(direction: Direction, value: &str) -> bool {
    let mut rest = value;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = match c {
            '%' => match after.strip_prefix('%').or_else(|| expression(direction, after)) {
                Some(after) => after,
                None => return false,
            },
            c if c.is_ascii_control() => return false,
            _ => after,
        };
    }
    true
}

/// `{flags}[fetcher,converter…]` behind a `%`: what follows it, or `None` where it is something else.
fn expression(direction: Direction, text: &str) -> Option<&str> {
    let text = match text.strip_prefix('{') {
        None => text,
        Some(flags) => {
            let (flags, after) = flags.split_once('}')?;
            flags.split(',').all(is_flag).then_some(after)?
        }
    };
    let (sample, after) = text.strip_prefix('[')?.split_once(']')?;
    let mut parts = sample.split(',');
    let fetched = parts.next()?;
    let legal = fetched == "ssl_c_der" || is_fetch(direction, fetched);
    (legal && parts.all(|converter| ["lower", "base64"].contains(&converter))).then_some(after)
}

fn is_flag(flag: &str) -> bool {
    matches!(flag.strip_prefix(['-', '+']).unwrap_or(flag), "Q" | "X" | "E")
}

fn is_fetch(direction: Direction, text: &str) -> bool {
    let header = text
        .strip_prefix(direction.fetcher())
        .and_then(|rest| rest.strip_prefix('('))
        .and_then(|rest| rest.strip_suffix(')'));
    header
        .is_some_and(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'))
}

#[cfg(test)]
mod tests {
    use super::{Direction, is_value};

    #[test]
    fn values_follow_haproxys_format() {
        for value in
            ["a b", "100%%", "%[req.hdr(X-A),lower,base64]", "%{+Q,-X}[ssl_c_der]", "é", "x%[req.hdr(a)]y%%"]
        {
            assert!(is_value(Direction::Request, value), "{value}");
        }
        for value in [
            "%",
            "%x",
            "a\nb",
            "\u{7f}",
            "%[res.hdr(X-A)]",
            "%[req.hdr()]",
            "%[req.hdr(a_b)]",
            "%{}[ssl_c_der]",
            "%{Q,}[ssl_c_der]",
            "%[ssl_c_der,upper]",
            "%[ssl_c_der",
            "%{+-Q}[ssl_c_der]",
            "%[]",
        ] {
            assert!(!is_value(Direction::Request, value), "{value}");
        }
        assert!(is_value(Direction::Response, "%[res.hdr(X-A)]"));
        assert!(!is_value(Direction::Response, "%[req.hdr(X-A)]"));
    }
}
