//! Table rows (`openshift-apiserver/pkg/authorization/printers`).

use picoshift_machinery::Object;
use serde_json::Value;

/// Names that a cell shows.
const SHOWN: usize = 5;

/// The cells of a role.
pub(super) fn role_row(role: &Object) -> Vec<Value> {
    vec![role.name().into()]
}

/// The cells of a binding; service accounts of its own namespace are shown without one.
pub(super) fn binding_row(binding: &Object) -> Vec<Value> {
    let (mut users, mut groups) = (Vec::new(), Vec::new());
    let (mut accounts, mut others) = (Vec::new(), Vec::new());
    for subject in binding.at(&["subjects"]).and_then(Value::as_array).into_iter().flatten() {
        let text = |field: &str| subject[field].as_str().unwrap_or_default().to_owned();
        let (kind, namespace, name) = (text("kind"), text("namespace"), text("name"));
        match kind.as_str() {
            "ServiceAccount" if namespace.is_empty() || namespace == binding.namespace() => {
                accounts.push(name);
            }
            "ServiceAccount" => accounts.push(format!("{namespace}/{name}")),
            "User" | "SystemUser" => users.push(name),
            "Group" | "SystemGroup" => groups.push(name),
            _ => others.push(format!("{kind}/{namespace}/{name}")),
        }
    }
    let role = |field: &str| binding.str_at(&["roleRef", field]);
    vec![
        binding.name().into(),
        format!("{}/{}", role("namespace"), role("name")).into(),
        cut(&users).into(),
        cut(&groups).into(),
        accounts.join(", ").into(),
        others.join(", ").into(),
    ]
}

fn cut(names: &[String]) -> String {
    match names.get(..SHOWN) {
        Some(first) if names.len() > SHOWN => {
            format!("{} ({} more)", first.join(", "), names.len() - SHOWN)
        }
        _ => names.join(", "),
    }
}
