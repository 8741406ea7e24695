//! Cells of the tables, in the words of Go: how old a token is, when it ends, how long a client's tokens last.

use jiff::Timestamp;
use picoshift_machinery::Object;
use serde_json::Value;

use super::lifetime;
use super::resources::strings;

/// The cells of a client.
pub(super) fn client_row(client: &Object) -> Vec<Value> {
    let challenges = client.0.get("respondWithChallenges").and_then(Value::as_bool).unwrap_or_default();
    let age = match client.0.get("accessTokenMaxAgeSeconds").and_then(Value::as_i64) {
        None => "default".to_owned(),
        Some(0) => "unexpiring".to_owned(),
        Some(seconds) => go_seconds(seconds),
    };
    vec![
        client.name().into(),
        client.str_at(&["secret"]).into(),
        challenges.into(),
        age.into(),
        strings(client, "redirectURIs").join(",").into(),
    ]
}

/// The cells of an access token or an authorization code.
pub(super) fn token_row(token: &Object, now: Timestamp) -> Vec<Value> {
    let mut cells: Vec<Value> = vec![token.name().into(), token.str_at(&["userName"]).into()];
    cells.extend(rest(token, now));
    cells
}

/// The cells of a token that its user sees.
pub(super) fn user_token_row(token: &Object, now: Timestamp) -> Vec<Value> {
    let mut cells: Vec<Value> = vec![token.name().into()];
    cells.extend(rest(token, now));
    cells
}

/// The cells of an authorization of a client.
pub(super) fn authorization_row(authorization: &Object) -> Vec<Value> {
    let text = |field: &str| Value::from(authorization.str_at(&[field]));
    let scopes = strings(authorization, "scopes").join(",");
    vec![authorization.name().into(), text("userName"), text("clientName"), scopes.into()]
}

fn rest(token: &Object, now: Timestamp) -> [Value; 5] {
    let created = token.creation_timestamp().parse::<Timestamp>().ok();
    let created = created
        .map_or("<unknown>".to_owned(), |created| human_duration(now.duration_since(created).as_secs()));
    let expires = lifetime::end_of(token)
        .map_or("never".to_owned(), |end| end.strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string());
    [
        token.str_at(&["clientName"]).into(),
        created.into(),
        expires.into(),
        token.str_at(&["redirectURI"]).into(),
        strings(token, "scopes").join(",").into(),
    ]
}

/// A span of time as `k8s.io/apimachinery/pkg/util/duration.HumanDuration` says it.
fn human_duration(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let both = |first: i64, one: &str, second: i64, other: &str| match second {
        0 => format!("{first}{one}"),
        second => format!("{first}{one}{second}{other}"),
    };
    match seconds {
        i64::MIN..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => both(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => both(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => both(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => both(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

/// Whole seconds as Go prints a `time.Duration`: `24h0m0s`, `1m30s`, `5s`.
fn go_seconds(seconds: i64) -> String {
    let sign = if seconds < 0 { "-" } else { "" };
    let all = seconds.unsigned_abs();
    let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, _) => format!("{sign}{minutes}m{seconds}s"),
        _ => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn spans_are_in_gos_words() {
        for (seconds, text) in [(0, "0s"), (5, "5s"), (90, "1m30s"), (3600, "1h0m0s"), (86_400, "24h0m0s")] {
            assert_eq!(go_seconds(seconds), text);
        }
        for (seconds, text) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (3 * 3600 - 1, "179m"),
            (3 * 3600 + 60, "3h1m"),
            (48 * 3600 - 1, "47h"),
            (50 * 3600, "2d2h"),
            (8 * 86_400, "8d"),
            (2 * 365 * 86_400, "2y"),
            (9 * 365 * 86_400, "9y"),
        ] {
            assert_eq!(human_duration(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn rows_are_the_recorded_ones() {
        let token = json!({"metadata": {"name": "sha256~x", "creationTimestamp": "2026-11-30T03:59:06Z"},
            "clientName": "c1", "userName": "u2", "expiresIn": 86400, "scopes": ["user:full"],
            "redirectURI": "https://x.example/cb"});
        let token = Object::from_value(token).unwrap();
        let now = "2026-11-30T03:59:08Z".parse().unwrap();
        let expires = "2026-12-01 03:59:06 +0000 UTC";
        assert_eq!(
            token_row(&token, now),
            ["sha256~x", "u2", "c1", "2s", expires, "https://x.example/cb", "user:full"]
        );
        assert_eq!(
            user_token_row(&token, now),
            ["sha256~x", "c1", "2s", expires, "https://x.example/cb", "user:full"]
        );
        let client = json!({"metadata": {"name": "c"}, "secret": "s", "accessTokenMaxAgeSeconds": 0,
            "redirectURIs": ["http://127.0.0.1/callback", "http://[::1]/callback"]});
        assert_eq!(
            client_row(&Object::from_value(client).unwrap()),
            [
                json!("c"),
                json!("s"),
                json!(false),
                json!("unexpiring"),
                json!("http://127.0.0.1/callback,http://[::1]/callback")
            ]
        );
    }
}
