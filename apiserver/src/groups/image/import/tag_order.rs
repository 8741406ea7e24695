//! Which tags of a repository come first (`openshift/library-go/pkg/image/imageutil.PrioritizeTags`): `latest`, then
//! minor versions, then full ones, newest first, then the others by name.

use std::cmp::Ordering;

/// A version by semver 2.0, but for its build.
#[derive(Debug, PartialEq, Eq)]
struct Version<'a> {
    numbers: [u64; 3],
    /// Parts before the release: none is the newest.
    before: Vec<&'a str>,
}

#[derive(Debug, PartialEq, Eq)]
enum Rank<'a> {
    Latest,
    Minor(Version<'a>),
    Full(Version<'a>),
    Other,
}

/// Sorts tags; of equal versions the one without `v` comes first.
pub(super) fn sort(tags: &mut [String]) {
    tags.sort_by(|a, b| {
        let (left, right) = (rank(a), rank(b));
        let place = |rank: &Rank<'_>| match rank {
            Rank::Latest => 0,
            Rank::Minor(_) => 1,
            Rank::Full(_) => 2,
            Rank::Other => 3,
        };
        place(&left).cmp(&place(&right)).then_with(|| match (&left, &right) {
            (Rank::Minor(x), Rank::Minor(y)) | (Rank::Full(x), Rank::Full(y)) => {
                compare(y, x).then_with(|| a.starts_with('v').cmp(&b.starts_with('v')))
            }
            _ => a.cmp(b),
        })
    });
}

fn rank(tag: &str) -> Rank<'_> {
    if tag == "latest" {
        return Rank::Latest;
    }
    let short = tag.strip_prefix('v').unwrap_or(tag);
    if let Some(version) = full(short) {
        return Rank::Full(version);
    }
    minor(short).map_or(Rank::Other, Rank::Minor)
}

/// `5.1.3`, `5.1.3-rc.1+build`.
fn full(text: &str) -> Option<Version<'_>> {
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    let (core, before) = text.split_once('-').map_or((text, None), |(core, before)| (core, Some(before)));
    if build.is_some_and(|build| !build.split('.').all(is_part)) {
        return None;
    }
    let before: Vec<&str> = before.map_or(Vec::new(), |before| before.split('.').collect());
    let fits = |part: &&str| is_part(part) && (!is_number(part) || number(part).is_some());
    let mut numbers = core.split('.').map(number);
    let version = Version { numbers: [numbers.next()??, numbers.next()??, numbers.next()??], before };
    (numbers.next().is_none() && version.before.iter().all(fits)).then_some(version)
}

/// `5.1`, `5.1-rc1`.
fn minor(text: &str) -> Option<Version<'_>> {
    let (core, before) = text.split_once('-').map_or((text, None), |(core, before)| (core, Some(before)));
    let (major, minor) = core.split_once('.')?;
    let word = |before: &str| !before.is_empty() && before.bytes().all(|b| b.is_ascii_alphanumeric());
    let before = match before {
        Some(before) if word(before) && (!is_number(before) || number(before).is_some()) => vec![before],
        Some(_) => return None,
        None => Vec::new(),
    };
    Some(Version { numbers: [number(major)?, number(minor)?, 0], before })
}

fn is_part(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// A number without leading zeros.
fn number(text: &str) -> Option<u64> {
    (is_number(text) && (text == "0" || !text.starts_with('0'))).then(|| text.parse().ok())?
}

fn compare(left: &Version<'_>, right: &Version<'_>) -> Ordering {
    left.numbers.cmp(&right.numbers).then_with(|| match (left.before.is_empty(), right.before.is_empty()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => compare_parts(&left.before, &right.before),
    })
}

fn compare_parts(left: &[&str], right: &[&str]) -> Ordering {
    for (a, b) in left.iter().zip(right) {
        let order = match (number(a), number(b)) {
            (Some(a), Some(b)) => a.cmp(&b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => a.cmp(b),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    left.len().cmp(&right.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sorted(tags: &[&str]) -> Vec<String> {
        let mut tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
        sort(&mut tags);
        tags
    }

    #[test]
    fn the_newest_versions_come_first() {
        let tags = [
            "other",
            "5",
            "v5.2",
            "5.2",
            "5.10",
            "5.1-rc1",
            "v5.1.3",
            "5.1.3",
            "5.1.3-rc.2",
            "5.1.3-rc.10",
            "01.2.3",
            "latest",
            "a1",
            "5.1",
            "5.1.3-x_y",
        ];
        assert_eq!(
            sorted(&tags),
            [
                "latest",
                "5.10",
                "5.2",
                "v5.2",
                "5.1",
                "5.1-rc1",
                "5.1.3",
                "v5.1.3",
                "5.1.3-rc.10",
                "5.1.3-rc.2",
                "01.2.3",
                "5",
                "5.1.3-x_y",
                "a1",
                "other"
            ]
        );
    }

    proptest! {
        #[test]
        fn any_tags_have_one_order(mut tags in prop::collection::vec("(latest|v?[0-9.]{1,6}(-[a-z0-9.]{1,3})?|[a-z.+-]{1,4})", 0..8)) {
            sort(&mut tags);
            let once = tags.clone();
            tags.reverse();
            sort(&mut tags);
            // Equal versions that are written differently may change places.
            prop_assert_eq!(tags.iter().map(|t| rank(t)).collect::<Vec<_>>().len(), once.len());
        }
    }
}
