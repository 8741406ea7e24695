//! Which versions are built, and which found ones will do.

use std::fmt;
use std::str::FromStr;

use crate::binaries::Program;

/// Kubernetes, as pinned in `hack/control-plane/kubernetes/go.mod`.
pub(crate) const KUBERNETES: &str = "v1.34.4";
/// When that version was released: the build date that its programs report, so that builds are reproducible.
pub(crate) const KUBERNETES_DATE: &str = "2026-02-10T12:53:36Z";
/// etcd, as pinned in `hack/control-plane/etcd/go.mod`.
pub(crate) const ETCD: &str = "v3.6.16";

/// A released version; pre-releases do not parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    major: u16,
    minor: u16,
    patch: u16,
}

impl Version {
    /// The version in what a program prints about itself: its first word that is one.
    pub(crate) fn in_output(output: &str) -> Option<Self> {
        output.split_whitespace().find_map(|word| word.parse().ok())
    }
}

impl FromStr for Version {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.strip_prefix('v').unwrap_or(text);
        // What follows a plus sign names a build; what follows a hyphen, a pre-release.
        let release = text.split_once('+').map_or(text, |(release, _)| release);
        let mut numbers = release.split('.').map(|number| {
            let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| number.parse().ok()).flatten().ok_or(())
        });
        let mut next = || numbers.next().ok_or(())?;
        let version = Self { major: next()?, minor: next()?, patch: next()? };
        numbers.next().is_none().then_some(version).ok_or(())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Whether a program that was found will do.
pub(crate) fn supported(program: Program, version: Version) -> bool {
    let minor = (version.major, version.minor);
    match program {
        // With an older etcd, kube-apiserver cannot serve lists from its watch cache.
        Program::Etcd => (minor == (3, 5) && version.patch >= 13) || minor == (3, 6),
        Program::KubeApiserver | Program::KubeControllerManager | Program::KubeScheduler => minor == (1, 34),
        // kubectl may be one minor version away from kube-apiserver.
        Program::Kubectl => version.major == 1 && (33..=35).contains(&version.minor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Option<Version> {
        text.parse().ok()
    }

    #[test]
    fn parses_releases_only() {
        assert_eq!(version("v1.34.4").unwrap().to_string(), "v1.34.4");
        assert_eq!(version("3.6.16").unwrap().to_string(), "v3.6.16");
        assert_eq!(version("v1.34.4+k3s1"), version("1.34.4"));
        for bad in [
            "",
            "v1",
            "1.34",
            "v1.34.0-rc.1",
            "1.34.x",
            "1.34.4.5",
            "v0.0.0-master+$Format:%H$",
            "1.-3.4",
            "1.+3.4",
        ] {
            assert_eq!(version(bad), None, "{bad}");
        }
    }

    #[test]
    fn reads_what_programs_print() {
        let of = |output| Version::in_output(output).map(|version| version.to_string());
        assert_eq!(of("Kubernetes v1.34.4\n").as_deref(), Some("v1.34.4"));
        assert_eq!(of("Client Version: v1.34.1\nKustomize Version: v5.7.1\n").as_deref(), Some("v1.34.1"));
        assert_eq!(
            of("etcd Version: 3.6.16\nGit SHA: abc\nGo Version: go1.26.8\n").as_deref(),
            Some("v3.6.16")
        );
        assert_eq!(of("Kubernetes v0.0.0-master+$Format:%H$"), None);
    }

    #[test]
    fn pinned_versions_are_supported() {
        assert!(supported(Program::Etcd, version(ETCD).unwrap()));
        for program in Program::ALL.into_iter().filter(|program| *program != Program::Etcd) {
            assert!(supported(program, version(KUBERNETES).unwrap()));
        }
    }

    #[test]
    fn other_versions() {
        let etcd = |text| supported(Program::Etcd, version(text).unwrap());
        assert!(etcd("3.5.13") && etcd("3.6.0"));
        assert!(!etcd("3.5.12") && !etcd("3.4.30") && !etcd("3.7.0"));
        let server = |text| supported(Program::KubeApiserver, version(text).unwrap());
        assert!(server("1.34.0") && !server("1.33.9") && !server("1.35.0"));
        let kubectl = |text| supported(Program::Kubectl, version(text).unwrap());
        assert!(kubectl("1.33.0") && kubectl("1.35.9") && !kubectl("1.36.0"));
    }

    #[test]
    fn pins_agree_with_the_modules() {
        let pinned = |file: &str, module: &str, version: &str| file.contains(&format!("{module} {version}"));
        let kubernetes = include_str!("../../hack/control-plane/kubernetes/go.mod");
        let etcd = include_str!("../../hack/control-plane/etcd/go.mod");
        assert!(pinned(kubernetes, "k8s.io/kubernetes", KUBERNETES));
        assert!(pinned(etcd, "go.etcd.io/etcd/server/v3", ETCD));
    }
}
