//! One SCC, completed for one namespace: what it fills in, and what it finds wrong.

mod capabilities;
mod containers;
mod groups;
mod pods;
mod seccomp;
mod selinux;
mod sysctls;
mod user;
mod volumes;

use picoshift_machinery::FieldError;
use serde_json::Value;
use thiserror::Error;

use self::groups::Groups;
use self::seccomp::Seccomp;
use self::selinux::SeLinux;
use self::user::User;
pub(crate) use self::volumes::KINDS as VOLUME_KINDS;
use crate::constraints::Scc;
use crate::namespace::{AnnotationError, Namespace};
use crate::pod::PodView;

/// Errors of one pod under one SCC, and bytes of their texts, beyond which no more are looked for. Upstream has no such limits.
/// It goes through all containers for each of them, and a pod with ten thousand host ports would cost it a hundred million
/// errors; and it shows all of a pod's groups in the error about each.
const MAX_ERRORS: usize = 2_000;
const MAX_TEXT: usize = 256 * 1024;

/// Why an SCC cannot judge pods of a namespace.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct ProviderError(String);

/// An SCC, ready to judge pods of a namespace.
#[derive(Debug)]
pub struct Provider<'a> {
    scc: &'a Scc,
    user: User,
    se_linux: SeLinux,
    fs_group: Groups,
    supplemental_groups: Groups,
    seccomp: Seccomp<'a>,
}

/// Why a pod is refused.
#[derive(Debug, Error)]
pub enum AssignError {
    /// What is wrong with it.
    #[error("{}", aggregate(.0))]
    Invalid(Vec<FieldError>),
    /// It is not a pod.
    #[error("the pod cannot be read: {0}")]
    Malformed(#[from] serde_json::Error),
}

impl<'a> Provider<'a> {
    /// Completes an SCC with what the namespace says.
    ///
    /// # Errors
    /// When the SCC needs what the namespace does not say, or has an unknown strategy.
    pub fn new(scc: &'a Scc, namespace: &Namespace) -> Result<Self, ProviderError> {
        let lacks = |what: &str, error: AnnotationError| {
            ProviderError(format!(
                "unable to find pre-allocated {what} annotation for namespace {} while trying to configure SCC {}: {error}",
                namespace.name,
                scc.name(),
            ))
        };
        // In upstream's order: the first that fails is the one that is told.
        let uids = match user::needs_range(&scc.run_as_user) {
            true => Some(namespace.uid_range().map_err(|error| lacks("uid", error))?),
            false => None,
        };
        let level = match selinux::needs_level(&scc.se_linux_context) {
            true => Some(namespace.level().map_err(|error| lacks("mcs", error))?),
            false => None,
        };
        let fs_group = match groups::needs_ranges(&scc.fs_group) {
            true => namespace.fs_group().map_err(|error| lacks("group", error))?,
            false => scc.fs_group.ranges.clone(),
        };
        let supplemental = match groups::needs_ranges(&scc.supplemental_groups) {
            true => namespace.supplemental_groups().map_err(|error| lacks("group", error))?,
            false => scc.supplemental_groups.ranges.clone(),
        };
        let cannot = |error: String| {
            let (scc, namespace) = (scc.name(), &namespace.name);
            ProviderError(format!("error creating provider for SCC {scc} in namespace {namespace}: {error}"))
        };
        let supplemental_type = &scc.supplemental_groups.r#type;
        Ok(Self {
            scc,
            user: User::new(&scc.run_as_user, uids).map_err(cannot)?,
            se_linux: SeLinux::new(&scc.se_linux_context, level).map_err(cannot)?,
            fs_group: Groups::new("FSGroup", "fsGroup", &scc.fs_group.r#type, fs_group).map_err(cannot)?,
            supplemental_groups: Groups::new(
                "SupplementalGroups",
                "supplementalGroups",
                supplemental_type,
                supplemental,
            )
            .map_err(cannot)?,
            seccomp: Seccomp::new(&scc.seccomp_profiles),
        })
    }

    /// The SCC.
    #[must_use]
    pub fn scc(&self) -> &'a Scc {
        self.scc
    }

    /// The pod with all that the SCC fills in.
    ///
    /// # Errors
    /// When the SCC does not allow the pod, or it cannot be read.
    pub fn assign(&self, pod: &Value) -> Result<Value, AssignError> {
        let before = PodView::read(pod)?;
        let after = self.assign_view(&before).map_err(AssignError::Invalid)?;
        let mut pod = pod.clone();
        PodView::write_changes(&before, &after, &mut pod);
        Ok(pod)
    }

    /// The same of a reading.
    pub(crate) fn assign_view(&self, pod: &PodView) -> Result<PodView, Vec<FieldError>> {
        let mut pod = pod.clone();
        let path = format!("provider {}: ", self.scc.name());
        let mut errors = Errors::default();
        self.complete_pod(&mut pod);
        self.check_pod(&pod, &path, &mut errors);
        self.assign_containers(&mut pod, &path, &mut errors);
        if errors.found.is_empty() { Ok(pod) } else { Err(errors.found) }
    }
}

/// Errors, not more than [`MAX_ERRORS`], and none after [`MAX_TEXT`].
#[derive(Default)]
struct Errors {
    found: Vec<FieldError>,
    bytes: usize,
}

impl Errors {
    fn push(&mut self, error: FieldError) {
        if !self.are_full() {
            self.bytes +=
                error.field.len() + error.shown.as_ref().map_or(0, String::len) + error.detail.len();
            self.found.push(error);
        }
    }

    fn are_full(&self) -> bool {
        self.found.len() >= MAX_ERRORS || self.bytes >= MAX_TEXT
    }
}

/// Errors as one text: each once, in brackets when there are several.
#[must_use]
pub fn aggregate<T: ToString>(errors: &[T]) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for error in errors {
        let text = error.to_string();
        if seen.insert(text.clone()) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [] => "<nil>".to_owned(),
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}
