//! What the garbage collector sees of kinds that it must leave alone: nothing.
//!
//! OpenShift patches kube-controller-manager to skip these kinds; the stock one watches everything that can be deleted,
//! and takes a Project and its Namespace, which have one uid, for one object. So for it lists and watches select
//! nothing, with true revisions and bookmarks. What is asked by name is answered.

use picoshift_machinery::UserInfo;
use picoshift_machinery::selector::FieldRequirement;

use super::ListOptions;
use crate::resource::Resource;

/// The garbage collector, by the names under which kube-controller-manager may run it.
const COLLECTORS: [&str; 2] =
    ["system:kube-controller-manager", "system:serviceaccount:kube-system:generic-garbage-collector"];

/// Narrows a list or watch to nothing where the garbage collector asks for a kind that is not its own to collect.
pub(crate) fn hide(resource: &Resource, user: &UserInfo, options: &mut ListOptions) {
    if !resource.garbage_collected && COLLECTORS.contains(&user.name.as_str()) {
        // No object has an empty name.
        options.fields.requirements.push(FieldRequirement {
            field: "metadata.name".to_owned(),
            value: String::new(),
            negated: false,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::project::PROJECTS;
    use crate::groups::route::ROUTES;

    #[test]
    fn only_the_collector_and_only_some_kinds() {
        let hides = |resource: &Resource, name: &str| {
            let mut options = ListOptions::default();
            hide(resource, &UserInfo { name: name.to_owned(), ..UserInfo::default() }, &mut options);
            let named = |field: &str| (field == "metadata.name").then_some("x");
            !options.fields.matches(named)
        };
        for collector in COLLECTORS {
            assert!(hides(&PROJECTS, collector) && !hides(&ROUTES, collector));
        }
        assert!(!hides(&PROJECTS, "system:serviceaccount:kube-system:namespace-controller"));
        assert!(!hides(&PROJECTS, ""));
    }
}
