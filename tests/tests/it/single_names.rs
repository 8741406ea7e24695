//! Permissions for single names: a list or a deletecollection that was authorized for a name is of that name.

use picoshift_tests::ControlPlane;
use picoshift_tests::objects::{names, route, routes_path};
use serde_json::{Value, json};

use crate::support::{assert_forbidden, new_namespace, newcomer};

const SELECTOR: &str = "fieldSelector=metadata.name%3Dhers";

/// Lets a user list and delete the Routes of a name.
fn rules(user: &str) -> [(&'static str, Value); 2] {
    let rbac = "rbac.authorization.k8s.io";
    let rule = json!({"apiGroups": ["route.openshift.io"], "resources": ["routes"], "resourceNames": ["hers"],
        "verbs": ["list", "watch", "deletecollection"]});
    let subject = json!({"apiGroup": rbac, "kind": "User", "name": user});
    [
        ("roles", json!({"metadata": {"name": "hers"}, "rules": [rule]})),
        (
            "rolebindings",
            json!({"metadata": {"name": "hers"}, "subjects": [subject],
                "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "hers"}}),
        ),
    ]
}

#[tokio::test]
async fn who_may_list_one_name_reaches_no_other() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (admin, eve) = (plane.admin()?, newcomer(&plane, "eve")?);
    let namespace = new_namespace(&admin, "names").await?;
    for (resource, object) in rules(&eve.name) {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/{resource}");
        admin.api.post(&path, &object).await?.expect_code(201)?;
    }
    let routes = routes_path(&namespace);
    for name in ["hers", "other"] {
        admin.api.post(&routes, &route(name)).await?.expect_code(201)?;
    }
    for http in [eve.direct()?, &eve.api] {
        assert_eq!(names(&http.get(&format!("{routes}?{SELECTOR}")).await?.ok()?), ["hers"]);
        // What one reader of the query takes for a selector, another might leave out.
        for query in [
            format!("fieldSelector=&{SELECTOR}"),
            format!("{SELECTOR},metadata.name!%3Dx;y"),
            format!("{SELECTOR},metadata.name!%3D%zz"),
            format!("{SELECTOR};"),
            "limit=5".to_owned(),
        ] {
            let path = format!("{routes}?{query}");
            assert_forbidden(&http.get(&path).await?.expect_code(403)?, &eve.name);
            assert_forbidden(&http.delete(&path, &json!({})).await?.expect_code(403)?, &eve.name);
        }
    }
    assert_eq!(names(&admin.api.get(&routes).await?.ok()?), ["hers", "other"]);
    Ok(())
}
