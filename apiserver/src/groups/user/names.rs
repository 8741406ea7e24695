//! Which names users, groups and identities may have
//! (`apiserver-library-go/pkg/apivalidation`, `oauth-apiserver/pkg/user/apis/user/validation`).

use picoshift_machinery::names::path_segment;

/// The user of `users/~` and of no object: the caller.
pub(super) const CALLER: &str = "~";
/// The bootstrap administrator, who is never stored; asking for him finds nothing instead of being refused.
pub(super) const BOOTSTRAP_USER: &str = "kube:admin";

const IDENTITY_FORM: &str = "must be in the format <providerName>:<providerUserName>";

/// What is wrong with the name of a user. The flag is the registry's: a prefix of a name has the same rule.
pub(crate) fn user_name(name: &str, _prefix: bool) -> Vec<String> {
    let errors = path_segment(name);
    if !errors.is_empty() {
        return errors;
    }
    if name.contains(':') && !name.starts_with("b64:") {
        return vec![r#"usernames that contain ":" must begin with "b64:""#.to_owned()];
    }
    not_the_caller(name)
}

/// What is wrong with the name of a group: in particular, no group can be called `system:` anything.
pub(crate) fn group_name(name: &str, _prefix: bool) -> Vec<String> {
    let errors = provider_name(name);
    if errors.is_empty() { not_the_caller(name) } else { errors }
}

/// What is wrong with the name of an identity: `provider:user` or `provider:b64:user`.
pub(super) fn identity_name(name: &str, _prefix: bool) -> Vec<String> {
    let errors = path_segment(name);
    if !errors.is_empty() {
        return errors;
    }
    let (provider, user) = match name.split(':').collect::<Vec<_>>().as_slice() {
        [provider, "b64", user] | [provider, user] => (*provider, *user),
        _ => return vec![IDENTITY_FORM.to_owned()],
    };
    if provider.is_empty() {
        return vec![format!("{IDENTITY_FORM} with a non-empty providerName")];
    }
    if user.is_empty() {
        return vec![format!("{IDENTITY_FORM} with a non-empty providerUserName")];
    }
    Vec::new()
}

/// What is wrong with the name of an identity provider.
pub(super) fn provider_name(name: &str) -> Vec<String> {
    let errors = path_segment(name);
    if errors.is_empty() && name.contains(':') {
        return vec![r#"may not contain ":""#.to_owned()];
    }
    errors
}

fn not_the_caller(name: &str) -> Vec<String> {
    if name == CALLER { vec![r#"may not equal "~""#.to_owned()] } else { Vec::new() }
}

/// What matters to safety: whatever is accepted is one path segment and cannot be taken for a name of the system's.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn are_harmless(name: &str) {
    let segment = !name.contains(['/', '%']) && name != "." && name != "..";
    if user_name(name, false).is_empty() {
        assert!(segment && !name.starts_with("system:") && name != CALLER, "user {name:?}");
    }
    if group_name(name, false).is_empty() {
        assert!(segment && !name.contains(':') && name != CALLER, "group {name:?}");
    }
    if identity_name(name, false).is_empty() {
        let parts = name.split_once(':').is_some_and(|(provider, user)| {
            !provider.is_empty() && !user.is_empty() && (!user.contains(':') || user.starts_with("b64:"))
        });
        assert!(segment && parts, "identity {name:?}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_judged_in_the_real_servers_words() {
        for good in ["carol", "user@dom", "b64:a:b", "b64:", "Ünal", "a b", "~a", "CN=x,O=y", ""] {
            assert_eq!(user_name(good, false), [""; 0], "{good}");
        }
        let colon = "usernames that contain \":\" must begin with \"b64:\"";
        for (bad, why) in [
            ("system:foo", colon),
            ("kube:admin", colon),
            ("a:b64:c", colon),
            ("a/b", "may not contain '/'"),
            ("a%b", "may not contain '%'"),
            ("..", "may not be '..'"),
            ("~", "may not equal \"~\""),
        ] {
            assert_eq!(user_name(bad, false), [why], "{bad}");
        }
        assert_eq!(group_name("system:masters", false), ["may not contain \":\""]);
        assert_eq!(group_name("b64:x", false), ["may not contain \":\""]);
        assert_eq!(group_name("~", false), ["may not equal \"~\""]);
        assert!(group_name("Bad Name", false).is_empty());
        assert!(identity_name("htpasswd:carol", false).is_empty());
        assert!(identity_name("htpasswd:b64:Y2Fyb2w=", false).is_empty());
        let form = "must be in the format <providerName>:<providerUserName>";
        assert_eq!(identity_name("bad", false), [form]);
        assert_eq!(identity_name("a:b:c", false), [form]);
        assert_eq!(identity_name(":u", false), [format!("{form} with a non-empty providerName")]);
        assert_eq!(identity_name("p:", false), [format!("{form} with a non-empty providerUserName")]);
        assert_eq!(identity_name("p:b64", false), [""; 0]);
    }

    proptest! {
        #[test]
        fn accepted_names_are_harmless(name in "\\PC{0,12}|(b64|system|~|:|/|%|\\.|a){0,6}") {
            are_harmless(&name);
        }

        #[test]
        fn every_provider_and_user_that_fit_make_an_identity(provider in "[a-z @]{1,6}", user in "(b64:)?[a-z@.]{3,6}") {
            prop_assert_eq!(identity_name(&format!("{provider}:{user}"), false), [""; 0]);
        }
    }
}
