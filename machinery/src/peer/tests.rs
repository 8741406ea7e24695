//! Tests of certificates: subjects, chains, times.

use proptest::prelude::*;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use super::*;
use crate::tls::TrustError;

fn authority(name: &str) -> (Issuer<'static, KeyPair>, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name.push(DnType::CommonName, name);
    let pem = params.self_signed(&key).unwrap().pem();
    (Issuer::new(params, key), pem)
}

fn client(name: &str, usage: ExtendedKeyUsagePurpose) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = vec![usage];
    params
}

fn signed(params: &CertificateParams, issuer: &Issuer<'static, KeyPair>) -> PeerCertificate {
    let certificate = params.signed_by(&KeyPair::generate().unwrap(), issuer).unwrap();
    PeerCertificate::new(vec![certificate.der().clone()]).unwrap()
}

fn at(seconds: u64) -> UnixTime {
    UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds))
}

#[test]
fn a_chain_counts_only_for_the_authority_that_signed_it() {
    let (ours, ours_pem) = authority("ours");
    let (_, other_pem) = authority("other");
    let certificate = signed(&client("jane", ExtendedKeyUsagePurpose::ClientAuth), &ours);
    let bundle = TrustBundle::from_pem(ours_pem.as_bytes()).unwrap();
    let other = TrustBundle::from_pem(other_pem.as_bytes()).unwrap();
    let both = TrustBundle::from_pem(format!("{other_pem}{ours_pem}").as_bytes()).unwrap();
    for _ in 0..2 {
        assert_eq!(certificate.verify(&bundle, UnixTime::now()), Ok(()));
        assert!(certificate.verify(&other, UnixTime::now()).is_err());
        assert_eq!(certificate.verify(&both, UnixTime::now()), Ok(()));
    }
    assert_eq!(certificate.verified.lock().len(), 3);
}

#[test]
fn a_serving_certificate_is_no_client_certificate() {
    let (ours, pem) = authority("ours");
    let certificate = signed(&client("jane", ExtendedKeyUsagePurpose::ServerAuth), &ours);
    let bundle = TrustBundle::from_pem(pem.as_bytes()).unwrap();
    assert!(certificate.verify(&bundle, UnixTime::now()).is_err());
}

#[test]
fn a_remembered_success_ends_with_the_certificate() {
    let (ours, pem) = authority("ours");
    let mut params = client("jane", ExtendedKeyUsagePurpose::ClientAuth);
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2030, 1, 1);
    let end = u64::try_from(params.not_after.unix_timestamp()).unwrap();
    let certificate = signed(&params, &ours);
    let bundle = TrustBundle::from_pem(pem.as_bytes()).unwrap();
    assert_eq!(certificate.verify(&bundle, at(end - 10)), Ok(()));
    assert!(certificate.verify(&bundle, at(end + 1)).is_err());

    let start = u64::try_from(params.not_before.unix_timestamp()).unwrap();
    let early = signed(&params, &ours);
    assert!(early.verify(&bundle, at(start - 1)).is_err());
    assert_eq!(early.verify(&bundle, at(start + 10)), Ok(()), "a failure is not kept for long");
}

#[test]
fn an_authority_that_ran_out_signs_nothing() {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    let pem = params.self_signed(&key).unwrap().pem();
    let certificate = signed(&client("jane", ExtendedKeyUsagePurpose::ClientAuth), &Issuer::new(params, key));
    let bundle = TrustBundle::from_pem(pem.as_bytes()).unwrap();
    assert!(certificate.verify(&bundle, UnixTime::now()).is_err());
}

#[test]
fn the_subject_gives_name_and_groups() {
    let (ours, _) = authority("ours");
    let mut params = client("jane", ExtendedKeyUsagePurpose::ClientAuth);
    params.distinguished_name.push(DnType::OrganizationName, "system:authenticated:oauth");
    let uid = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
    params.distinguished_name.push(uid, "u-1");
    let certificate = signed(&params, &ours);
    let subject = certificate.subject().unwrap();
    assert_eq!(subject.common_name, "jane");
    assert_eq!(subject.organizations, ["system:authenticated:oauth"]);
    assert_eq!(subject.uids, ["u-1"]);
}

#[test]
fn a_bundle_without_certificates_is_refused() {
    assert!(matches!(TrustBundle::from_pem(b""), Err(TrustError::Empty)));
    assert!(TrustBundle::from_pem(b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n").is_err());
}

proptest! {
    #[test]
    fn bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Subject::of(&bytes);
        let _ = TrustBundle::from_pem(&bytes);
    }

    #[test]
    fn a_damaged_certificate_never_panics_and_is_never_trusted(at in 0_usize..400, byte in any::<u8>()) {
        let (ours, pem) = authority("ours");
        let good = signed(&client("jane", ExtendedKeyUsagePurpose::ClientAuth), &ours);
        let mut der = good.der().to_vec();
        let at = at % der.len();
        prop_assume!(der[at] != byte);
        der[at] = byte;
        let _ = Subject::of(&der);
        let damaged = PeerCertificate::new(vec![CertificateDer::from(der)]).unwrap();
        let bundle = TrustBundle::from_pem(pem.as_bytes()).unwrap();
        prop_assert!(damaged.verify(&bundle, UnixTime::now()).is_err());
    }
}
