//! What the bootstrap roles come to: who may do what with images, users, projects and routes.

use anyhow::ensure;
use picoshift_tests::eventually::eventually;
use picoshift_tests::objects::{OAUTH_GROUP, role_binding, unique};
use picoshift_tests::{Actor, ControlPlane};
use serde_json::json;

use crate::support::new_namespace;

/// `VERBS RESOURCE[/SUBRESOURCE][=NAME].GROUP` per line.
type Rules = &'static [&'static str];

const MEMBER: Rules = &[
    "get,list,watch imagestreams.image",
    "get,list imagestreamtags.image",
    "get,list imagetags.image",
    "get imagestreamimages.image",
    "get,list,watch routes.route",
    "get projects.project",
];
const EDITOR: Rules = &[
    "create,update,patch,delete,deletecollection imagestreams.image",
    "create,update,delete imagestreamtags.image",
    "create,update,delete imagetags.image",
    "create imagestreammappings.image",
    "create imagestreamimports.image",
    "get imagestreams/secrets.image",
    "get,update imagestreams/layers.image",
    "create routes.route",
    "create routes/custom-host.route",
];
const ADMIN: Rules = &[
    "update,patch,delete projects.project",
    "update routes/status.route",
    "create podsecuritypolicyreviews.security",
    "create podsecuritypolicysubjectreviews.security",
    "create podsecuritypolicyselfsubjectreviews.security",
];
const NO_MEMBER: Rules = &[
    "update imagestreams/status.image",
    "get,list,create images.image",
    "create,delete imagesignatures.image",
    "get,list,watch,create users.user",
    "get,list,create groups.user",
    "get,list identities.user",
    "get,create useridentitymappings.user",
    "get,create,update securitycontextconstraints.security",
    "use securitycontextconstraints=anyuid.security",
    "get,create rangeallocations.security",
];
const EVERYBODY: Rules = &[
    "get users=~.user",
    "list,watch projects.project",
    "list projectrequests.project",
    "use securitycontextconstraints=restricted-v2.security",
    "use securitycontextconstraints=restricted-v3.security",
];
const NOT_EVERYBODY: Rules = &[
    "get users.user",
    "get users=somebody.user",
    "update users=~.user",
    "get,list imagestreams.image",
    "get images.image",
    "get imagestreams/layers.image",
    "get projects=kube-system.project",
    "use securitycontextconstraints=restricted.security",
    "use securitycontextconstraints=privileged.security",
];

/// Asks kube-apiserver about each rule and says where it does not answer as expected.
async fn wrong(
    admin: &Actor,
    (user, groups): (&str, &[&str]),
    namespace: &str,
    rules: Rules,
    expected: bool,
) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    for rule in rules {
        let (verbs, what) = rule.split_once(' ').unwrap_or_default();
        let (resource, group) = what.rsplit_once('.').unwrap_or_default();
        let (resource, name) = resource.split_once('=').unwrap_or((resource, ""));
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        for verb in verbs.split(',') {
            // A Project is asked about as itself, which is also what kubectl does.
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {"user": user, "groups": groups, "resourceAttributes": {
                    "group": format!("{group}.openshift.io"), "version": "v1", "resource": resource,
                    "subresource": subresource, "verb": verb, "namespace": namespace, "name": name}},
            });
            let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
            let answer = admin.api.post(path, &review).await?.expect_code(201)?;
            if (answer["status"]["allowed"] == true) != expected {
                wrong.push(format!("{user} in {namespace:?}: {verb} {what}, expected {expected}"));
            }
        }
    }
    Ok(wrong)
}

#[tokio::test]
async fn members_of_a_project_may_what_their_role_says() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let (own, other) = (new_namespace(&admin, "own").await?, new_namespace(&admin, "other").await?);
    let allowed: [(&str, &[Rules], &[Rules]); 6] = [
        ("admin", &[MEMBER, EDITOR, ADMIN], &[NO_MEMBER]),
        ("edit", &[MEMBER, EDITOR], &[ADMIN, NO_MEMBER]),
        (
            "view",
            &[MEMBER],
            &[
                ADMIN,
                NO_MEMBER,
                &["create,update,delete imagestreams.image"],
                &["get imagestreams/secrets.image", "create imagestreamimports.image", "create routes.route"],
            ],
        ),
        (
            "registry-viewer",
            &[&[
                "get,list,watch imagestreams.image",
                "get imagestreams/layers.image",
                "get projects.project",
            ]],
            &[NO_MEMBER, &["update imagestreams/layers.image", "get routes.route"]],
        ),
        (
            "registry-editor",
            &[&["create imagestreams.image", "update imagestreams/layers.image"]],
            &[ADMIN, NO_MEMBER],
        ),
        (
            "registry-admin",
            &[&["delete projects.project", "update imagestreams/layers.image"]],
            &[NO_MEMBER, &["update projects.project", "create routes.route"]],
        ),
    ];
    for (role, may, may_not) in allowed {
        let user = unique(role);
        let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{own}/rolebindings");
        admin.api.post(&path, &role_binding(&user, role, &user)).await?.expect_code(201)?;
        let somebody = (user.as_str(), &["system:authenticated"][..]);
        // Bindings reach kube-apiserver's own cache a moment later.
        let look = || async {
            let mut bad = Vec::new();
            for rules in may {
                bad.extend(wrong(&admin, somebody, &own, rules, true).await?);
            }
            Ok(if bad.is_empty() { Ok(()) } else { Err(bad.join("\n")) })
        };
        eventually("the role allows what it is for", 30, look).await?;
        for (namespace, rules) in
            may_not.iter().map(|rules| (&own, *rules)).chain([(&other, EDITOR), (&other, MEMBER)])
        {
            let bad = wrong(&admin, somebody, namespace, rules, false).await?;
            ensure!(bad.is_empty(), "{}", bad.join("\n"));
        }
    }
    Ok(())
}

#[tokio::test]
async fn everybody_may_little_and_somebody_reads_everything() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "foreign").await?;
    let user = unique("somebody");
    let everybody = (user.as_str(), &["system:authenticated"][..]);
    let oauth = (user.as_str(), &["system:authenticated", OAUTH_GROUP][..]);
    let readers = (user.as_str(), &["system:authenticated", "system:cluster-readers"][..]);
    let nobody = ("system:anonymous", &["system:unauthenticated"][..]);
    let shared: Rules = &["get,list,watch imagestreams.image", "get imagestreams/layers.image"];
    let not_shared: Rules = &["create imagestreams.image", "update imagestreams/layers.image"];
    let reads: Rules = &[
        "get,list,watch images.image",
        "get,list users.user",
        "get,list groups.user",
        "get,list identities.user",
        "get,list imagestreams.image",
        "get imagestreams/layers.image",
    ];
    let writes: Rules = &["create users.user", "delete images.image", "update imagestreams/layers.image"];
    let requests: Rules = &["create projectrequests.project"];
    for (who, namespace, rules, expected) in [
        (everybody, "", EVERYBODY, true),
        (everybody, "", NOT_EVERYBODY, false),
        (everybody, "", requests, false),
        (oauth, "", requests, true),
        (everybody, namespace.as_str(), shared, false),
        (everybody, "openshift", shared, true),
        (everybody, "openshift", not_shared, false),
        (readers, "", reads, true),
        (readers, "", writes, false),
        (nobody, "", EVERYBODY, false),
        (nobody, "openshift", shared, false),
        (("system:admin", &[][..]), "", &["delete users.user", "create images.image"], true),
    ] {
        let bad = wrong(&admin, who, namespace, rules, expected).await?;
        ensure!(bad.is_empty(), "{}", bad.join("\n"));
    }
    Ok(())
}

#[tokio::test]
async fn whoever_comes_may_see_where_the_oauth_server_is() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    for group in ["system:authenticated", "system:unauthenticated"] {
        for (verb, path, expected) in [
            ("get", "/.well-known", true),
            ("get", "/.well-known/oauth-authorization-server", true),
            ("get", "/.well-known/openid-configuration", true),
            ("post", "/.well-known/oauth-authorization-server", false),
            ("get", "/.well-knownx", false),
            ("get", "/metrics", false),
        ] {
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {"user": "somebody", "groups": [group], "nonResourceAttributes": {"verb": verb, "path": path}},
            });
            let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
            let answer = admin.api.post(reviews, &review).await?.expect_code(201)?;
            ensure!(answer["status"]["allowed"] == expected, "{group}: {verb} {path}, expected {expected}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn pods_pull_from_their_own_namespace_only() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let (own, other) = (new_namespace(&admin, "pulls").await?, new_namespace(&admin, "apart").await?);
    let pull: Rules = &["get imagestreams/layers.image"];
    let push: Rules = &["update imagestreams/layers.image"];
    let deploy: Rules = &["create,update imagestreamtags.image"];
    let group = format!("system:serviceaccounts:{own}");
    let groups = ["system:serviceaccounts", group.as_str(), "system:authenticated"];
    let account = |name: &str| format!("system:serviceaccount:{own}:{name}");
    let (default, builder, deployer) = (account("default"), account("builder"), account("deployer"));
    let look = || async {
        let mut bad = wrong(&admin, (&default, &groups), &own, pull, true).await?;
        bad.extend(wrong(&admin, (&builder, &groups), &own, push, true).await?);
        bad.extend(wrong(&admin, (&deployer, &groups), &own, deploy, true).await?);
        Ok(if bad.is_empty() { Ok(()) } else { Err(bad.join("\n")) })
    };
    eventually("service accounts may what they are for", 60, look).await?;
    for (user, namespace, rules) in [
        (&default, &other, pull),
        (&builder, &other, pull),
        (&default, &own, push),
        (&deployer, &own, push),
        (&builder, &own, deploy),
        (&builder, &other, push),
    ] {
        let bad = wrong(&admin, (user, &groups), namespace, rules, false).await?;
        ensure!(bad.is_empty(), "{}", bad.join("\n"));
    }
    Ok(())
}

#[tokio::test]
async fn kubectl_says_the_same() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "asked").await?;
    let user = unique("viewer");
    let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
    admin.api.post(&path, &role_binding("viewer", "view", &user)).await?.expect_code(201)?;
    for (verb, resource, expected) in [
        ("get", "imagestreams.image.openshift.io", "yes"),
        ("create", "imagestreams.image.openshift.io", "no"),
        ("get", "routes.route.openshift.io", "yes"),
        ("get", "images.image.openshift.io", "no"),
    ] {
        let look = || async {
            let asked = [
                "auth",
                "can-i",
                verb,
                resource,
                "-n",
                &namespace,
                "--as",
                &user,
                "--as-group",
                "system:authenticated",
            ];
            let said = admin.kubectl.run(&asked).await?;
            let right = said.stdout.trim() == expected;
            Ok(if right { Ok(()) } else { Err(format!("{verb} {resource}: {}{}", said.stdout, said.stderr)) })
        };
        eventually("kubectl answers", 30, look).await?;
    }
    Ok(())
}
