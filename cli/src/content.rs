//! What makes a cluster look like OpenShift to programs: definitions of its kinds, and the objects that every cluster has.
//!
//! In come the version that the cluster says it is and what is the cluster's own (its id, domain and address); out go objects,
//! applied to the cluster. Nothing that somebody else has put there is touched.

pub(crate) mod converge;
pub(crate) mod definitions;
pub(crate) mod facts;
mod seeds;
pub(crate) mod version;

use std::collections::BTreeMap;

use anyhow::Result;
use kube::Client;
use serde_json::Value;

use converge::{Converge, Outcome};
use definitions::Definition;
use facts::Facts;

/// The label by which what is ours is known.
pub(crate) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "picoshift");

/// What a cluster gets.
pub(crate) struct Content {
    definitions: Vec<Definition>,
    seeds: Vec<Value>,
}

impl Content {
    /// What a cluster with these facts gets, whose groups' APIServices are given.
    pub(crate) fn new(facts: &Facts, api_services: &[Value]) -> Result<Self> {
        let mut definitions = definitions::of(facts.version())?;
        for definition in &mut definitions {
            let served_by_us = |version: &String| {
                api_services.iter().any(|service| {
                    service["spec"]["group"] == definition.group && service["spec"]["version"] == *version
                })
            };
            // Two that serve one version of a group would have its schemas change at random.
            definition.served = !definition.versions.iter().any(served_by_us);
        }
        let seeds = seeds::of(facts, &definitions)?;
        Ok(Self { definitions, seeds })
    }

    /// Defines the kinds, without waiting for each.
    pub(crate) async fn define(&self, client: &Client) -> Result<Outcome> {
        Converge::new(client).definitions(&self.definitions).await
    }

    /// Makes the objects, each as soon as its kind is served, and waits until all kinds are that were defined now.
    pub(crate) async fn seed(&self, client: &Client, defined: &Outcome) -> Result<Outcome> {
        let kinds: BTreeMap<_, _> =
            self.definitions.iter().map(|definition| (definition.key(), definition)).collect();
        let converge = Converge::new(client);
        let outcome = converge.seeds(&self.seeds, &kinds, defined).await?;
        converge.await_established(&self.definitions, defined).await?;
        Ok(outcome)
    }
}
