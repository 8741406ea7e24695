//! kube:admin: the user of a new cluster, whose password is told once.
//!
//! As on OpenShift it can log in while its Secret is there, and only if the Secret is about as old as the cluster.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use picoshift_machinery::bootstrap_user::{LOGIN_NAME, MADE_WITHIN, SECRET_NAMESPACE};
use rand::seq::IndexedRandom as _;

use super::htpasswd;

/// Letters and digits that cannot be taken for each other.
const ALPHABET: &[u8] = b"abcdefghijkmnopqrstuvwxyzABCDEFGHIJKLMNPQRSTUVWXYZ23456789";
const PARTS: usize = 4;
const PART: usize = 5;

/// Makes kube:admin in a new cluster; returns its password.
pub(crate) async fn ensure(client: &Client) -> Result<Option<String>> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let born = namespaces.get(SECRET_NAMESPACE).await.context("cannot read the Namespace kube-system")?;
    let Some(born) = born.creation_timestamp() else { return Ok(None) };
    if jiff::Timestamp::now().as_second() - born.0.as_second() >= MADE_WITHIN.as_secs() {
        return Ok(None);
    }
    let password = password();
    let hash = htpasswd::hash(&password)?;
    let mut secret = Secret::default();
    secret.metadata.name = Some(LOGIN_NAME.to_owned());
    secret.data = Some(BTreeMap::from([(LOGIN_NAME.to_owned(), ByteString(hash.into_bytes()))]));
    let secrets: Api<Secret> = Api::namespaced(client.clone(), SECRET_NAMESPACE);
    match secrets.create(&PostParams::default(), &secret).await {
        Ok(_) => Ok(Some(password)),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(None),
        Err(err) => Err(err).context("cannot make the Secret of kube:admin"),
    }
}

/// Four times five letters, about 116 random bits.
fn password() -> String {
    let mut random = rand::rng();
    let mut part = || -> String {
        (0..PART).filter_map(|_| ALPHABET.choose(&mut random)).map(|byte| char::from(*byte)).collect()
    };
    (0..PARTS).map(|_| part()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_long_enough_for_openshift() {
        let (one, other) = (password(), password());
        assert_eq!(one.len(), picoshift_machinery::bootstrap_user::MIN_PASSWORD);
        assert_eq!(one.matches('-').count(), 3);
        assert_ne!(one, other);
    }
}
