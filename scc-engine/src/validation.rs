//! What an SCC may say, with the errors of OpenShift's kube-apiserver
//! (`openshift-kube-apiserver/admission/customresourcevalidation/securitycontextconstraints`).
//!
//! In: an SCC after its defaults. Metadata is not looked at: whoever stores objects does that.

use picoshift_machinery::FieldError;
use serde_json::json;

use crate::constraints::{IdRange, Scc};

const USER_STRATEGIES: [&str; 4] = ["MustRunAs", "MustRunAsNonRoot", "MustRunAsRange", "RunAsAny"];
const STRATEGIES: [&str; 2] = ["MustRunAs", "RunAsAny"];
/// The longest sysctl.
const SYSCTL_MAX: usize = 253;
const SYSCTL_PATTERN: &str = "([a-z0-9]([-_a-z0-9]*[a-z0-9])?\\.)*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]";

/// All that is wrong with an SCC.
#[must_use]
pub fn validate(scc: &Scc) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(priority) = scc.priority.filter(|priority| *priority < 0) {
        errors.push(FieldError::invalid("priority", &json!(priority), "priority cannot be negative"));
    }
    strategies(scc, &mut errors);
    capabilities(scc, &mut errors);
    if scc.default_allow_privilege_escalation == Some(true) && scc.allow_privilege_escalation == Some(false) {
        errors.push(FieldError::invalid(
            "defaultAllowPrivilegeEscalation",
            &json!(true),
            "Cannot set DefaultAllowPrivilegeEscalation to true without also setting AllowPrivilegeEscalation to true",
        ));
    }
    volumes(scc, &mut errors);
    for (field, patterns) in sysctl_lists(scc) {
        sysctls(field, patterns, &mut errors);
    }
    overlaps(scc, &mut errors);
    errors
}

fn strategies(scc: &Scc, errors: &mut Vec<FieldError>) {
    let unknown = |field: &str, strategy: &str, known: &[&str]| {
        let detail = format!("invalid strategy type.  Valid values are {}", known.join(", "));
        (!known.contains(&strategy)).then(|| FieldError::invalid_str(field, strategy, detail))
    };
    errors.extend(unknown("runAsUser.type", &scc.run_as_user.r#type, &USER_STRATEGIES));
    if let Some(uid) = scc.run_as_user.uid.filter(|uid| *uid < 0) {
        errors.push(FieldError::invalid("runAsUser.uid", &json!(uid), "uid cannot be negative"));
    }
    errors.extend(unknown("seLinuxContext.type", &scc.se_linux_context.r#type, &STRATEGIES));
    for (field, groups) in [("fsGroup", &scc.fs_group), ("supplementalGroups", &scc.supplemental_groups)] {
        if !STRATEGIES.contains(&groups.r#type.as_str()) {
            errors.push(FieldError::not_supported(format!("{field}.type"), &groups.r#type, &STRATEGIES));
        }
        for (index, range) in groups.ranges.iter().enumerate() {
            id_range(&format!("{field}.ranges[{index}]"), *range, errors);
        }
    }
}

fn id_range(path: &str, range: IdRange, errors: &mut Vec<FieldError>) {
    let IdRange { min, max } = range;
    for (end, id) in [("min", min), ("max", max)] {
        if id < 0 {
            errors.push(FieldError::invalid(
                format!("{path}.{end}"),
                &json!(id),
                format!("{end} cannot be negative"),
            ));
        }
    }
    if min > max {
        // As Go writes its struct: in its order, and without zeros.
        let ends = [("min", min), ("max", max)].into_iter().filter(|(_, id)| *id != 0);
        let ends: Vec<String> = ends.map(|(end, id)| format!("\"{end}\":{id}")).collect();
        let shown = Some(format!("{{{}}}", ends.join(",")));
        let kind = picoshift_machinery::FieldErrorKind::Invalid;
        errors.push(FieldError::new(kind, format!("{path}.min"), shown, "min cannot be greater than max"));
    }
}

fn capabilities(scc: &Scc, errors: &mut Vec<FieldError>) {
    let dropped = &scc.required_drop_capabilities;
    for (field, list) in [
        ("defaultAddCapabilities", &scc.default_add_capabilities),
        ("allowedCapabilities", &scc.allowed_capabilities),
    ] {
        for name in list.iter().filter(|name| dropped.contains(name)) {
            let detail = format!("capability is listed in {field} and requiredDropCapabilities");
            errors.push(FieldError::invalid_str(field, name, detail));
        }
    }
    if !dropped.is_empty() && scc.allowed_capabilities.iter().any(|name| name == "*") {
        let detail = "required capabilities must be empty when all capabilities are allowed by a wildcard";
        errors.push(FieldError::invalid("requiredDropCapabilities", &json!(dropped), detail));
    }
}

fn volumes(scc: &Scc, errors: &mut Vec<FieldError>) {
    let volumes = scc.volumes.as_deref().unwrap_or_default();
    if volumes.len() > 1 && volumes.iter().any(|kind| kind == "none") {
        let detail = "if 'none' is specified, no other values are allowed";
        errors.push(FieldError::invalid("volumes", &json!(volumes), detail));
    }
    let drivers = &scc.allowed_flex_volumes;
    if !drivers.is_empty() && !scc.allows_volume("flexVolume") {
        let detail = "volumes does not include 'flexVolume' or '*', so no flex volumes are allowed";
        errors.push(FieldError::invalid("allowedFlexVolumes", &json!(drivers), detail));
        return;
    }
    for (index, _) in drivers.iter().enumerate().filter(|(_, flex)| flex.driver.is_empty()) {
        let field = format!("allowedFlexVolumes[{index}].driver");
        errors.push(FieldError::required(field, "must specify a driver"));
    }
}

fn sysctl_lists(scc: &Scc) -> [(&'static str, &[String]); 2] {
    [("allowedUnsafeSysctls", &scc.allowed_unsafe_sysctls), ("forbiddenSysctls", &scc.forbidden_sysctls)]
}

fn sysctls(field: &str, patterns: &[String], errors: &mut Vec<FieldError>) {
    for (index, pattern) in patterns.iter().enumerate() {
        let detail = if pattern.is_empty() {
            "empty sysctl not allowed".to_owned()
        } else if !is_pattern(pattern) {
            format!("must have at most {SYSCTL_MAX} characters and match regex {SYSCTL_PATTERN}")
        } else {
            continue;
        };
        errors.push(FieldError::invalid_str(format!("{field}[{index}]"), pattern, detail));
    }
    if patterns.len() > 1 && patterns.iter().any(|pattern| pattern.starts_with('*') && is_pattern(pattern)) {
        let detail = "if '*' is present, must not specify other sysctls";
        errors.push(FieldError::forbidden(format!("{field}.items"), detail));
    }
}

/// Whether a text matches [`SYSCTL_PATTERN`].
fn is_pattern(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: u8| letter(byte) || byte == b'-' || byte == b'_';
    let (segments, last) = text.rsplit_once('.').map_or((None, text), |(before, last)| (Some(before), last));
    let is_segment = |segment: &str| {
        let bytes = segment.as_bytes();
        bytes.first().copied().is_some_and(letter)
            && bytes.last().copied().is_some_and(letter)
            && bytes.iter().copied().all(inner)
    };
    let is_last = || {
        let Some((end, before)) = last.as_bytes().split_last() else { return false };
        (letter(*end) || *end == b'*')
            && before.first().copied().is_none_or(letter)
            && before.iter().copied().all(inner)
    };
    text.len() <= SYSCTL_MAX && segments.is_none_or(|all| all.split('.').all(is_segment)) && is_last()
}

/// What is allowed and forbidden at once.
fn overlaps(scc: &Scc, errors: &mut Vec<FieldError>) {
    let [(allowed_field, allowed), (forbidden_field, forbidden)] = sysctl_lists(scc);
    for (i, allow) in allowed.iter().enumerate() {
        for (j, forbid) in forbidden.iter().enumerate() {
            let of_allowed = || {
                let detail = format!("sysctl overlaps with {forbid}");
                FieldError::invalid_str(format!("{allowed_field}[{i}]"), allow, detail)
            };
            let of_forbidden = || {
                let detail = format!("sysctl overlaps with {allow}");
                FieldError::invalid_str(format!("{forbidden_field}[{j}]"), forbid, detail)
            };
            errors.extend(match (allow.strip_suffix('*'), forbid.strip_suffix('*')) {
                (Some(allow), Some(forbid)) if allow.starts_with(forbid) => Some(of_allowed()),
                (Some(allow), Some(forbid)) if forbid.starts_with(allow) => Some(of_forbidden()),
                (Some(allow), None) if forbid.starts_with(allow) => Some(of_forbidden()),
                (None, Some(forbid)) if allow.starts_with(forbid) => Some(of_allowed()),
                (None, None) if allow == forbid => Some(of_allowed()),
                _ => None,
            });
        }
    }
}
