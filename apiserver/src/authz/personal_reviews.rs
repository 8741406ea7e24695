//! Access reviews of `authorization.openshift.io` about oneself.
//!
//! OpenShift's servers look into the body of such a review before they authorize its request: where it names neither a
//! user nor groups, the request counts as one for `selfsubjectaccessreviews` of `authorization.k8s.io`, which everybody
//! may create. A kube-apiserver that is not patched cannot know. So it is told yes to whoever may create that, and our
//! server, which reads the body, decides what the request really is. Its own questions name no version, and so never
//! get the answer that is meant for kube-apiserver.

use super::Attributes;

/// The group of the reviews.
pub const GROUP: &str = "authorization.openshift.io";
/// Version in the paths of requests, which kube-apiserver asks with.
const VERSION: &str = "v1";
/// Stands for any version.
const ANY_VERSION: &str = "*";

/// What the request of a personal review counts as; `None` for anything that cannot be one, and for a question of which
/// it is settled that it is none.
#[must_use]
pub fn at_the_front(asked: &Attributes) -> Option<Attributes> {
    let review = matches!(asked.resource.as_str(), "subjectaccessreviews" | "localsubjectaccessreviews");
    let whole = asked.subresource.is_empty() && asked.name.is_empty();
    (review && whole && asked.group == GROUP && asked.version == VERSION && asked.verb == "create")
        .then(|| personal(&asked.namespace))
}

/// To review one's own access in a namespace; empty for the cluster.
#[must_use]
pub fn personal(namespace: &str) -> Attributes {
    Attributes {
        verb: "create".to_owned(),
        group: "authorization.k8s.io".to_owned(),
        version: VERSION.to_owned(),
        resource: "selfsubjectaccessreviews".to_owned(),
        namespace: namespace.to_owned(),
        ..Attributes::default()
    }
}

/// To review another's access: the request as it is, now that its body is known.
#[must_use]
pub fn of_others(resource: &str, namespace: &str) -> Attributes {
    Attributes {
        verb: "create".to_owned(),
        group: GROUP.to_owned(),
        version: ANY_VERSION.to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        ..Attributes::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(resource: &str) -> Attributes {
        Attributes { version: VERSION.to_owned(), ..of_others(resource, "ns") }
    }

    #[test]
    fn only_the_front_s_question_about_a_review_has_a_stand_in() {
        for resource in ["subjectaccessreviews", "localsubjectaccessreviews"] {
            assert_eq!(at_the_front(&asked(resource)), Some(personal("ns")));
            assert_eq!(at_the_front(&of_others(resource, "ns")), None, "our own question");
        }
        let review = asked("subjectaccessreviews");
        for other in [
            asked("resourceaccessreviews"),
            asked("subjectrulesreviews"),
            Attributes { group: "authorization.k8s.io".to_owned(), ..review.clone() },
            Attributes { group: String::new(), ..review.clone() },
            Attributes { verb: "*".to_owned(), ..review.clone() },
            Attributes { name: "x".to_owned(), ..review.clone() },
            Attributes { subresource: "status".to_owned(), ..review.clone() },
            Attributes { version: "v2".to_owned(), ..review.clone() },
            Attributes { version: String::new(), ..review },
        ] {
            assert_eq!(at_the_front(&other), None, "{other:?}");
        }
    }
}
