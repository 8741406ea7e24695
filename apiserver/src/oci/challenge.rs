//! `WWW-Authenticate`: how a registry wants to be told who asks.

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;

/// Challenges that are read of one answer.
const MAX_CHALLENGES: usize = 16;

/// One challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// `basic`, `bearer` …, in lower case.
    pub scheme: String,
    parameters: Vec<(String, String)>,
}

impl Challenge {
    /// Reads one header; what cannot be read is left out.
    #[must_use]
    pub fn parse(header: &str) -> Vec<Self> {
        let mut found = Vec::new();
        for challenge in http_auth::ChallengeParser::new(header).take(MAX_CHALLENGES) {
            let Ok(challenge) = challenge else { break };
            let parameters = challenge.params.iter();
            found.push(Self {
                scheme: challenge.scheme.to_ascii_lowercase(),
                parameters: parameters
                    .map(|(name, value)| (name.to_ascii_lowercase(), value.to_unescaped()))
                    .collect(),
            });
        }
        found
    }

    /// The challenges of an answer.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Vec<Self> {
        let lines = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(Self::parse).take(MAX_CHALLENGES).collect()
    }

    /// A parameter, empty where there is none.
    #[must_use]
    pub fn parameter(&self, name: &str) -> &str {
        self.parameters.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_registries_send() {
        let hub = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="a:b:pull,push""#;
        let read = Challenge::parse(hub);
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].scheme, "bearer");
        assert_eq!(read[0].parameter("realm"), "https://auth.docker.io/token");
        assert_eq!(read[0].parameter("service"), "registry.docker.io");
        assert_eq!(read[0].parameter("scope"), "a:b:pull,push");
        assert_eq!(read[0].parameter("error"), "");
        let basic = Challenge::parse(r#"Basic realm="a \"quoted\" one", Bearer realm=x"#);
        assert_eq!((basic[0].scheme.as_str(), basic[0].parameter("realm")), ("basic", r#"a "quoted" one"#));
        assert_eq!((basic[1].scheme.as_str(), basic[1].parameter("realm")), ("bearer", "x"));
    }

    #[test]
    fn nonsense_is_no_challenge() {
        for header in ["", ",", "=", "\"", "Bearer realm=\"open", "a b c"] {
            assert!(
                Challenge::parse(header).iter().all(|read| read.parameter("realm").is_empty()),
                "{header}"
            );
        }
    }
}
