//! Words of the tables: how long ago something was, and as many tags as fit.

use jiff::Timestamp;
use picoshift_machinery::Object;
use serde_json::Value;

use super::model::{Event, status_tags};

/// Width that the list of tags is cut to.
const TAGS_WIDTH: isize = 40;
/// A list of tags may leave so much of its width empty, or be so much wider, where that makes the edge less ragged.
const TAGS_MARGIN: isize = TAGS_WIDTH / 4;
/// Hours of a day, week, month and year as the words count them.
const DAY: i64 = 24;
const WEEK: i64 = 7 * DAY;
const MONTH: i64 = 30 * DAY;
const YEAR: i64 = 365 * DAY;

/// A span of time in words, as `docker/go-units` says it: `About an hour`, `2 weeks`.
#[must_use]
pub fn human_duration(seconds: i64) -> String {
    let minutes = seconds / 60;
    let hours = (seconds + 1800) / 3600;
    if seconds < 1 {
        "Less than a second".to_owned()
    } else if seconds == 1 {
        "1 second".to_owned()
    } else if seconds < 60 {
        format!("{seconds} seconds")
    } else if minutes == 1 {
        "About a minute".to_owned()
    } else if minutes < 60 {
        format!("{minutes} minutes")
    } else if hours == 1 {
        "About an hour".to_owned()
    } else if hours < 2 * DAY {
        format!("{hours} hours")
    } else if hours < 2 * WEEK {
        format!("{} days", hours / DAY)
    } else if hours < 2 * MONTH {
        format!("{} weeks", hours / WEEK)
    } else if hours < 2 * YEAR {
        format!("{} months", hours / MONTH)
    } else {
        format!("{} years", seconds / 3600 / YEAR)
    }
}

/// `2 weeks ago`, of an RFC 3339 time; empty for a text that is none.
#[must_use]
pub fn age(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        // Whole seconds of the exact span, as upstream rounds.
        Ok(time) => format!("{} ago", human_duration(now.duration_since(time).as_secs())),
        Err(_) => String::new(),
    }
}

/// The cells of a stream.
pub(super) fn stream_row(stream: &Object, now: Timestamp) -> Vec<Value> {
    let newest: Vec<(&str, Option<Timestamp>)> = status_tags::status_tags(stream)
        .iter()
        .map(|entry| {
            let event = status_tags::items(entry).first().map(Event::read);
            let created = event.and_then(|event| event.created.parse().ok());
            (entry.get("tag").and_then(Value::as_str).unwrap_or(""), created)
        })
        .collect();
    let updated = match newest.iter().filter_map(|(_, created)| *created).max() {
        Some(latest) => age(&latest.to_string(), now),
        None => String::new(),
    };
    let repository = [
        ["status", "publicDockerImageRepository"],
        ["spec", "dockerImageRepository"],
        ["status", "dockerImageRepository"],
    ]
    .iter()
    .map(|path| stream.str_at(path))
    .find(|text| !text.is_empty());
    [stream.name(), repository.unwrap_or(""), &tags(newest), &updated].into_iter().map(Value::from).collect()
}

/// Tags, newest first, as many as fit.
fn tags(mut tags: Vec<(&str, Option<Timestamp>)>) -> String {
    tags.sort_by(|(a, a_created), (b, b_created)| b_created.cmp(a_created).then_with(|| a.cmp(b)));
    let names: Vec<&str> = tags.into_iter().map(|(name, _)| name).collect();
    let mut remaining = TAGS_WIDTH;
    let mut shown = names.len();
    for (index, name) in names.iter().enumerate() {
        let width = isize::try_from(name.len()).unwrap_or(isize::MAX);
        remaining = remaining.saturating_sub(width).saturating_sub(1);
        if remaining >= 0 {
            continue;
        }
        if index == 0 {
            shown = 1;
            break;
        }
        if TAGS_MARGIN < remaining.saturating_add(width) && TAGS_MARGIN >= -remaining {
            continue;
        }
        shown = index;
        break;
    }
    let list = names[..shown].join(",");
    match names.len() - shown {
        0 => list,
        hidden => format!("{list} + {hidden} more..."),
    }
}

/// The cells of an image.
pub(super) fn image_row(image: &Object) -> Vec<Value> {
    vec![image.name().into(), image.str_at(&["dockerImageReference"]).into()]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn spans_are_said_as_docker_says_them() {
        let hour = 3600;
        for (seconds, words) in [
            (-5, "Less than a second"),
            (0, "Less than a second"),
            (1, "1 second"),
            (59, "59 seconds"),
            (60, "About a minute"),
            (119, "About a minute"),
            (120, "2 minutes"),
            (59 * 60 + 59, "59 minutes"),
            (hour, "About an hour"),
            (hour + 1799, "About an hour"),
            (hour + 1800, "2 hours"),
            (47 * hour, "47 hours"),
            (48 * hour, "2 days"),
            (13 * 24 * hour, "13 days"),
            (14 * 24 * hour, "2 weeks"),
            (59 * 24 * hour, "8 weeks"),
            (60 * 24 * hour, "2 months"),
            (729 * 24 * hour, "24 months"),
            (730 * 24 * hour, "2 years"),
        ] {
            assert_eq!(human_duration(seconds), words, "{seconds}");
        }
    }

    #[test]
    fn tags_are_cut_where_they_no_longer_fit() {
        let of = |names: &[&str]| tags(names.iter().map(|name| (*name, None)).collect());
        assert_eq!(of(&["b", "a"]), "a,b");
        assert_eq!(of(&["", "x"]), ",x");
        let long = "a".repeat(60);
        assert_eq!(of(&[&long, "b"]), format!("{long} + 1 more..."));
        // 40 columns are full after four of nine.
        let nines = ["aaaaaaaaa", "bbbbbbbbb", "ccccccccc", "ddddddddd", "eeeeeeeee"];
        assert_eq!(of(&nines), format!("{} + 1 more...", nines[..4].join(",")));
        // The second leaves more than a quarter empty and is less than a quarter too wide.
        let (first, second) = ("a".repeat(20), "b".repeat(25));
        assert_eq!(of(&[&first, &second, "c"]), format!("{first},{second} + 1 more..."));
        let second = "b".repeat(30);
        assert_eq!(of(&[&first, &second]), format!("{first} + 1 more..."));
    }

    #[test]
    fn a_stream_shows_its_newest_event() {
        let now: Timestamp = "2026-11-30T03:58:50Z".parse().unwrap();
        let stream = Object::from_value(json!({
            "metadata": {"name": "app"}, "spec": {},
            "status": {"dockerImageRepository": "registry/demo/app", "tags": [
                {"tag": "local", "items": null, "conditions": [{}]},
                {"tag": "pushed", "items": [{"created": "2026-11-30T03:58:45Z"}]},
            ]},
        }))
        .unwrap();
        assert_eq!(stream_row(&stream, now), ["app", "registry/demo/app", "pushed,local", "5 seconds ago"]);
        let bare = Object::from_value(json!({"metadata": {"name": "app"}})).unwrap();
        assert_eq!(stream_row(&bare, now), ["app", "", "", ""]);
    }
}
