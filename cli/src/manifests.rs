//! The objects that the cluster gets: `deploy/`, completed with what is known only here.

use anyhow::{Context, Result};
use base64::Engine;
use serde_json::{Value, json};

use crate::paths::Paths;
use crate::yaml;

const FILES: [&str; 5] = [
    include_str!("../../deploy/apiserver/namespace.yaml"),
    include_str!("../../deploy/apiserver/rbac.yaml"),
    include_str!("../../deploy/apiserver/service.yaml"),
    include_str!("../../deploy/apiserver/apiservices.yaml"),
    include_str!("../../deploy/rbac/bootstrap.yaml"),
];

/// The objects, in an order in which they can be made.
pub(crate) fn objects(paths: &Paths, port: u16) -> Result<Vec<Value>> {
    let authority =
        std::fs::read(paths.pki("cluster-ca.crt")).context("cannot read the cluster's authority")?;
    let authority = base64::engine::general_purpose::STANDARD.encode(authority);
    let mut objects = Vec::new();
    for file in FILES {
        objects.extend(yaml::documents(file)?);
    }
    for object in &mut objects {
        complete(object, port, &authority);
    }
    Ok(objects)
}

/// On this machine the Service is another name of the loopback address, and its port is the server's own.
fn complete(object: &mut Value, port: u16, authority: &str) {
    match object["kind"].as_str() {
        Some("Service") => object["spec"]["ports"][0]["port"] = json!(port),
        Some("APIService") => {
            object["spec"]["service"]["port"] = json!(port);
            object["spec"]["caBundle"] = json!(authority);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all() -> Vec<Value> {
        let mut objects: Vec<Value> = FILES.iter().flat_map(|file| yaml::documents(file).unwrap()).collect();
        objects.iter_mut().for_each(|object| complete(object, 18443, "Q0E="));
        objects
    }

    fn rules<'a>(objects: &'a [Value], role: &str) -> &'a Vec<Value> {
        let role = objects
            .iter()
            .find(|object| object["kind"] == "ClusterRole" && object["metadata"]["name"] == role);
        role.unwrap()["rules"].as_array().unwrap()
    }

    #[test]
    fn every_object_is_labelled_and_there_once() {
        let mut seen = BTreeSet::new();
        for object in all() {
            assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/managed-by"], "picoshift", "{object}");
            let metadata = &object["metadata"];
            assert!(
                seen.insert(format!("{} {} {}", object["kind"], metadata["namespace"], metadata["name"]))
            );
        }
    }

    #[test]
    fn the_kustomizations_name_every_file() {
        let apiserver = include_str!("../../deploy/apiserver/kustomization.yaml");
        let rbac = include_str!("../../deploy/rbac/kustomization.yaml");
        for file in ["namespace.yaml", "rbac.yaml", "service.yaml", "apiservices.yaml"] {
            assert!(apiserver.contains(file));
        }
        assert!(rbac.contains("bootstrap.yaml"));
    }

    #[test]
    fn ports_and_authority_are_filled_in() {
        let objects = all();
        let of_kind = |kind: &'static str| objects.iter().filter(move |object| object["kind"] == kind);
        for service in of_kind("Service") {
            assert_eq!(service["spec"]["ports"][0]["port"], 18443);
        }
        assert_eq!(of_kind("APIService").count(), 2);
        for api_service in of_kind("APIService") {
            assert_eq!(api_service["spec"]["service"]["port"], 18443);
            assert_eq!(api_service["spec"]["caBundle"], "Q0E=");
        }
    }

    /// Such a rule would satisfy every check in a namespace, and anybody could delete any Project.
    #[test]
    fn nobody_gets_projects_of_others() {
        let objects = all();
        for role in ["system:openshift:aggregate-to-basic-user", "self-provisioner"] {
            for rule in rules(&objects, role) {
                let resources = rule["resources"].as_array().unwrap();
                if resources.iter().any(|resource| resource == "projects" || resource == "*") {
                    assert_eq!(rule["verbs"], json!(["list", "watch"]), "{role}");
                }
            }
        }
    }

    #[test]
    fn openshift_rules_name_both_groups() {
        for object in all().iter().filter(|object| object["kind"] == "ClusterRole") {
            for rule in object["rules"].as_array().into_iter().flatten() {
                let groups = rule["apiGroups"].as_array().unwrap();
                let openshift = groups.iter().any(|group| group.as_str().unwrap().ends_with("openshift.io"));
                assert!(!openshift || groups.iter().any(|group| group == ""), "{rule}");
            }
        }
    }

    #[test]
    fn our_server_may_bind_the_admin_role_only() {
        let objects = all();
        let bind = rules(&objects, "system:openshift:picoshift-apiserver").iter().filter(|rule| {
            rule["verbs"].as_array().unwrap().iter().any(|verb| verb == "bind" || verb == "*")
        });
        for rule in bind {
            assert_eq!(rule["resourceNames"], json!(["admin"]));
        }
    }
}
