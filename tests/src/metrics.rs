//! Reading counters in Prometheus' text form.

/// Sum of all samples of `name` whose labels contain every `label="value"` of `labels`.
pub fn sum(text: &str, name: &str, labels: &[(&str, &str)]) -> f64 {
    text.lines()
        .filter_map(|line| sample(line, name))
        .filter(|(set, _)| labels.iter().all(|(key, value)| has_label(set, key, value)))
        .map(|(_, value)| value)
        .sum()
}

fn sample<'a>(line: &'a str, name: &str) -> Option<(&'a str, f64)> {
    let rest = line.strip_prefix(name)?;
    let (labels, value) = match rest.strip_prefix('{') {
        Some(inner) => inner.rsplit_once('}')?,
        None if rest.starts_with(' ') => ("", rest),
        None => return None,
    };
    Some((labels, value.split_whitespace().next()?.parse().ok()?))
}

fn has_label(set: &str, key: &str, value: &str) -> bool {
    let wanted = format!("{key}=\"{value}\"");
    set.match_indices(&wanted).any(|(at, _)| at == 0 || set.as_bytes().get(at - 1) == Some(&b','))
}

#[cfg(test)]
mod tests {
    use super::sum;

    const TEXT: &str = "# HELP a_total x\na_total{verb=\"GET\",resource=\"pods\"} 3\n\
        a_total{verb=\"LIST\",resource=\"pods\"} 4\na_total_more{verb=\"GET\"} 100\nb 5\n";

    #[test]
    fn sums_only_what_was_asked_for() {
        assert!((sum(TEXT, "a_total", &[]) - 7.0).abs() < 1e-9);
        assert!((sum(TEXT, "a_total", &[("resource", "pods"), ("verb", "LIST")]) - 4.0).abs() < 1e-9);
        assert!((sum(TEXT, "a_total", &[("erb", "LIST")])).abs() < 1e-9);
        assert!((sum(TEXT, "b", &[]) - 5.0).abs() < 1e-9);
    }
}
