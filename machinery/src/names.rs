//! Names and their rules: `k8s.io/apimachinery/pkg/util/validation`, with its texts.

const LABEL_TEXT: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_TEXT: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED_TEXT: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE_TEXT: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Longest DNS label.
pub const LABEL_MAX: usize = 63;
/// Longest DNS subdomain.
pub const SUBDOMAIN_MAX: usize = 253;

/// Errors of a DNS-1123 label, in upstream's order.
#[must_use]
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > LABEL_MAX {
        errors.push(too_long(LABEL_MAX));
    }
    if !is_dns_label(value) {
        errors.push(if is_dns_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            LABEL_TEXT.to_owned()
        });
    }
    errors
}

/// Errors of a DNS-1123 subdomain.
#[must_use]
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > SUBDOMAIN_MAX {
        errors.push(too_long(SUBDOMAIN_MAX));
    }
    if !is_dns_subdomain(value) {
        errors.push(SUBDOMAIN_TEXT.to_owned());
    }
    errors
}

/// A qualified name (`prefix/name` or `name`), as label and annotation keys and finalizers are.
///
/// # Errors
/// All that is wrong, joined by `; `.
pub fn qualified_name(value: &str) -> Result<(), String> {
    let errors = qualified_name_errors(value);
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
}

/// All that is wrong with a qualified name.
#[must_use]
pub fn qualified_name_errors(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let parts: Vec<&str> = value.split('/').collect();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                errors.extend(dns1123_subdomain(prefix).into_iter().map(|e| format!("prefix part {e}")));
            }
            *name
        }
        _ => {
            errors.push(
                "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')".to_owned(),
            );
            return errors;
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX {
        errors.push(format!("name part {}", too_long(LABEL_MAX)));
    }
    if !is_word(name) {
        errors.push(QUALIFIED_TEXT.to_owned());
    }
    errors
}

/// A label's value.
///
/// # Errors
/// All that is wrong, joined by `; `.
pub fn label_value(value: &str) -> Result<(), String> {
    let mut errors = Vec::new();
    if value.len() > LABEL_MAX {
        errors.push(too_long(LABEL_MAX));
    }
    if !value.is_empty() && !is_word(value) {
        errors.push(LABEL_VALUE_TEXT.to_owned());
    }
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
}

/// Errors of a name as a path segment: no `.`, `..`, `/`, `%`.
#[must_use]
pub fn path_segment(value: &str) -> Vec<String> {
    if value == "." || value == ".." {
        return vec![format!("may not be '{value}'")];
    }
    ['/', '%'].iter().filter(|c| value.contains(**c)).map(|c| format!("may not contain '{c}'")).collect()
}

fn too_long(max: usize) -> String {
    format!("must be no more than {max} characters")
}

fn is_dns_label(value: &str) -> bool {
    let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = value.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(a), Some(b)) if edge(*a) && edge(*b))
        && bytes.iter().all(|b| edge(*b) || *b == b'-')
}

fn is_dns_subdomain(value: &str) -> bool {
    value.split('.').all(is_dns_label)
}

/// `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`.
fn is_word(value: &str) -> bool {
    let bytes = value.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(a), Some(b)) if a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn judges_names_with_upstreams_texts() {
        assert!(dns1123_label("my-name").is_empty());
        assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
        assert_eq!(dns1123_label("Bad_Name"), [LABEL_TEXT]);
        assert_eq!(dns1123_label(&"a".repeat(64)), ["must be no more than 63 characters"]);
        assert!(dns1123_subdomain("a.b-c.d").is_empty());
        assert_eq!(dns1123_subdomain("a..b"), [SUBDOMAIN_TEXT]);
        assert!(qualified_name("example.com/My_Name").is_ok());
        assert_eq!(qualified_name("/x"), Err("prefix part must be non-empty".to_owned()));
        assert!(qualified_name("a/b/c").unwrap_err().starts_with("a qualified name must consist"));
        assert!(label_value("").is_ok() && label_value("A.b_c-1").is_ok() && label_value("-a").is_err());
        assert_eq!(path_segment("a/b%"), ["may not contain '/'", "may not contain '%'"]);
        assert_eq!(path_segment(".."), ["may not be '..'"]);
    }

    proptest! {
        #[test]
        fn agrees_with_the_published_patterns(text in "[a-zA-Z0-9._/-]{0,12}") {
            let label = |t: &str| !t.is_empty() && !t.starts_with('-') && !t.ends_with('-')
                && t.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            prop_assert_eq!(dns1123_label(&text).is_empty(), label(&text));
            prop_assert_eq!(dns1123_subdomain(&text).is_empty(), text.split('.').all(label));
        }
    }
}
