//! The user that a client certificate names: CN is the name, each O a group.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use picoshift_machinery::UserInfo;
use picoshift_machinery::peer::{BadSubject, PeerCertificate};
use sha2::{Digest, Sha256};

use super::{Identity, Method};

/// Extra key under which kube-apiserver records which credential was used.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The identity of a certificate whose chain has been verified; `None` when it has no common name.
///
/// # Errors
/// When the subject cannot be read or names more than one uid.
pub(super) fn identity(certificate: &PeerCertificate) -> Result<Option<Arc<Identity>>, BadSubject> {
    let subject = certificate.subject()?;
    if subject.common_name.is_empty() {
        return Ok(None);
    }
    let uid = match subject.uids.as_slice() {
        [] => String::new(),
        [uid] => uid.clone(),
        _ => return Err(BadSubject),
    };
    let mut id = "X509SHA256=".to_owned();
    for byte in Sha256::digest(certificate.der()) {
        let _ = write!(id, "{byte:02x}");
    }
    let user = UserInfo {
        name: subject.common_name.clone(),
        uid,
        groups: subject.organizations.clone(),
        extra: BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![id])]),
    };
    Ok(Some(Identity::authenticated(user, Method::ClientCertificate)))
}
