//! The parts of a query string that the server itself looks at.

use std::borrow::Cow;
use std::time::Duration;

use picoshift_machinery::names::path_segment;
use picoshift_machinery::query;
use picoshift_machinery::selector::FieldSelector;

/// What a query says about how the request is to be treated.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// `watch`: anything but `false` and `0`.
    pub watch: bool,
    /// The name that the field selector asks for.
    pub field_name: Option<String>,
    /// `timeout`, as sent.
    pub timeout: Option<String>,
}

impl Query {
    /// Reads a query string; what cannot be read counts as absent.
    #[must_use]
    pub fn read(query: Option<&str>) -> Self {
        let first = |name: &str| query::first(query, name);
        let name = |selector: Cow<'_, str>| {
            let selector = FieldSelector::parse(&selector).ok()?;
            let name = selector.exact("metadata.name").filter(|name| path_segment(name).is_empty());
            name.map(ToOwned::to_owned)
        };
        Self {
            watch: first("watch").is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false")),
            field_name: first("fieldSelector").and_then(name),
            timeout: first("timeout").filter(|text| !text.is_empty()).map(Cow::into_owned),
        }
    }

    /// The time that the client gives; `None` for none or zero.
    ///
    /// # Errors
    /// The text for a 400.
    pub fn time(&self) -> Result<Option<Duration>, String> {
        let Some(text) = &self.timeout else { return Ok(None) };
        duration(text)
            .map(|time| time.filter(|time| !time.is_zero()))
            .map_err(|why| format!("invalid timeout specified in the request URL - time: {why}"))
    }
}

/// Reads a duration as Go prints it: `1m30s`, `500ms`, `1.5h`, `0`. Negative ones give `None`.
fn duration(text: &str) -> Result<Option<Duration>, String> {
    let invalid = || format!("invalid duration {text:?}");
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(Some(Duration::ZERO));
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = 0.0_f64;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number = rest[..end].parse::<f64>().map_err(|_| invalid())?;
        rest = &rest[end..];
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "" => return Err(format!("missing unit in duration {text:?}")),
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            unit => return Err(format!("unknown unit {unit:?} in duration {text:?}")),
        };
        total += number * unit;
        rest = &rest[end..];
    }
    // Go's durations end at about 292 years.
    if !total.is_finite() || total > 9.2e9 {
        return Err(invalid());
    }
    Ok((!negative).then(|| Duration::from_secs_f64(total)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_what_concerns_the_server() {
        let read = Query::read(Some("watch=true&fieldSelector=metadata.name%3Da&timeout=30s"));
        assert_eq!(read, Query { watch: true, field_name: Some("a".into()), timeout: Some("30s".into()) });
        assert!(Query::read(Some("watch")).watch);
        assert!(!Query::read(Some("watch=0&watch=1")).watch);
        assert!(!Query::read(Some("watch=False")).watch);
        assert_eq!(Query::read(Some("fieldSelector=metadata.name!%3Da")).field_name, None);
        assert_eq!(Query::read(Some("fieldSelector=metadata.name%3Da%252Fb")).field_name, None);
        assert_eq!(Query::read(None), Query::default());
    }

    /// Else a caller who may list one name could list all: the same request, authorized as one thing and answered as
    /// another.
    #[test]
    fn a_name_counts_only_where_the_handler_sees_it() {
        for text in [
            "fieldSelector=&fieldSelector=metadata.name%3Da",
            "fieldSelector=metadata.name%3Da,metadata.name!%3Db;c",
            "fieldSelector=metadata.name%3Da,metadata.name!%3D%zz",
        ] {
            assert_eq!(Query::read(Some(text)).field_name, None, "{text}");
        }
        assert!(!Query::read(Some("watch=1;&limit=5")).watch);
        assert_eq!(Query::read(Some("timeout=&timeout=5s")).timeout, None);
    }

    #[test]
    fn durations_are_go_s() {
        let read = |text: &str| Query { timeout: Some(text.to_owned()), ..Query::default() }.time();
        assert_eq!(read("1m30s"), Ok(Some(Duration::from_secs(90))));
        assert_eq!(read("1.5h"), Ok(Some(Duration::from_secs(5400))));
        assert_eq!(read("250ms"), Ok(Some(Duration::from_millis(250))));
        assert_eq!(read("0s"), Ok(None));
        assert_eq!(read("-1s"), Ok(None));
        let wrong = |why: &str| Err(format!("invalid timeout specified in the request URL - time: {why}"));
        assert_eq!(read("30"), wrong("missing unit in duration \"30\""));
        assert_eq!(read("3d"), wrong("unknown unit \"d\" in duration \"3d\""));
        assert_eq!(read("soon"), wrong("invalid duration \"soon\""));
    }

    proptest! {
        #[test]
        fn any_query_is_read(text in "\\PC{0,60}") {
            let _ = Query::read(Some(&text)).time();
            let _ = duration(&text);
        }
    }
}
