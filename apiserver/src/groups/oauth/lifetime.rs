//! When tokens end: `expiresIn` and `inactivityTimeoutSeconds`, both counted from their creation.

use jiff::{SignedDuration, Timestamp};
use picoshift_machinery::Object;

use super::resources::number;

/// When a token expires; `None` for one that never does.
pub(super) fn end_of(token: &Object) -> Option<Timestamp> {
    after_creation(token, number(token, "expiresIn"))
}

fn after_creation(token: &Object, seconds: i64) -> Option<Timestamp> {
    if seconds <= 0 {
        return None;
    }
    let created = token.creation_timestamp().parse::<Timestamp>().ok()?;
    // What is later than time itself never comes.
    created.checked_add(SignedDuration::from_secs(seconds)).ok()
}

/// Whether a token's time is over, so that it has to go.
pub(super) fn has_ended(token: &Object, now: Timestamp) -> bool {
    end_of(token).is_some_and(|end| end <= now)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_count_from_creation() {
        let token = |expires: i64, inactivity: i64| {
            let token = json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
                "expiresIn": expires, "inactivityTimeoutSeconds": inactivity});
            Object::from_value(token).unwrap()
        };
        let at = |second: i64| Timestamp::from_second(1_767_225_600 + second).unwrap();
        assert_eq!(end_of(&token(0, 0)), None);
        assert_eq!(end_of(&token(i64::MAX, 0)), None);
        assert_eq!(end_of(&token(-1, 0)), None);
        assert!(has_ended(&token(10, 0), at(10)) && !has_ended(&token(10, 0), at(9)));
    }
}
