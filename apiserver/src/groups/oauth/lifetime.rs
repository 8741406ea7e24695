//! When tokens end: `expiresIn` and `inactivityTimeoutSeconds`, both counted from their creation.

use jiff::{SignedDuration, Timestamp};
use picoshift_machinery::Object;

use super::resources::number;

/// Why a token is no longer good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Over {
    #[error("token is expired")]
    Expired,
    #[error("token timed out")]
    TimedOut,
}

/// When a token expires; `None` for one that never does.
pub(super) fn end_of(token: &Object) -> Option<Timestamp> {
    after_creation(token, number(token, "expiresIn"))
}

/// When a token times out if nobody uses it; `None` for one that never does.
pub(super) fn timeout_of(token: &Object) -> Option<Timestamp> {
    after_creation(token, number(token, "inactivityTimeoutSeconds"))
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

/// Whether a token has not expired, and is not being deleted.
pub(super) fn check_end(token: &Object, now: Timestamp) -> Result<(), Over> {
    if end_of(token).is_some_and(|end| end < now) || token.deletion_timestamp().is_some() {
        return Err(Over::Expired);
    }
    Ok(())
}

/// Whether a token was used often enough; it has not ended.
pub(super) fn check_timeout(token: &Object, now: Timestamp) -> Result<(), Over> {
    if timeout_of(token).is_some_and(|timeout| timeout < now) { Err(Over::TimedOut) } else { Ok(()) }
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
        assert_eq!(check_end(&token(10, 0), at(10)), Ok(()));
        assert_eq!(check_end(&token(10, 0), at(11)), Err(Over::Expired));
        assert_eq!(check_timeout(&token(10, 5), at(5)), Ok(()));
        assert_eq!(check_timeout(&token(10, 5), at(6)), Err(Over::TimedOut));
        let mut going = token(10, 0);
        going.set_metadata("deletionTimestamp", "2026-01-01T00:00:00Z");
        assert_eq!(check_end(&going, at(0)), Err(Over::Expired));
    }
}
