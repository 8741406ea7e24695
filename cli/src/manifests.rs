//! The objects that the cluster gets: `deploy/`, completed with what is known only here.

use anyhow::{Context, Result};
use base64::Engine;
use serde_json::{Value, json};

use crate::paths::Paths;
use crate::yaml;

const FILES: [&str; 17] = [
    include_str!("../../deploy/cluster/cluster-admins.yaml"),
    include_str!("../../deploy/cluster/namespaces.yaml"),
    include_str!("../../deploy/cluster/openshift-service.yaml"),
    include_str!("../../deploy/apiserver/namespace.yaml"),
    include_str!("../../deploy/apiserver/rbac.yaml"),
    include_str!("../../deploy/apiserver/service.yaml"),
    include_str!("../../deploy/apiserver/apiservices.yaml"),
    include_str!("../../deploy/controllers/namespace.yaml"),
    include_str!("../../deploy/controllers/rbac.yaml"),
    include_str!("../../deploy/shim/rbac.yaml"),
    include_str!("../../deploy/rbac/scc.yaml"),
    include_str!("../../deploy/rbac/bootstrap.yaml"),
    include_str!("../../deploy/rbac/images.yaml"),
    include_str!("../../deploy/rbac/oauth.yaml"),
    include_str!("../../deploy/rbac/cluster.yaml"),
    include_str!("../../deploy/rbac/public.yaml"),
    include_str!("../../deploy/rbac/shared-resources.yaml"),
];

const SCCS: &str = include_str!("../../deploy/scc/sccs.yaml");

/// How users log in at first: made when there is none.
pub(crate) fn oauth() -> Result<Vec<Value>> {
    yaml::documents(include_str!("../../deploy/oauth.yaml"))
}

/// OpenShift's own SecurityContextConstraints: those that are kept as they are here, and those that are made once and then
/// left to the administrator.
pub(crate) fn sccs() -> Result<(Vec<Value>, Vec<Value>)> {
    let once =
        |object: &Value| object["metadata"]["annotations"]["release.openshift.io/create-only"] == "true";
    let all = yaml::documents(SCCS)?;
    Ok(all.into_iter().partition(|object| !once(object)))
}

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
        Some("Service") if object["spec"]["ports"].is_array() => {
            object["spec"]["ports"][0]["port"] = json!(port);
        }
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
        let whole = include_str!("../../deploy/kustomization.yaml");
        let folders = [
            ("cluster", include_str!("../../deploy/cluster/kustomization.yaml")),
            ("apiserver", include_str!("../../deploy/apiserver/kustomization.yaml")),
            ("controllers", include_str!("../../deploy/controllers/kustomization.yaml")),
            ("shim", include_str!("../../deploy/shim/kustomization.yaml")),
            ("rbac", include_str!("../../deploy/rbac/kustomization.yaml")),
            ("scc", include_str!("../../deploy/scc/kustomization.yaml")),
        ];
        let mut named: usize = 0;
        for (folder, kustomization) in folders {
            assert!(whole.contains(&format!("- {folder}\n")));
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(folder);
            for entry in std::fs::read_dir(path).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                if name != "kustomization.yaml" {
                    assert!(kustomization.contains(&format!("- {name}\n")), "{folder}/{name}");
                    named += 1;
                }
            }
        }
        assert_eq!(named, FILES.len() + [SCCS].len());
    }

    /// Who names no users and groups owns none: those that somebody adds stay when `up` applies the rest again.
    #[test]
    fn sccs_that_are_applied_again_name_nobody() {
        let (kept, once) = sccs().unwrap();
        assert_eq!((kept.len(), once.len()), (5, 8));
        for object in kept.iter().chain(&once) {
            assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/managed-by"], "picoshift");
        }
        for object in kept {
            assert!(object["users"].is_null() && object["groups"].is_null(), "{object}");
        }
    }

    #[test]
    fn ports_and_authority_are_filled_in() {
        let objects = all();
        let of_kind = |kind: &'static str| objects.iter().filter(move |object| object["kind"] == kind);
        for service in of_kind("Service").filter(|service| service["spec"]["ports"].is_array()) {
            assert_eq!(service["spec"]["ports"][0]["port"], 18443);
        }
        assert!(of_kind("APIService").count() >= 3);
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
        let objects = all();
        let is_bootstrap = |object: &&Value| {
            let kept = &object["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"];
            // Those of SCCs name the one group on OpenShift too.
            let of_scc = object["metadata"]["name"].as_str().unwrap().starts_with("system:openshift:scc:");
            kept == "true" && !of_scc && (object["kind"] == "ClusterRole" || object["kind"] == "Role")
        };
        let mut openshift = 0;
        for rule in
            objects.iter().filter(is_bootstrap).flat_map(|object| object["rules"].as_array()).flatten()
        {
            let Some(groups) = rule["apiGroups"].as_array() else { continue };
            // They never had another group.
            let newer = rule["resources"] == json!(["rangeallocations"]);
            if !newer && groups.iter().any(|group| group.as_str().unwrap().ends_with(".openshift.io")) {
                assert!(groups.iter().any(|group| group == ""), "{rule}");
                openshift += 1;
            }
        }
        assert!(openshift > 40, "{openshift}");
    }

    /// By this annotation an administrator says whether a role follows OpenShift's.
    #[test]
    fn bootstrap_roles_are_kept_up_to_date() {
        // OpenShift's operator of authentication makes these, not its API server.
        let operators = json!("system:openshift:useroauthaccesstoken-manager");
        let roles = FILES[FILES.len() - 5..].iter().flat_map(|file| yaml::documents(file).unwrap());
        for object in roles.filter(|object| object["metadata"]["name"] != operators) {
            let kept = &object["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"];
            assert!(kept == "true" || object["kind"] == "Namespace", "{object}");
        }
    }

    #[test]
    fn our_servers_may_bind_only_what_they_have_to() {
        let objects = all();
        let bound = |role: &str| {
            let rules = rules(&objects, role).iter().filter(|rule| {
                rule["verbs"].as_array().unwrap().iter().any(|verb| verb == "bind" || verb == "*")
            });
            rules.map(|rule| rule["resourceNames"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(bound("system:openshift:picoshift-apiserver"), [json!(["admin"])]);
        let default = json!(["system:image-puller", "system:image-builder", "system:deployer"]);
        assert_eq!(bound("system:openshift:controller:default-role-bindings"), [default]);
        assert!(bound("system:openshift:controller:image-import").is_empty());
    }
}
