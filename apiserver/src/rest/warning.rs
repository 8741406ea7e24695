//! `Warning` headers, bounded as kube-apiserver bounds them (`filters/warning.go`): a body with many unknown fields
//! must not make headers that no client takes.

use http::{HeaderMap, HeaderValue, header};

/// Most characters of all warnings together.
const TOTAL: usize = 4 * 1024;
/// Most characters of one warning, once the total is over the limit.
const EACH: usize = 256;

/// The warnings of a request: each once, and not many more than an answer carries.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    texts: Vec<String>,
    /// How much of [`TOTAL`] the texts take at least.
    size: usize,
}

impl Warnings {
    /// Adds a warning, where it can still be told.
    pub(super) fn add(&mut self, text: String) {
        if self.size > TOTAL || self.texts.contains(&text) {
            return;
        }
        self.size += shown(&text).take(EACH).count().max(1);
        self.texts.push(text);
    }

    /// Takes the texts.
    pub(super) fn take(&mut self) -> Vec<String> {
        std::mem::take(self).texts
    }
}

/// The characters of a text that are sent.
fn shown(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| !c.is_control())
}

/// Adds `Warning: 299 - "text"` for each text; control characters are left out.
pub(super) fn add(warnings: &[String], headers: &mut HeaderMap) {
    let texts: Vec<String> = warnings.iter().map(|text| shown(text).collect()).collect();
    let all = texts.iter().map(|text| text.chars().count()).sum::<usize>();
    let each = if all > TOTAL { EACH } else { usize::MAX };
    let mut left = TOTAL;
    for text in texts {
        let length = text.chars().count().min(each);
        if length > left {
            break;
        }
        left -= length;
        let text: String = text.chars().take(each).collect();
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{text}\"").as_bytes()) {
            headers.append(header::WARNING, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(warnings: &[String]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        add(warnings, &mut headers);
        let text = |value: &HeaderValue| String::from_utf8(value.as_bytes().to_vec()).unwrap();
        headers.get_all(header::WARNING).iter().map(text).collect()
    }

    #[test]
    fn any_letters_arrive_quoted() {
        let seen = added(&["unknown field \"spec.größe\"".to_owned(), "a\r\nb\\".to_owned()]);
        assert_eq!(seen, [r#"299 - "unknown field \"spec.größe\"""#, r#"299 - "ab\\""#]);
    }

    #[test]
    fn what_is_kept_is_what_is_sent() {
        let given: Vec<String> = (0..10_000).map(|n| format!("unknown field \"spec.f{}\"", n / 2)).collect();
        let mut warnings = Warnings::default();
        given.iter().for_each(|text| warnings.add(text.clone()));
        let kept = warnings.take();
        assert!(kept.len() < 300, "{}", kept.len());
        let mut once = given.clone();
        once.dedup();
        assert_eq!(added(&kept), added(&once));
        assert_eq!(warnings.take(), [""; 0]);
    }

    #[test]
    fn many_or_long_ones_stay_small() {
        let many: Vec<String> = (0..5000).map(|n| format!("unknown field \"spec.f{n}\"")).collect();
        let seen = added(&many);
        assert!(!seen.is_empty() && seen.len() < many.len());
        assert!(seen.iter().map(String::len).sum::<usize>() < 3 * TOTAL);
        let long = added(&["x".repeat(10_000), "short".to_owned()]);
        assert_eq!((long[0].len(), long[1].as_str()), (EACH + 8, "299 - \"short\""));
    }
}
