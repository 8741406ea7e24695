//! The objects of a cluster, as they are applied.

use std::collections::BTreeSet;

use super::*;
use crate::content::definitions;
use crate::content::facts::Installed;
use crate::pki::IngressCertificate;

fn facts(version: &str) -> Facts {
    let installed = Installed::next(None, Some(version.parse().unwrap())).unwrap();
    let ingress = IngressCertificate { certificate: "a".into(), key: "b".into(), authority: "c".into() };
    Facts::new(installed, "apps.lab.example.org", "https://127.0.0.1:6443", ingress).unwrap()
}

fn seeds(facts: &Facts) -> Vec<Value> {
    of(facts, &definitions::of(facts.version()).unwrap()).unwrap()
}

fn one<'a>(seeds: &'a [Value], kind: &str, name: &str) -> &'a Value {
    seeds.iter().find(|seed| seed["kind"] == kind && seed["metadata"]["name"] == name).unwrap()
}

#[test]
fn all_is_completed_and_there_once() {
    for version in ["4.16", "4.21"] {
        let mut seen = BTreeSet::new();
        for seed in seeds(&facts(version)) {
            assert!(!seed.to_string().contains("$("), "{seed}");
            let metadata = &seed["metadata"];
            let key = format!(
                "{} {} {} {}",
                seed["apiVersion"], seed["kind"], metadata["namespace"], metadata["name"]
            );
            assert!(seen.insert(key), "{seed}");
        }
    }
}

#[test]
fn every_file_is_applied() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/openshift");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "clusteroperators.yaml" || FILES.iter().any(|(file, _)| *file == name), "{name}");
    }
}

#[test]
fn namespaces_that_objects_lie_in_are_made() {
    let others = [
        include_str!("../../../../deploy/cluster/namespaces.yaml"),
        include_str!("../../../../deploy/rbac/shared-resources.yaml"),
    ];
    let others: Vec<Value> = others.iter().flat_map(|file| yaml::documents(file).unwrap()).collect();
    let seeds = seeds(&facts("4.21"));
    for seed in &seeds {
        let Some(namespace) = seed["metadata"]["namespace"].as_str() else { continue };
        let made = seeds
            .iter()
            .chain(&others)
            .any(|other| other["kind"] == "Namespace" && other["metadata"]["name"] == namespace);
        assert!(made || namespace == "kube-system", "{namespace}");
    }
}

#[test]
fn a_version_is_said_everywhere_and_has_its_own() {
    let older = facts("4.17.3");
    let seeds = seeds(&older);
    let version = one(&seeds, "ClusterVersion", "version");
    assert_eq!(version["status"]["desired"]["version"], "4.17.3");
    assert_eq!(version["status"]["history"][0]["version"], "4.17.3");
    assert_eq!(version["spec"]["channel"], "stable-4.17");
    assert!(uuid::Uuid::parse_str(version["spec"]["clusterID"].as_str().unwrap()).is_ok());
    assert_eq!(one(&seeds, "ClusterOperator", "dns")["status"]["versions"][0]["version"], "4.17.3");
    assert_eq!(one(&seeds, "FeatureGate", "cluster")["status"]["featureGates"][0]["version"], "4.17.3");
    let names = |kind: &str, name: &str| {
        seeds.iter().any(|seed| seed["kind"] == kind && seed["metadata"]["name"] == name)
    };
    assert!(!names("ClusterOperator", "olm") && !names("OLM", "cluster"));
}

#[test]
fn values_are_the_clusters() {
    let seeds = seeds(&facts("4.21"));
    assert_eq!(one(&seeds, "Ingress", "cluster")["spec"]["domain"], "apps.lab.example.org");
    assert_eq!(one(&seeds, "DNS", "cluster")["spec"]["baseDomain"], "lab.example.org");
    let infrastructure = &one(&seeds, "Infrastructure", "cluster")["status"];
    assert_eq!(infrastructure["apiServerURL"], "https://127.0.0.1:6443");
    assert_eq!(infrastructure["controlPlaneTopology"], "SingleReplica");
    assert!(infrastructure["infrastructureName"].as_str().unwrap().starts_with("lab-"));
}
