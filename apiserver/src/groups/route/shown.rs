//! Values of routes as messages show them: as Go encodes the structs, and private keys never.

use serde_json::Value;

use super::view::Tls;

/// What stands for a private key in messages.
pub(super) const KEY: &str = "redacted key data";

/// `spec.tls` as Go encodes it.
pub(super) fn tls(tls: Tls<'_>) -> String {
    let mut fields = vec![format!("\"termination\":{}", text(tls.termination()))];
    for field in
        ["certificate", "key", "caCertificate", "destinationCACertificate", "insecureEdgeTerminationPolicy"]
    {
        let value = tls.text(field);
        if !value.is_empty() {
            fields.push(format!("\"{field}\":{}", text(material(field, value))));
        }
    }
    if tls.external().is_some() {
        fields.push(format!("\"externalCertificate\":{}", external(tls.external())));
    }
    format!("{{{}}}", fields.join(","))
}

/// One certificate field of `spec.tls`.
pub(super) fn material<'a>(field: &str, value: &'a str) -> &'a str {
    if field == "key" && !value.is_empty() { KEY } else { value }
}

/// `spec.tls.externalCertificate`.
pub(super) fn external(reference: Option<&Value>) -> String {
    let Some(reference) = reference else { return "null".to_owned() };
    match reference.get("name").and_then(Value::as_str) {
        Some(name) if !name.is_empty() => format!("{{\"name\":{}}}", text(name)),
        _ => "{}".to_owned(),
    }
}

/// A list of `spec.httpHeaders.actions`.
pub(super) fn headers(list: &[Value]) -> String {
    let at = |value: &Value, path: &str| text(value.pointer(path).and_then(Value::as_str).unwrap_or(""));
    let items: Vec<String> = list
        .iter()
        .map(|header| {
            let set = match header.pointer("/action/set") {
                Some(Value::Object(_)) => {
                    format!(",\"set\":{{\"value\":{}}}", at(header, "/action/set/value"))
                }
                _ => String::new(),
            };
            let (name, kind) = (at(header, "/name"), at(header, "/action/type"));
            format!("{{\"name\":{name},\"action\":{{\"type\":{kind}{set}}}}}")
        })
        .collect();
    format!("[{}]", items.join(","))
}

/// A text as `encoding/json` writes it, which escapes what HTML would read.
fn text(value: &str) -> String {
    Value::from(value)
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}
