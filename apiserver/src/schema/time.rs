//! RFC 3339 times as `metav1.Time` reads and writes them, with the errors of Go's `time.Parse`.

use jiff::SignedDuration;
use jiff::civil::DateTime;
use serde_json::Value;

const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";

/// Why a text is no time; Go's words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TimeError(pub(super) String);

/// A time in UTC and whole seconds; null for the zero time, which is never written.
pub(super) fn normalize(text: &str) -> Result<Value, TimeError> {
    let ([year, month, day, hour, minute, second], offset) = fields(text)?;
    let out_of_range = || failure(text, ": day out of range");
    let small = |n: u32| i8::try_from(n).unwrap_or_default();
    let year = i16::try_from(year).unwrap_or_default();
    let local = DateTime::new(year, small(month), small(day), small(hour), small(minute), small(second), 0)
        .map_err(|_| out_of_range())?;
    let utc = local.checked_sub(SignedDuration::from_secs(offset)).map_err(|_| out_of_range())?;
    let written = utc.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    Ok(if written == "0001-01-01T00:00:00Z" { Value::Null } else { written.into() })
}

/// A text as Go's `time` quotes it: unlike elsewhere, what is not ASCII is shown byte by byte.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' | 0x7f => out.push(char::from(byte)),
            other => out.push_str(&format!("\\x{other:02x}")),
        }
    }
    out.push('"');
    out
}

fn failure(text: &str, why: &str) -> TimeError {
    TimeError(format!("parsing time {}{why}", quote(text)))
}

fn cannot_parse(text: &str, rest: &str, element: &str) -> TimeError {
    failure(text, &format!(" as {}: cannot parse {} as {}", quote(LAYOUT), quote(rest), quote(element)))
}

/// Year to second, and the offset from UTC in seconds. Goes through the layout element by element, as Go does, so
/// that an error names the same element.
fn fields(text: &str) -> Result<([u32; 6], i64), TimeError> {
    // Separator before it, element of the layout, digits, name, range that Go checks at once.
    let elements: [(&str, &str, usize, &str, u32, u32); 6] = [
        ("", "2006", 4, "", 0, 9999),
        ("-", "01", 2, "month", 1, 12),
        ("-", "02", 2, "day", 0, 99),
        ("T", "15", 2, "hour", 0, 23),
        (":", "04", 2, "minute", 0, 59),
        (":", "05", 2, "second", 0, 59),
    ];
    let mut rest = text;
    let mut date = [0; 6];
    for (at, (separator, element, digits, name, min, max)) in elements.into_iter().enumerate() {
        rest = rest.strip_prefix(separator).ok_or_else(|| cannot_parse(text, rest, separator))?;
        let found = rest.bytes().take(digits).take_while(u8::is_ascii_digit).count();
        // Go takes an hour of one digit.
        if found < digits && !(element == "15" && found == 1) {
            return Err(cannot_parse(text, rest, element));
        }
        date[at] = rest[..found].parse().unwrap_or_default();
        rest = &rest[found..];
        if !(min..=max).contains(&date[at]) {
            return Err(failure(text, &format!(": {name} out of range")));
        }
    }
    rest = fraction(rest);
    let (offset, length) = zone(text, rest)?;
    if rest.len() > length {
        return Err(failure(text, &format!(": extra text: {}", quote(&rest[length..]))));
    }
    if date[2] == 0 || date[2] > days(date[0], date[1]) {
        return Err(failure(text, ": day out of range"));
    }
    Ok((date, offset))
}

/// Skips a fraction of a second, which Go accepts without its being in the layout.
fn fraction(rest: &str) -> &str {
    let Some(digits) = rest.strip_prefix(['.', ',']) else { return rest };
    let after = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    if after.len() == digits.len() { rest } else { after }
}

/// The offset in seconds and its length: `Z` or `+01:00`.
fn zone(text: &str, rest: &str) -> Result<(i64, usize), TimeError> {
    if rest.starts_with('Z') {
        return Ok((0, 1));
    }
    let [sign @ (b'+' | b'-'), a, b, b':', c, d, ..] = rest.as_bytes() else {
        return Err(cannot_parse(text, rest, "Z07:00"));
    };
    if ![a, b, c, d].into_iter().all(u8::is_ascii_digit) {
        return Err(cannot_parse(text, rest, "Z07:00"));
    }
    let two = |a: &u8, b: &u8| i64::from(a - b'0') * 10 + i64::from(b - b'0');
    let (hours, minutes) = (two(a, b), two(c, d));
    if hours > 24 {
        return Err(failure(text, ": time zone offset hour out of range"));
    }
    if minutes > 60 {
        return Err(failure(text, ": time zone offset minute out of range"));
    }
    let seconds = hours * 3600 + minutes * 60;
    Ok((if *sign == b'-' { -seconds } else { seconds }, 6))
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
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
        assert_eq!(normalize("2026-01-01T0:00:00Z").unwrap(), "2026-01-01T00:00:00Z");
        assert!(normalize("0001-01-01T00:00:00Z").unwrap().is_null());
    }

    #[test]
    fn errors_have_gos_words() {
        let layout = "\"2006-01-02T15:04:05Z07:00\"";
        for (text, expected) in [
            ("x", format!("parsing time \"x\" as {layout}: cannot parse \"x\" as \"2006\"")),
            (
                "é",
                format!("parsing time \"\\xc3\\xa9\" as {layout}: cannot parse \"\\xc3\\xa9\" as \"2006\""),
            ),
            ("", format!("parsing time \"\" as {layout}: cannot parse \"\" as \"2006\"")),
            ("2026", format!("parsing time \"2026\" as {layout}: cannot parse \"\" as \"-\"")),
            ("2026-11-30", format!("parsing time \"2026-11-30\" as {layout}: cannot parse \"\" as \"T\"")),
            ("2026-13-30T00:00:00Z", "parsing time \"2026-13-30T00:00:00Z\": month out of range".to_owned()),
            ("2026-02-30T00:00:00Z", "parsing time \"2026-02-30T00:00:00Z\": day out of range".to_owned()),
            (
                "2026-11-30T00:00:00",
                format!("parsing time \"2026-11-30T00:00:00\" as {layout}: cannot parse \"\" as \"Z07:00\""),
            ),
            (
                "2026-11-30T00:00:00+25:00",
                "parsing time \"2026-11-30T00:00:00+25:00\": time zone offset hour out of range".to_owned(),
            ),
            ("2026-01-00T24:00:00Z", "parsing time \"2026-01-00T24:00:00Z\": hour out of range".to_owned()),
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
