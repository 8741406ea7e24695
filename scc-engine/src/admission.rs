//! What an admission webhook asks: may this pod be made or changed, and with what filled in?
//!
//! - [`admit`] is the mutating part. A new pod gets what the first SCC that fits fills in; a pod that is there must fit as it
//!   is, but for ephemeral containers.
//! - [`validate`] is the check after all others have changed the pod; nothing may be filled in any more.
//! - [`connect`] is for `exec` and `attach`: whoever enters a pod could have created it.

use picoshift_machinery::FieldError;
use serde_json::Value;

use crate::audit;
use crate::constraints::Scc;
use crate::namespace::Namespace;
use crate::order;
use crate::pod::{PodView, annotate};
use crate::provider::{Provider, ProviderError, aggregate};
use crate::usable::{Cluster, Subject, SubjectKind, Subjects};
use crate::verdict::{Admitted, Audit, Refusal, Verdict};
use crate::{GROUP, REQUIRED_SCC, RESOURCE, STANDARD_SCCS, SUBJECT_TYPE, VALIDATED_SCC};

mod ignored;

const UNABLE: &str = "unable to validate against any security context constraint";

/// What is done to the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is made.
    Create,
    /// It is changed.
    Update,
}

/// A request about a pod.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// What is done.
    pub operation: Operation,
    /// The subresource; empty for the pod itself.
    pub subresource: &'a str,
    /// The name in the request; empty where it is to be taken from the pod.
    pub name: &'a str,
    /// The pod's namespace.
    pub namespace: &'a Namespace,
    /// Who asks.
    pub user: &'a Subject,
    /// The pod, as JSON of `v1`.
    pub pod: &'a Value,
    /// The pod as it was, for an update.
    pub old: Option<&'a Value>,
}

/// What an SCC may change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changes {
    All,
    EphemeralContainers,
    None,
}

/// One SCC and what it says.
pub(crate) struct Attempt<'a> {
    pub(crate) provider: Provider<'a>,
    pub(crate) usable_by: Option<SubjectKind>,
    pub(crate) outcome: Outcome,
}

/// What an SCC says about a pod.
pub(crate) enum Outcome {
    /// Nobody who is asked about may use it.
    Denied,
    /// The pod breaks its rules.
    Refused(Vec<FieldError>),
    /// The pod would have to change, and may not.
    MustChange,
    /// It admits the pod, as it then is.
    Fits(Box<PodView>),
}

/// Admits a pod, with what the SCC that is chosen fills in.
///
/// # Errors
/// When no SCC admits it.
pub fn admit(cluster: &Cluster<'_>, request: &Request<'_>) -> Result<Verdict, Refusal> {
    let Some(judge) = Judge::new(cluster, request)? else { return Ok(Verdict::Ignored) };
    let required = judge.annotation(REQUIRED_SCC);
    let changes = match (request.operation, request.subresource) {
        (Operation::Create, _) => Changes::All,
        (Operation::Update, "ephemeralcontainers") => Changes::EphemeralContainers,
        (Operation::Update, _) => Changes::None,
    };
    if let Some(old) = request.old.filter(|_| request.operation == Operation::Update) {
        let before = old["metadata"]["annotations"][REQUIRED_SCC].as_str().unwrap_or_default();
        if before != required {
            let what = "invalid change of required security context constraint annotation";
            return Err(judge.refusal(format!("{what}: {REQUIRED_SCC}")));
        }
    }
    let (chosen, audit) = judge.choose(changes, required, "")?;
    let (provider, subject, after) =
        chosen.map_err(|errors| judge.refused(format!("{UNABLE}: {}", aggregate(&errors)), audit.clone()))?;
    let mut pod = request.pod.clone();
    PodView::write_changes(&judge.pod, &after, &mut pod);
    annotate(&mut pod, VALIDATED_SCC, provider.scc().name());
    annotate(&mut pod, SUBJECT_TYPE, subject.as_str());
    let patch = json_patch::diff(request.pod, &pod);
    let scc = provider.scc().name().to_owned();
    Ok(Verdict::Admitted(Box::new(Admitted { scc, subject, pod, patch, audit })))
}

/// Checks a pod that may not be changed any more, beginning with the SCC that its annotation names.
///
/// # Errors
/// When no SCC admits it as it is.
pub fn validate(cluster: &Cluster<'_>, request: &Request<'_>) -> Result<Verdict, Refusal> {
    let Some(judge) = Judge::new(cluster, request)? else { return Ok(Verdict::Ignored) };
    let (required, hint) = (judge.annotation(REQUIRED_SCC), judge.annotation(VALIDATED_SCC));
    if !required.is_empty() && required != hint {
        let reason = format!("required scc/{required} does not match the suggested scc/{hint}");
        return Err(judge.refusal(reason));
    }
    let (chosen, audit) = judge.choose(Changes::None, required, hint)?;
    let (provider, subject, _) = chosen.map_err(|errors| {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        judge.refused(format!("{UNABLE}: [{}]", all.join(" ")), audit.clone())
    })?;
    let (scc, pod) = (provider.scc().name().to_owned(), request.pod.clone());
    Ok(Verdict::Admitted(Box::new(Admitted {
        scc,
        subject,
        pod,
        patch: json_patch::Patch::default(),
        audit,
    })))
}

/// Checks whether a user may enter a pod that runs, by `exec` or `attach`: whether she could have created it.
///
/// # Errors
/// When she could not.
pub fn connect(
    cluster: &Cluster<'_>,
    subresource: &str,
    namespace: &Namespace,
    user: &Subject,
    pod: &Value,
) -> Result<(), Refusal> {
    if subresource != "exec" && subresource != "attach" {
        return Ok(());
    }
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let operation = Operation::Create;
    let request = Request { operation, subresource: "", name, namespace, user, pod, old: None };
    admit(cluster, &request).map(drop).map_err(|refusal| Refusal {
        reason: format!(
            "{subresource} operation is not allowed because the pod's security context exceeds your permissions: {refusal}"
        ),
        ..refusal
    })
}

/// A request that is looked at.
pub(crate) struct Judge<'a> {
    cluster: &'a Cluster<'a>,
    request: &'a Request<'a>,
    pub(crate) pod: PodView,
}

/// The SCC that is chosen, or what all say.
type Chosen<'a> = Result<(Provider<'a>, SubjectKind, PodView), Vec<FieldError>>;

impl<'a> Judge<'a> {
    /// `None` for a request that SCCs have no say in.
    pub(crate) fn new(cluster: &'a Cluster<'a>, request: &'a Request<'a>) -> Result<Option<Self>, Refusal> {
        if ignored::by_subresource(request.subresource) {
            return Ok(None);
        }
        let pod = PodView::read(request.pod).map_err(|error| Refusal {
            name: request.name.to_owned(),
            reason: format!("object was marked as kind pod but was unable to be converted: {error}"),
            passing: false,
            audit: Audit::new(),
        })?;
        let unchanged = || request.old.is_some_and(|old| ignored::by_changes(request.pod, old));
        if pod.spec.os.name == "windows" || (request.operation == Operation::Update && unchanged()) {
            return Ok(None);
        }
        Ok(Some(Self { cluster, request, pod }))
    }

    pub(crate) fn annotation(&self, key: &str) -> &str {
        self.pod.metadata.annotations.get(key).map(String::as_str).unwrap_or_default()
    }

    fn refusal(&self, reason: String) -> Refusal {
        self.refused(reason, Audit::new())
    }

    fn refused(&self, reason: String, audit: Audit) -> Refusal {
        let metadata = &self.pod.metadata;
        let names = [self.request.name, &metadata.name, &metadata.generate_name];
        let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown").to_owned();
        Refusal { name, reason, passing: false, audit }
    }

    /// The SCCs in the order in which they are tried.
    fn ordered(&self, changes: Changes, required: &str, hint: &str) -> Result<Vec<&'a Scc>, Refusal> {
        let all = self.cluster.sccs;
        let missing: Vec<&str> =
            STANDARD_SCCS.into_iter().filter(|name| !all.iter().any(|scc| scc.name() == *name)).collect();
        if !missing.is_empty() {
            let reason = format!("{RESOURCE}.{GROUP} cache is missing {}", missing.join(", "));
            return Err(Refusal { passing: true, ..self.refusal(reason) });
        }
        let mut sccs: Vec<&Scc> =
            all.iter().filter(|scc| required.is_empty() || scc.name() == required).collect();
        if sccs.is_empty() {
            let reason = format!(
                "failed to retrieve the required SCC \"{required}\": {RESOURCE}.{GROUP} \"{required}\" not found"
            );
            return Err(self.refusal(reason));
        }
        sccs.sort_by(|one, other| order::compare(one, other));
        if changes != Changes::All {
            sccs.sort_by_key(|scc| scc.name() != hint);
        }
        Ok(sccs)
    }

    /// The SCCs, ready to judge.
    pub(crate) fn providers(
        &self,
        changes: Changes,
        required: &str,
        hint: &str,
    ) -> Result<Vec<Provider<'a>>, Refusal> {
        let sccs = self.ordered(changes, required, hint)?;
        providers(&sccs, self.request.namespace)
            .map_err(|(reason, passing)| Refusal { passing, ..self.refusal(reason) })
    }

    pub(crate) fn subjects(&self) -> Subjects<'a> {
        Subjects::new(&self.request.namespace.name, self.pod.spec.service_account(), self.request.user)
    }

    pub(crate) fn attempt(
        &self,
        provider: Provider<'a>,
        subjects: &Subjects<'_>,
        changes: Changes,
    ) -> Attempt<'a> {
        let usable_by = subjects.usable_by(self.cluster, provider.scc());
        let outcome = if usable_by.is_some() { self.outcome(&provider, changes) } else { Outcome::Denied };
        Attempt { provider, usable_by, outcome }
    }

    /// What an SCC says, whoever may use it.
    pub(crate) fn outcome(&self, provider: &Provider<'_>, changes: Changes) -> Outcome {
        let after = match provider.assign_view(&self.pod) {
            Ok(after) => after,
            Err(errors) => return Outcome::Refused(errors),
        };
        let fits = match changes {
            Changes::All => true,
            Changes::EphemeralContainers => {
                let mut rest = after.clone();
                rest.spec.ephemeral_containers.clone_from(&self.pod.spec.ephemeral_containers);
                rest == self.pod
            }
            Changes::None => after == self.pod,
        };
        if fits { Outcome::Fits(Box::new(after)) } else { Outcome::MustChange }
    }

    /// Tries the SCCs in their order.
    fn choose(&self, changes: Changes, required: &str, hint: &str) -> Result<(Chosen<'a>, Audit), Refusal> {
        let subjects = self.subjects();
        let mut attempts: Vec<Attempt<'a>> = Vec::new();
        let mut rest = self.providers(changes, required, hint)?.into_iter();
        for provider in rest.by_ref() {
            attempts.push(self.attempt(provider, &subjects, changes));
            if matches!(attempts.last(), Some(Attempt { outcome: Outcome::Fits(_), .. })) {
                break;
            }
        }
        let audit = match changes {
            Changes::All => {
                let fits = |provider: Provider<'a>| {
                    let attempt = self.attempt(provider, &subjects, changes);
                    matches!(attempt.outcome, Outcome::Fits(_)).then(|| attempt.provider.scc())
                };
                // Only for the log, so it is not looked for where nothing was chosen: nothing is left then.
                audit::of_choice(&attempts, rest.find_map(fits))
            }
            _ => audit::of_check(&attempts, hint),
        };
        Ok((self.chosen(attempts), audit))
    }

    fn chosen(&self, mut attempts: Vec<Attempt<'a>>) -> Chosen<'a> {
        if let Some(Attempt { provider, usable_by: Some(subject), outcome: Outcome::Fits(after) }) =
            attempts.pop_if(|attempt| matches!(attempt.outcome, Outcome::Fits(_)))
        {
            return Ok((provider, subject, *after));
        }
        let named = |name: &str| attempts.iter().find(|attempt| attempt.provider.scc().name() == name);
        let mut hint = None;
        if let (Some(_), Some(Attempt { provider, outcome: Outcome::Denied, .. })) =
            (named("restricted-v2"), named("restricted"))
            && provider.assign_view(&self.pod).is_ok()
        {
            hint = Some(FieldError::forbidden(
                "no access to scc/restricted",
                "the pod fails to validate against the `restricted-v2` security context constraint, \
                 but would validate successfully against the `restricted` security context constraint",
            ));
        }
        let errors = attempts.into_iter().flat_map(|attempt| match attempt.outcome {
            Outcome::Denied => vec![denied(attempt.provider.scc())],
            Outcome::Refused(errors) => errors,
            Outcome::MustChange | Outcome::Fits(_) => Vec::new(),
        });
        Err(errors.chain(hint).collect())
    }
}

fn denied(scc: &Scc) -> FieldError {
    FieldError::forbidden(format!("provider \"{}\"", scc.name()), "not usable by user or serviceaccount")
}

/// SCCs ready to judge pods of a namespace; an error with its text, and whether it may pass by itself.
pub(crate) fn providers<'a>(
    sccs: &[&'a Scc],
    namespace: &Namespace,
) -> Result<Vec<Provider<'a>>, (String, bool)> {
    if let Some(missing) = namespace.missing_annotation() {
        let name = &namespace.name;
        return Err((
            format!("error fetching namespace \"{name}\": unable to find annotation {missing}"),
            true,
        ));
    }
    let (ready, errors): (Vec<_>, Vec<_>) =
        sccs.iter().map(|scc| Provider::new(scc, namespace)).partition(Result::is_ok);
    let errors: Vec<ProviderError> = errors.into_iter().filter_map(Result::err).collect();
    if errors.is_empty() {
        Ok(ready.into_iter().filter_map(Result::ok).collect())
    } else {
        Err((aggregate(&errors), false))
    }
}
