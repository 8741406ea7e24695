//! Seccomp profiles: fields of pods and containers, and the annotations that were there before them.
//!
//! Inside, a profile is named as the annotations name it.

use picoshift_machinery::FieldError;

use super::Errors;
use crate::pod::{Container, PodView, SECCOMP_CONTAINER, SECCOMP_POD, SeccompProfile};

const RUNTIME_DEFAULT: &str = "runtime/default";
const DOCKER_DEFAULT: &str = "docker/default";
const UNCONFINED: &str = "unconfined";
const LOCALHOST: &str = "localhost/";

/// Which profiles are allowed.
#[derive(Debug)]
pub(super) struct Seccomp<'a> {
    any: bool,
    allowed: Vec<&'a str>,
}

impl<'a> Seccomp<'a> {
    pub(super) fn new(profiles: &'a [String]) -> Self {
        let names = || profiles.iter().map(String::as_str);
        Self { any: names().any(|name| name == "*"), allowed: names().filter(|name| *name != "*").collect() }
    }

    /// Sets a pod's profile in both forms: the annotation wins over the field, and both over the first that is allowed.
    pub(super) fn complete(&self, pod: &mut PodView) {
        let annotated = pod.metadata.annotations.get(SECCOMP_POD).filter(|name| !name.is_empty()).cloned();
        let field = || pod.spec.security_context.seccomp_profile.as_ref().map(name);
        let first = || self.allowed.first().map(|name| (*name).to_owned());
        let Some(name) = annotated.or_else(field).or_else(first).filter(|name| !name.is_empty()) else {
            return;
        };
        pod.spec.security_context.seccomp_profile = profile(&name);
        pod.metadata.annotations.insert(SECCOMP_POD.to_owned(), name);
    }

    pub(super) fn check_pod(&self, pod: &PodView, errors: &mut Errors) {
        let annotated = pod.metadata.annotations.get(SECCOMP_POD).filter(|name| !name.is_empty()).cloned();
        let field = || pod.spec.security_context.seccomp_profile.as_ref().map(name);
        let name = annotated.or_else(field).unwrap_or_default();
        self.check(SECCOMP_POD, &name, errors);
    }

    pub(super) fn check_container(&self, pod: &PodView, container: &Container, errors: &mut Errors) {
        let key = format!("{SECCOMP_CONTAINER}{}", container.name);
        let annotations = &pod.metadata.annotations;
        let name = match (&container.security_context.seccomp_profile, annotations.get(&key)) {
            (Some(field), _) => name(field),
            (None, Some(annotated)) => annotated.clone(),
            (None, None) => match &pod.spec.security_context.seccomp_profile {
                Some(field) => name(field),
                None => annotations.get(SECCOMP_POD).cloned().unwrap_or_default(),
            },
        };
        self.check(&key, &name, errors);
    }

    fn check(&self, annotation: &str, name: &str, errors: &mut Errors) {
        if self.any {
            return;
        }
        let detail = if self.allowed.is_empty() {
            if name.is_empty() {
                return;
            }
            "seccomp may not be set".to_owned()
        } else {
            let default = |name: &str| name == RUNTIME_DEFAULT || name == DOCKER_DEFAULT;
            let fits = |allowed: &&str| name == *allowed || (default(name) && default(allowed));
            if self.allowed.iter().any(fits) {
                return;
            }
            let all = self.allowed.join(" ");
            format!("{name} is not an allowed seccomp profile. Valid values are [{all}]")
        };
        errors.push(FieldError::forbidden(format!("pod.metadata.annotations[{annotation}]"), detail));
    }
}

/// The profile that an annotation names; `None` for a name that says nothing.
pub(super) fn profile(name: &str) -> Option<SeccompProfile> {
    let of = |r#type: &str, file: Option<&str>| {
        Some(SeccompProfile { r#type: r#type.to_owned(), localhost_profile: file.map(str::to_owned) })
    };
    match name {
        UNCONFINED => of("Unconfined", None),
        RUNTIME_DEFAULT | DOCKER_DEFAULT => of("RuntimeDefault", None),
        _ => name
            .strip_prefix(LOCALHOST)
            .filter(|file| !file.is_empty())
            .and_then(|file| of("Localhost", Some(file))),
    }
}

/// As an annotation names a profile; empty where it could not.
fn name(profile: &SeccompProfile) -> String {
    match (profile.r#type.as_str(), &profile.localhost_profile) {
        ("Unconfined", _) => UNCONFINED.to_owned(),
        ("RuntimeDefault", _) => RUNTIME_DEFAULT.to_owned(),
        ("Localhost", Some(file)) => format!("{LOCALHOST}{file}"),
        _ => String::new(),
    }
}
