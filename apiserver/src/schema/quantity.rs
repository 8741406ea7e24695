//! Kubernetes' quantities, `1500m` or `2Gi`, read and written as Go does (`k8s.io/apimachinery/pkg/api/resource`): most stay
//! as they were written.

/// What a quantity is that says nothing.
pub(super) const ZERO: &str = "0";
/// What is said of a text that is none.
pub(super) const WRONG_FORM: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const WRONG_SUFFIX: &str = "unable to parse quantity's suffix";

/// The finest power of ten that is kept.
const FINEST: i64 = -9;
const NANO: i128 = 1_000_000_000;
/// Digits that Go keeps in a machine word.
const WORD_DIGITS: usize = 18;

/// Suffixes with their power of ten.
const DECIMAL: [(&str, i64); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
/// Suffixes with their power of 1024.
const BINARY: [(&str, u32); 6] = [("Ki", 1), ("Mi", 2), ("Gi", 3), ("Ti", 4), ("Pi", 5), ("Ei", 6)];

/// What a suffix means.
#[derive(Clone, Copy)]
enum Scale {
    /// A power of ten, written with a letter.
    Ten(i64),
    /// A power of ten, written as such.
    Exponent(i64),
    /// A power of 1024.
    Binary(u32),
}

/// A text, in its parts.
struct Parts<'a> {
    negative: bool,
    /// Without zeros at its beginning; `0` for none.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

/// A quantity as Go writes it, whose text is `text`.
///
/// # Errors
/// What is wrong with a text that is none.
pub(super) fn canonical(text: &str) -> Result<String, &'static str> {
    let text = text.trim();
    let parts = split(text).ok_or(WRONG_FORM)?;
    let scale = scale(parts.suffix).ok_or(WRONG_SUFFIX)?;
    if stays(&parts, scale) {
        return Ok(text.to_owned());
    }
    let sign = if parts.negative { "-" } else { "" };
    let written = match scale {
        Scale::Ten(power) => decimal(&digits(&parts), power - places(parts.fraction), false),
        Scale::Exponent(power) => decimal(&digits(&parts), power - places(parts.fraction), true),
        Scale::Binary(power) => binary(&parts, power),
    };
    Ok(if written == ZERO { written } else { format!("{sign}{written}") })
}

fn split(text: &str) -> Option<Parts<'_>> {
    if text.is_empty() {
        return None;
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, rest) = leading(unsigned.trim_start_matches('0'), |c| c.is_ascii_digit());
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => leading(rest, |c| c.is_ascii_digit()),
        None => ("", rest),
    };
    let (_, rest) = leading(suffix, |c| "eEinumkKMGTP".contains(c));
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    let whole = if whole.is_empty() { "0" } else { whole };
    rest.bytes().all(|byte| byte.is_ascii_digit()).then_some(Parts {
        negative: text.starts_with('-'),
        whole,
        fraction,
        suffix,
    })
}

fn leading(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

fn scale(suffix: &str) -> Option<Scale> {
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some(Scale::Ten(*power));
    }
    if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some(Scale::Binary(*power));
    }
    let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some(Scale::Exponent(power.into()))
}

fn digits(parts: &Parts<'_>) -> String {
    format!("{}{}", parts.whole, parts.fraction)
}

fn places(fraction: &str) -> i64 {
    i64::try_from(fraction.len()).unwrap_or(i64::MAX / 4)
}

/// Whether Go keeps the text, which is short and as simple as can be.
fn stays(parts: &Parts<'_>, scale: Scale) -> bool {
    let all = digits(parts);
    match scale {
        Scale::Ten(power) | Scale::Exponent(power) => {
            let last = power - places(parts.fraction);
            all.len() <= WORD_DIGITS
                && last >= FINEST
                && last % 3 == 0
                && !all.ends_with("000")
                && !all.starts_with('0')
        }
        Scale::Binary(power) => {
            let room = 14 - i64::from(power) * 3;
            parts.fraction.is_empty()
                && places(&all) <= room
                && all.parse::<u64>().is_ok_and(|number| number % 8 != 0)
        }
    }
}

/// `digits × 10^power`, not finer than billionths (rounded up), with as large a suffix as keeps it whole.
fn decimal(digits: &str, mut power: i64, as_exponent: bool) -> String {
    let mut digits = digits.trim_start_matches('0').to_owned();
    if digits.is_empty() {
        return ZERO.to_owned();
    }
    if power < FINEST {
        let cut = usize::try_from(FINEST - power).unwrap_or(usize::MAX);
        let kept = digits.len().saturating_sub(cut);
        let rest = digits.split_off(kept);
        if rest.bytes().any(|digit| digit != b'0') {
            digits = increased(&digits);
        }
        power = FINEST;
    }
    let kept = digits.trim_end_matches('0').len();
    power += places(&digits[kept..]);
    digits.truncate(kept);
    // Not above the largest letter, and where there is a letter.
    let target = power.div_euclid(3) * 3;
    let target = if as_exponent { target } else { target.min(18) };
    let zeros = usize::try_from(power - target).unwrap_or_default();
    digits.extend(std::iter::repeat_n('0', zeros));
    match DECIMAL.iter().find(|(_, power)| *power == target) {
        Some((suffix, _)) if !as_exponent => format!("{digits}{suffix}"),
        _ if target == 0 => digits,
        _ => format!("{digits}e{target}"),
    }
}

/// A number in digits, and one.
fn increased(digits: &str) -> String {
    let nines = digits.len() - digits.trim_end_matches('9').len();
    let (before, _) = digits.split_at(digits.len() - nines);
    let mut chars: Vec<char> = before.chars().collect();
    match chars.last_mut() {
        Some(last) => *last = char::from(*last as u8 + 1),
        None => chars.push('1'),
    }
    chars.into_iter().chain(std::iter::repeat_n('0', nines)).collect()
}

/// A multiple of a power of 1024, not more than a machine word holds.
fn binary(parts: &Parts<'_>, power: u32) -> String {
    let most = i128::from(i64::MAX);
    let factor = 1024_i128.pow(power);
    // What has more digits is more than the most.
    let whole = if parts.whole.len() > 20 { most } else { parts.whole.parse().unwrap_or(most) };
    let whole = whole.saturating_mul(factor).min(most);
    let kept = parts.fraction.len().min(WORD_DIGITS);
    let fraction: i128 = parts.fraction[..kept].parse().unwrap_or_default();
    let divisor = 10_i128.pow(u32::try_from(kept).unwrap_or_default());
    // Billionths of the fraction, rounded up: its whole part first, which leaves room for the rest.
    let product = fraction * factor;
    let rest = (product % divisor) * NANO;
    let lost = rest % divisor != 0 || parts.fraction[kept..].bytes().any(|digit| digit != b'0');
    let nanos = (product / divisor) * NANO + rest / divisor + i128::from(lost);
    let nanos = (whole * NANO + nanos).min(most * NANO);
    if nanos % NANO != 0 || nanos < 1024 * NANO {
        return decimal(&nanos.to_string(), FINEST, false);
    }
    let (mut number, mut power) = (nanos / NANO, 0);
    while number % 1024 == 0 && power < BINARY.len() {
        number /= 1024;
        power += 1;
    }
    let suffix = power.checked_sub(1).and_then(|at| BINARY.get(at)).map_or("", |(suffix, _)| *suffix);
    format!("{number}{suffix}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{WRONG_FORM, canonical};

    const RECORDED: &[(&str, &str)] = &[
        ("0", "0"),
        ("", WRONG_FORM),
        ("1", "1"),
        ("01", "01"),
        ("+5", "+5"),
        ("-5", "-5"),
        ("1500m", "1500m"),
        ("1000m", "1"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("5.", "5."),
        ("1.5", "1500m"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("1500000", "1500k"),
        ("1k", "1k"),
        ("1K", "unable to parse quantity's suffix"),
        ("1Ki", "1Ki"),
        ("1024", "1024"),
        ("1024Ki", "1Mi"),
        ("1000Ki", "1000Ki"),
        ("0.5Gi", "512Mi"),
        ("0.1Gi", "107374182400m"),
        ("0.0001Ki", "102400u"),
        ("1.5Gi", "1536Mi"),
        ("512Mi", "512Mi"),
        ("2048Mi", "2Gi"),
        ("1e3", "1e3"),
        ("1E3", "1E3"),
        ("15e2", "1500"),
        ("1.5e3", "1500"),
        ("1e-3", "1e-3"),
        ("1e-12", "1e-9"),
        ("1e30", "1e30"),
        ("1E", "1E"),
        ("1Ei", "1Ei"),
        ("9Ei", "9223372036854775807"),
        ("100E", "100E"),
        ("-100E", "-100E"),
        ("1n", "1n"),
        ("1u", "1u"),
        ("0.1n", "1n"),
        ("1.5n", "2n"),
        ("-0.1n", "-1n"),
        ("100000000000000000000", "100E"),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854775808"),
        ("1e", "unable to parse quantity's suffix"),
        ("1x", WRONG_FORM),
        ("x", WRONG_FORM),
        ("1..2", WRONG_FORM),
        ("1.2.3", WRONG_FORM),
        ("--1", "unable to parse quantity's suffix"),
        ("1Gib", WRONG_FORM),
        ("1 Gi", WRONG_FORM),
        ("10Pi", "10Pi"),
        ("123456789n", "123456789n"),
        ("1234567.891", "1234567.891"),
        ("0.000000001", "1n"),
        ("1e2e3", WRONG_FORM),
        ("0Gi", "0"),
        ("0.0", "0"),
        ("12e6", "12e6"),
        ("120e5", "12e6"),
        ("1023Ki", "1023Ki"),
        ("1023", "1023"),
        ("-2Gi", "-2Gi"),
        ("3.3Ki", "3379200m"),
        ("1e+3", "1e+3"),
    ];

    /// As `resource.ParseQuantity` and `String` of apimachinery 0.34 have them.
    #[test]
    fn quantities_are_written_as_go_writes_them() {
        for (text, written) in RECORDED {
            assert_eq!(canonical(text).unwrap_or_else(ToOwned::to_owned), *written, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_stays_as_it_is(text in "[-+]?[0-9]{0,22}(\\.[0-9]{0,12})?(|[numkMGTPE]|[KMGTPE]i|e-?[0-9]{1,2})") {
            if let Ok(written) = canonical(&text) {
                prop_assert_eq!(canonical(&written), Ok(written));
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,24}") {
            let _ = canonical(&text);
        }
    }
}
