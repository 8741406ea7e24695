//! RFC 3339 times as `metav1.Time` reads and writes them, with the errors of Go's `time.Parse`.

use jiff::Timestamp;
use picoshift_machinery::field_error::quote;
use serde_json::Value;

const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";

/// Why a text is no time; Go's words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TimeError(pub(super) String);

/// A time in UTC and whole seconds; null for the zero time, which is never written.
pub(super) fn normalize(text: &str) -> Result<Value, TimeError> {
    check(text)?;
    let out_of_range = || failure(text, ": day out of range");
    let time: Timestamp = text.parse().map_err(|_| out_of_range())?;
    let seconds = Timestamp::from_second(time.as_duration().as_secs()).map_err(|_| out_of_range())?;
    let written = seconds.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    Ok(if written == "0001-01-01T00:00:00Z" { Value::Null } else { written.into() })
}

fn failure(text: &str, why: &str) -> TimeError {
    TimeError(format!("parsing time {}{why}", quote(text)))
}

/// Goes through the layout element by element, as Go does, so that the error names the same element.
fn check(text: &str) -> Result<(), TimeError> {
    let mut rest = text;
    let cannot = |rest: &str, element: &str| {
        failure(text, &format!(" as {}: cannot parse {} as {}", quote(LAYOUT), quote(rest), quote(element)))
    };
    // Element of the layout, digits, name and range where Go checks it.
    let elements: [(&str, usize, &str, u32, u32); 6] = [
        ("2006", 4, "", 0, 9999),
        ("01", 2, "month", 1, 12),
        ("02", 2, "day", 0, 99),
        ("15", 2, "hour", 0, 23),
        ("04", 2, "minute", 0, 59),
        ("05", 2, "second", 0, 59),
    ];
    let mut date = [0u32; 6];
    for (at, (element, digits, name, min, max)) in elements.into_iter().enumerate() {
        if let Some(separator) = ["", "-", "-", "T", ":", ":"].get(at).filter(|s| !s.is_empty()) {
            rest = rest.strip_prefix(separator).ok_or_else(|| cannot(rest, separator))?;
        }
        let head = rest.get(..digits).filter(|h| h.bytes().all(|b| b.is_ascii_digit()));
        date[at] = head.and_then(|h| h.parse().ok()).ok_or_else(|| cannot(rest, element))?;
        rest = &rest[digits..];
        if !(min..=max).contains(&date[at]) {
            return Err(failure(text, &format!(": {name} out of range")));
        }
    }
    let [year, month, day, ..] = date;
    if day == 0 || day > days(year, month) {
        return Err(failure(text, ": day out of range"));
    }
    rest = fraction(rest);
    let zone = zone_length(rest).ok_or_else(|| cannot(rest, "Z07:00"))?;
    match &rest[zone..] {
        "" => Ok(()),
        extra => Err(failure(text, &format!(": extra text: {}", quote(extra)))),
    }
}

/// Skips a fraction of a second, which Go accepts without its being in the layout.
fn fraction(rest: &str) -> &str {
    let Some(digits) = rest.strip_prefix(['.', ',']) else { return rest };
    let after = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    if after.len() == digits.len() { rest } else { after }
}

fn zone_length(rest: &str) -> Option<usize> {
    if rest.starts_with('Z') {
        return Some(1);
    }
    let bytes = rest.as_bytes().get(..6)?;
    let digits = [1, 2, 4, 5].iter().all(|i| bytes[*i].is_ascii_digit());
    let hours = (bytes[1].wrapping_sub(b'0')) * 10 + bytes[2].wrapping_sub(b'0');
    (matches!(bytes[0], b'+' | b'-') && bytes[3] == b':' && digits && hours <= 24 && bytes[4] <= b'5')
        .then_some(6)
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::normalize;

    fn error(text: &str) -> String {
        normalize(text).unwrap_err().0
    }

    #[test]
    fn times_are_written_in_utc_seconds() {
        assert_eq!(normalize("2026-11-30T03:58:26Z").unwrap(), "2026-11-30T03:58:26Z");
        assert_eq!(normalize("2026-11-30T03:58:26.987+02:00").unwrap(), "2026-11-30T01:58:26Z");
        assert!(normalize("0001-01-01T00:00:00Z").unwrap().is_null());
    }

    #[test]
    fn errors_have_gos_words() {
        let layout = "\"2006-01-02T15:04:05Z07:00\"";
        for (text, expected) in [
            ("x", format!("parsing time \"x\" as {layout}: cannot parse \"x\" as \"2006\"")),
            ("", format!("parsing time \"\" as {layout}: cannot parse \"\" as \"2006\"")),
            ("2026", format!("parsing time \"2026\" as {layout}: cannot parse \"\" as \"-\"")),
            ("2026-11-30", format!("parsing time \"2026-11-30\" as {layout}: cannot parse \"\" as \"T\"")),
            ("2026-13-30T00:00:00Z", "parsing time \"2026-13-30T00:00:00Z\": month out of range".to_owned()),
            ("2026-02-30T00:00:00Z", "parsing time \"2026-02-30T00:00:00Z\": day out of range".to_owned()),
            (
                "2026-11-30T00:00:00",
                format!("parsing time \"2026-11-30T00:00:00\" as {layout}: cannot parse \"\" as \"Z07:00\""),
            ),
            ("2026-11-30T00:00:00Zx", "parsing time \"2026-11-30T00:00:00Zx\": extra text: \"x\"".to_owned()),
        ] {
            assert_eq!(error(text), expected);
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9TZ:+.,é -]{0,30}") {
            let _ = normalize(&text);
        }
    }
}
