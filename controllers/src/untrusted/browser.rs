//! Where a browser goes, as browsers read URLs and not as Go does: a location is harmless only if both agree.

/// The host of the page that sends it there.
pub(super) const HERE: &str = "oauth.example";

/// A place that a browser is sent to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) scheme: String,
    /// With its port.
    pub(super) host: String,
    /// Path, query and fragment, as written.
    pub(super) rest: String,
}

/// The place of a `Location` on a page of `https://oauth.example/`.
pub(super) fn follow(location: &str) -> Place {
    let text = location.trim_matches(|c: char| c <= ' ').replace(['\t', '\n', '\r'], "");
    let (scheme, rest) = match text.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (scheme.to_ascii_lowercase(), rest),
        _ => (String::new(), text.as_str()),
    };
    let is_slash = |c: char| c == '/' || c == '\\';
    let place = |scheme: &str, authority: &str| {
        let (authority, rest) = authority
            .split_at(authority.find(|c| is_slash(c) || c == '?' || c == '#').unwrap_or(authority.len()));
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host).to_ascii_lowercase();
        Place { scheme: scheme.to_owned(), host, rest: rest.to_owned() }
    };
    let here =
        |rest: &str| Place { scheme: "https".to_owned(), host: HERE.to_owned(), rest: rest.to_owned() };
    let slashes = rest.chars().take_while(|c| is_slash(*c)).count();
    match scheme.as_str() {
        "" if slashes >= 2 => place("https", rest.trim_start_matches(is_slash)),
        "" => here(rest),
        "https" if slashes == 0 => here(rest),
        "http" | "https" | "ftp" | "ws" | "wss" => place(&scheme, rest.trim_start_matches(is_slash)),
        _ => match rest.strip_prefix("//") {
            Some(rest) => place(&scheme, rest),
            None => Place { scheme, host: String::new(), rest: rest.to_owned() },
        },
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

impl Place {
    /// Whether the browser stays on the server.
    pub(super) fn is_here(&self) -> bool {
        self.scheme == "https" && self.host == HERE
    }

    /// The path, in which browsers read an escaped dot as a dot.
    pub(super) fn path(&self) -> String {
        let path = self.rest.split(['?', '#']).next().unwrap_or_default();
        path.replace("%2e", ".").replace("%2E", ".")
    }

    /// Whether the path is `base` or lies below it, with no way up.
    pub(super) fn is_below(&self, base: &str) -> bool {
        let path = self.path();
        let below = path.strip_prefix(base.trim_end_matches('/'));
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            && !path.split(['/', '\\']).any(|segment| matches!(segment, "." | ".."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tricks_lead_where_browsers_go() {
        for stays in ["", "x", "/x", "/a//b", "https:x", "?a=https://b", "/%2F/evil.example"] {
            assert!(follow(stays).is_here(), "{stays}");
        }
        for leaves in [
            "//evil.example/x",
            "/\\evil.example/x",
            "\\\\evil.example",
            "///evil.example",
            "https:/evil.example",
            "https:\\evil.example",
            "http:evil.example",
            " /\t/evil.example",
            "https://oauth.example@evil.example",
            "HTTPS://evil.example\\@oauth.example",
        ] {
            assert_eq!(follow(leaves).host, "evil.example", "{leaves}");
        }
        assert!(follow("https://a/b/c").is_below("/b") && !follow("https://a/b/%2e%2E/c").is_below("/b"));
    }
}
