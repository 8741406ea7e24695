//! Tests of scopes.

use proptest::prelude::*;

use super::restriction::{Restriction, RoleRestriction};
use super::*;

fn role_scope(role: &str, namespace: &str, escalating: bool) -> Scope {
    Scope::Role(RoleScope { role: role.to_owned(), namespace: namespace.to_owned(), escalating })
}

fn errors(scopes: &[&str]) -> Vec<String> {
    validate(scopes, "scopes").iter().map(ToString::to_string).collect()
}

#[test]
fn role_scopes_part_at_their_last_colon() {
    assert_eq!("role:admin:shop".parse(), Ok(role_scope("admin", "shop", false)));
    assert_eq!("role:admin:*:!".parse(), Ok(role_scope("admin", "*", true)));
    assert_eq!("role:system:image-puller:shop".parse(), Ok(role_scope("system:image-puller", "shop", false)));
    assert_eq!("role:a:!:!".parse(), Ok(role_scope("a", "!", true)));
}

#[test]
fn malformed_and_unknown_scopes_are_refused() {
    for scope in
        ["role:", "role:!", "role:admin", "role:admin:", "role::shop", "role:admin:!", "role::!", "role:a::!"]
    {
        assert!(matches!(scope.parse::<Scope>(), Err(ScopeError::BadFormat(_))), "{scope}");
    }
    for scope in
        ["", "user", "user:", "user:Full", "user:full ", " user:full", "user:full:!", "Role:a:b", "roles:a:b"]
    {
        assert_eq!(scope.parse::<Scope>(), Err(ScopeError::Unknown), "{scope}");
    }
}

#[test]
fn validation_has_the_texts_of_the_real_server() {
    assert_eq!(errors(&[]), ["scopes: Required value: may not be empty"]);
    assert_eq!(errors(&["user:full", "role:a:b"]), Vec::<String>::new());
    assert_eq!(
        errors(&["user:full", "asdf"]),
        [r#"scopes[1]: Invalid value: "asdf": no scope handler found"#]
    );
    assert_eq!(
        errors(&["role:asdf"]),
        [r#"scopes[0]: Invalid value: "role:asdf": bad format for scope role:asdf"#]
    );
    assert_eq!(
        errors(&["role:a:!"]),
        [r#"scopes[0]: Invalid value: "role:a:!": bad format for scope role:a"#]
    );
    assert_eq!(
        errors(&["a b\\"]),
        [
            r#"scopes[0]: Invalid value: "a b\\": 32 not allowed"#,
            r#"scopes[0]: Invalid value: "a b\\": 92 not allowed"#
        ]
    );
}

#[test]
fn a_client_asks_only_for_what_its_restrictions_have() {
    let literals =
        Restriction { literals: vec!["user:info".to_owned(), "user:full".to_owned()], cluster_role: None };
    let roles = Restriction {
        literals: Vec::new(),
        cluster_role: Some(RoleRestriction {
            role_names: vec!["view".to_owned()],
            namespaces: vec!["*".to_owned()],
            allow_escalation: false,
        }),
    };
    let both = [literals.clone(), roles.clone()];
    let ask =
        |restrictions: &[Restriction], scopes: &[&str]| restriction::validate("c", restrictions, scopes);
    assert_eq!(ask(&both, &[]), Err("c may not request unscoped tokens".to_owned()));
    assert_eq!(ask(&[], &["role:admin:*:!"]), Ok(()));
    assert_eq!(ask(&both, &["user:info", "role:view:shop"]), Ok(()));
    let literal_only = Err("role:view:a not found in [user:info user:full]".to_owned());
    assert_eq!(ask(&[literals], &["role:view:a"]), literal_only);
    assert_eq!(
        ask(std::slice::from_ref(&roles), &["user:full"]),
        Err("user:full did not match any scope restriction".to_owned())
    );
    assert_eq!(
        ask(std::slice::from_ref(&roles), &["role:view:a:!"]),
        Err("role:view:a:! is not allowed to escalate".to_owned())
    );
    assert_eq!(
        ask(&[roles], &["role:edit:a", "user:info", "user:info"]),
        Err("[role:edit:a does not use an approved name, user:info did not match any scope restriction]"
            .to_owned())
    );
}

proptest! {
    /// Whatever parses is written back as it came, so no two spellings mean the same.
    #[test]
    fn a_role_scope_has_one_spelling(scope in "role:[a:!*b]{0,12}") {
        if let Ok(Scope::Role(parsed)) = scope.parse::<Scope>() {
            let mark = if parsed.escalating { ":!" } else { "" };
            prop_assert_eq!(format!("role:{}:{}{mark}", parsed.role, parsed.namespace), scope);
        }
    }

    #[test]
    fn nothing_panics(scope in ".{0,40}") {
        let _ = validate(&[scope], "scopes");
    }
}
