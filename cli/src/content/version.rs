//! The versions of OpenShift that a cluster can say it is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const OLDEST: u16 = 16;
const NEWEST: u16 = 21;

/// A version 4.MINOR.PATCH.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct OpenShiftVersion {
    minor: u16,
    patch: u16,
}

impl OpenShiftVersion {
    /// The newest.
    pub(crate) const fn newest() -> Self {
        Self { minor: NEWEST, patch: 0 }
    }

    /// `4.MINOR`.
    pub(crate) fn stream(self) -> String {
        format!("4.{}", self.minor)
    }

    /// Whether it is within two streams, each named `4.MINOR` and part of it; none is no bound.
    pub(crate) fn is_within(self, from: Option<&str>, until: Option<&str>) -> bool {
        let minor = |stream: &str| stream.strip_prefix("4.").and_then(|minor| minor.parse::<u16>().ok());
        from.is_none_or(|stream| minor(stream).is_some_and(|from| from <= self.minor))
            && until.is_none_or(|stream| minor(stream).is_some_and(|until| self.minor <= until))
    }
}

impl FromStr for OpenShiftVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse::<u16>().ok()).flatten()
        };
        let mut parts = text.split('.').map(number);
        let version = match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(Some(4)), Some(Some(minor)), patch, None) => match patch {
                None => Some(Self { minor, patch: 0 }),
                Some(patch) => patch.map(|patch| Self { minor, patch }),
            },
            _ => None,
        };
        let version = version.filter(|version| (OLDEST..=NEWEST).contains(&version.minor));
        version.ok_or_else(|| {
            format!("one of 4.{OLDEST} to 4.{NEWEST}, or a release of them such as 4.{NEWEST}.3")
        })
    }
}

impl fmt::Display for OpenShiftVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "4.{}.{}", self.minor, self.patch)
    }
}

impl TryFrom<String> for OpenShiftVersion {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<OpenShiftVersion> for String {
    fn from(version: OpenShiftVersion) -> Self {
        version.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Option<String> {
        text.parse::<OpenShiftVersion>().ok().map(|version| version.to_string())
    }

    #[test]
    fn streams_and_releases_parse() {
        assert_eq!(version("4.16").as_deref(), Some("4.16.0"));
        assert_eq!(version("4.21.13").as_deref(), Some("4.21.13"));
        for bad in
            ["", "4", "4.15", "4.22", "3.11", "v4.20", "4.20.", "4.20.1.2", "4.20.x", "4.+20", "4.20.-1"]
        {
            assert_eq!(version(bad), None, "{bad}");
        }
    }

    #[test]
    fn bounds_belong_to_the_range() {
        let version: OpenShiftVersion = "4.19.3".parse().unwrap();
        assert!(version.is_within(None, None) && version.is_within(Some("4.19"), Some("4.19")));
        assert!(!version.is_within(Some("4.20"), None) && !version.is_within(None, Some("4.18")));
    }

    #[test]
    fn versions_are_kept_as_text() {
        let newest = OpenShiftVersion::newest();
        let text = serde_json::to_string(&newest).unwrap();
        assert_eq!(serde_json::from_str::<OpenShiftVersion>(&text).unwrap(), newest);
        assert!(serde_json::from_str::<OpenShiftVersion>("\"4.3\"").is_err());
    }
}
