//! Keys and certificates of the control plane, in the state directory. What is there and still good is kept.

mod authority;
mod ingress;
mod leaf;

use std::fs;

use anyhow::{Context, Result};
use rcgen::KeyPair;

use crate::paths::{Paths, write_atomically};

pub(crate) use ingress::{IngressCertificate, ingress_certificate};
pub(crate) use leaf::LEAVES;

use authority::{Authority, Signer};

/// Certificates are replaced when they have less than this left.
const RENEW_DAYS: i64 = 60;

/// Makes what is missing or soon to expire.
pub(crate) fn ensure(paths: &Paths) -> Result<()> {
    for authority in Authority::ALL {
        let signer = Signer::ensure(authority, paths)?;
        for leaf in LEAVES.iter().filter(|leaf| leaf.authority == authority) {
            leaf.ensure(&signer, paths)
                .with_context(|| format!("cannot make the certificate {}", leaf.name))?;
        }
    }
    ensure_service_account_keys(paths)
}

/// The key that signs service-account tokens, and its public half.
fn ensure_service_account_keys(paths: &Paths) -> Result<()> {
    let (private, public) = (paths.pki("service-account.key"), paths.pki("service-account.pub"));
    let key = match fs::read_to_string(&private) {
        Ok(pem) => KeyPair::from_pem(&pem).with_context(|| format!("{} is damaged", private.display()))?,
        Err(_) => {
            let key = KeyPair::generate()?;
            write_atomically(&private, key.serialize_pem().as_bytes(), 0o600)?;
            key
        }
    };
    if !public.exists() {
        write_atomically(&public, key.public_key_pem().as_bytes(), 0o644)?;
    }
    Ok(())
}

/// How many days a certificate is good for from now on.
fn days_left(certificate: &x509_parser::certificate::X509Certificate<'_>) -> i64 {
    let now = jiff::Timestamp::now().as_second();
    (certificate.validity().not_after.timestamp() - now) / 86_400
}

/// Sets a validity from yesterday (clocks differ) for so many days.
fn set_validity(params: &mut rcgen::CertificateParams, days: i64) -> Result<()> {
    use jiff::ToSpan;
    let today = jiff::Zoned::now().with_time_zone(jiff::tz::TimeZone::UTC).date();
    let date = |days: i64| -> Result<_> {
        let date = today.checked_add(days.days())?;
        Ok(rcgen::date_time_ymd(
            i32::from(date.year()),
            u8::try_from(date.month())?,
            u8::try_from(date.day())?,
        ))
    };
    params.not_before = date(-1)?;
    params.not_after = date(days)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn contents(paths: &Paths) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(paths.state.join("pki")).unwrap();
        let read = |entry: fs::DirEntry| {
            let content = fs::read(entry.path()).unwrap();
            (entry.file_name().into_string().unwrap(), content)
        };
        entries.map(|entry| read(entry.unwrap())).collect()
    }

    fn new_state() -> (tempfile::TempDir, Paths) {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths { state: dir.path().join("state"), cache: dir.path().join("cache") };
        paths.create_state().unwrap();
        ensure(&paths).unwrap();
        (dir, paths)
    }

    #[test]
    fn a_second_time_changes_nothing() {
        let (_dir, paths) = new_state();
        let first = contents(&paths);
        ensure(&paths).unwrap();
        assert_eq!(first, contents(&paths));
    }

    #[test]
    fn keys_are_private() {
        let (_dir, paths) = new_state();
        for name in contents(&paths).keys().filter(|name| name.ends_with(".key")) {
            let mode = fs::metadata(paths.pki(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn a_new_authority_brings_new_certificates_and_leaves_others_alone() {
        let (_dir, paths) = new_state();
        let first = contents(&paths);
        fs::remove_file(paths.pki("etcd-ca.key")).unwrap();
        ensure(&paths).unwrap();
        let second = contents(&paths);
        let changed: Vec<&str> = first
            .iter()
            .filter(|(name, content)| second.get(*name) != Some(content))
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(
            changed,
            [
                "etcd-ca.crt",
                "etcd-ca.key",
                "etcd-client.crt",
                "etcd-client.key",
                "etcd-server.crt",
                "etcd-server.key"
            ]
        );
    }

    #[test]
    fn a_damaged_certificate_is_replaced() {
        let (_dir, paths) = new_state();
        fs::write(paths.pki("admin.crt"), "junk").unwrap();
        ensure(&paths).unwrap();
        assert!(fs::read_to_string(paths.pki("admin.crt")).unwrap().contains("BEGIN CERTIFICATE"));
    }
}
