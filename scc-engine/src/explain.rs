//! Why a new pod gets the SCC that it gets, and no other: for people.

use picoshift_machinery::FieldError;

use crate::REQUIRED_SCC;
use crate::admission::{Changes, Judge, Outcome, Request};
use crate::order;
use crate::usable::{Cluster, SubjectKind};
use crate::verdict::Refusal;

/// What one SCC says about a pod.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The SCC.
    pub scc: String,
    /// Its priority and how much it permits: by these it has its place.
    pub rank: (i32, u32),
    /// Who may use it; `None` for nobody who is asked about.
    pub usable_by: Option<SubjectKind>,
    /// Whether the pod fits it, whoever may use it.
    pub fit: Fit,
    /// Whether it is the one.
    pub chosen: bool,
}

/// Whether a pod fits an SCC.
#[derive(Clone, Debug)]
pub enum Fit {
    /// It does, with what the SCC fills in.
    Yes,
    /// It does not.
    No(Vec<FieldError>),
}

/// What each SCC says about a pod that is to be made, in the order in which they are tried. Empty where SCCs have no say. The
/// operation of the request does not matter.
///
/// # Errors
/// When there is nothing to explain: the namespace or the SCCs are not complete, or the pod requires an SCC that is not there.
pub fn explain(cluster: &Cluster<'_>, request: &Request<'_>) -> Result<Vec<Explanation>, Refusal> {
    let Some(judge) = Judge::new(cluster, request)? else { return Ok(Vec::new()) };
    let providers = judge.providers(Changes::All, judge.annotation(REQUIRED_SCC), "")?;
    let subjects = judge.subjects();
    let mut found = false;
    let mut explanations = Vec::with_capacity(providers.len());
    for provider in providers {
        let scc = provider.scc();
        let usable_by = subjects.usable_by(cluster, scc);
        let fit = match judge.outcome(&provider, Changes::All) {
            Outcome::Refused(errors) => Fit::No(errors),
            Outcome::Fits(_) | Outcome::Denied | Outcome::MustChange => Fit::Yes,
        };
        let chosen = !found && usable_by.is_some() && matches!(fit, Fit::Yes);
        found |= chosen;
        let rank = (scc.priority.unwrap_or_default(), order::score(scc));
        explanations.push(Explanation { scc: scc.name().to_owned(), rank, usable_by, fit, chosen });
    }
    Ok(explanations)
}
