//! What the audit log gets about a choice: annotations under the names that OpenShift uses, one of them misspelt.

use crate::admission::{Attempt, Outcome};
use crate::constraints::Scc;
use crate::order;
use crate::provider::aggregate;
use crate::verdict::Audit;

const PREFIX: &str = "securitycontextconstraints.admission.openshift.io";

/// Of the choice for a new pod; `next` is what would have been chosen otherwise.
pub(crate) fn of_choice(attempts: &[Attempt<'_>], next: Option<&Scc>) -> Audit {
    let denied: Vec<&str> =
        attempts.iter().filter(|attempt| matches!(attempt.outcome, Outcome::Denied)).map(name).collect();
    let mut audit = Audit::from([(
        "securityserviceconstraints.admission.openshift.io/denied".to_owned(),
        denied.join(","),
    )]);
    for attempt in attempts {
        if let Some(why) = failure(attempt) {
            audit.insert(format!("{PREFIX}/too-restrictive-{}", name(attempt)), why);
        }
    }
    let reason = match (chosen(attempts), next) {
        (Some(chosen), Some(next)) => format!(
            "\"{0}\" is most restrictive, not denied, and chosen over \"{1}\" because \"{0}\" {2}",
            chosen.name(),
            next.name(),
            order::reason(chosen, next),
        ),
        (Some(chosen), None) => {
            format!("\"{}\" is the only one not too restrictive and not denied", chosen.name())
        }
        (None, _) if denied.len() == attempts.len() => "all denied".to_owned(),
        (None, _) => "all too restrictive or denied".to_owned(),
    };
    audit.insert(format!("{PREFIX}/reason"), reason);
    audit
}

/// Of the check of a pod that may not be changed; `hint` is the SCC that its annotation names.
pub(crate) fn of_check(attempts: &[Attempt<'_>], hint: &str) -> Audit {
    let mut audit = Audit::new();
    let mut add = |key: String, text: String| {
        // The first word stands, as an audit annotation cannot be set twice.
        audit.entry(key).or_insert(text);
    };
    let chosen = chosen(attempts);
    if !hint.is_empty() && chosen.is_none_or(|scc| scc.name() != hint) {
        let said = attempts.iter().filter(|attempt| name(attempt) == hint).find_map(failure);
        let denied = format!("{PREFIX}/denied-validation");
        let text =
            format!("originally chosen \"{hint}\" got denied in final validation after mutating admission");
        match said {
            Some(why) => add(format!("{PREFIX}/too-restrictive-{hint}"), why),
            None => add(denied.clone(), text.clone()),
        }
        match chosen {
            Some(scc) => add(
                format!("{PREFIX}/reason-validation"),
                format!(
                    "originally chosen \"{hint}\" did not pass final validation after mutating admission, but \"{}\" did instead",
                    scc.name()
                ),
            ),
            None => add(denied, format!("{text}, and no other matched")),
        }
    }
    if let Some(scc) = chosen {
        add(format!("{PREFIX}/chosen"), scc.name().to_owned());
    }
    audit
}

fn name<'a>(attempt: &Attempt<'a>) -> &'a str {
    attempt.provider.scc().name()
}

fn chosen<'a>(attempts: &[Attempt<'a>]) -> Option<&'a Scc> {
    attempts.last().filter(|last| matches!(last.outcome, Outcome::Fits(_))).map(|last| last.provider.scc())
}

fn failure(attempt: &Attempt<'_>) -> Option<String> {
    match &attempt.outcome {
        Outcome::Refused(errors) => Some(aggregate(errors)),
        Outcome::MustChange => Some("failures final validation after mutating admission".to_owned()),
        Outcome::Denied | Outcome::Fits(_) => None,
    }
}
