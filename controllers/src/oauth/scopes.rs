//! Scopes as lists, and what users are told of them.

use picoshift_machinery::scope::{ALL_NAMESPACES, Scope};

/// What a request without scopes asks for.
pub const FULL: &str = "user:full";

/// The scopes of a request.
#[must_use]
pub fn split(scopes: &str) -> Vec<String> {
    let scopes = scopes.trim();
    if scopes.is_empty() { Vec::new() } else { scopes.split(' ').map(ToOwned::to_owned).collect() }
}

/// Whether everything that is asked for has been granted.
#[must_use]
pub fn covers(granted: &[String], asked: &[String]) -> bool {
    (!asked.is_empty() || granted.is_empty()) && asked.iter().all(|scope| granted.contains(scope))
}

/// Both, sorted, each once.
#[must_use]
pub fn merge(granted: &[String], more: &[String]) -> Vec<String> {
    let mut all = [granted, more].concat();
    all.sort();
    all.dedup();
    all
}

/// What a user reads about a scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// The scope.
    pub name: String,
    /// What it allows.
    pub text: String,
    /// What is dangerous about it; empty for nothing.
    pub warning: String,
    /// What is wrong with it; empty for nothing.
    pub error: String,
    /// Whether it has been granted before.
    pub granted: bool,
}

/// Describes a scope, in upstream's words.
#[must_use]
pub fn describe(scope: &str, granted: &[String]) -> Described {
    let (mut warning, mut error) = (String::new(), String::new());
    let text = match scope.parse::<Scope>() {
        Ok(Scope::UserInfo) => {
            "Read-only access to your user information (including username, identities, and group membership)"
                .to_owned()
        }
        Ok(Scope::UserCheckAccess) => {
            "Read-only access to view your privileges (for example, \"can I create builds?\")".to_owned()
        }
        Ok(Scope::UserListScopedProjects) => {
            "Read-only access to list your projects viewable with this token and view their metadata (display \
             name, description, etc.)"
                .to_owned()
        }
        Ok(Scope::UserListProjects) => {
            "Read-only access to list your projects and view their metadata (display name, description, etc.)"
                .to_owned()
        }
        Ok(Scope::UserFull) => {
            warning = "Includes any access you have to escalating resources like secrets".to_owned();
            "Full read/write access with all of your permissions".to_owned()
        }
        Ok(Scope::Role(role)) => {
            let place = match role.namespace.as_str() {
                ALL_NAMESPACES => "server-wide".to_owned(),
                namespace => format!("in project {namespace:?}"),
            };
            let mut but = ", except access escalating resources like secrets";
            if role.escalating {
                warning = "Includes access to escalating resources like secrets".to_owned();
                but = "";
            }
            format!("Anything you can do {place} that is also allowed by the {:?} role{but}", role.role)
        }
        Err(why) => {
            error = match picoshift_machinery::scope::is_role(scope) {
                true => why.to_string(),
                false => "Unknown scope".to_owned(),
            };
            String::new()
        }
    };
    let granted = granted.iter().any(|own| own == scope);
    Described { name: scope.to_owned(), text, warning, error, granted }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(scopes: &str) -> Vec<String> {
        split(scopes)
    }

    #[test]
    fn lists_are_compared_and_merged() {
        assert_eq!(list("  "), Vec::<String>::new());
        assert!(covers(&list("a b"), &list("b")) && !covers(&list("a"), &list("a b")));
        assert!(!covers(&list("a"), &[]) && covers(&[], &[]));
        assert_eq!(merge(&list("b a"), &list("c a")), ["a", "b", "c"]);
    }

    #[test]
    fn scopes_are_described() {
        let role = describe("role:admin:ns:!", &list("role:admin:ns:!"));
        assert_eq!(
            role.text,
            "Anything you can do in project \"ns\" that is also allowed by the \"admin\" role"
        );
        assert!(role.granted && !role.warning.is_empty());
        let wide = describe("role:view:*", &[]);
        assert!(
            wide.text.contains("server-wide")
                && wide.text.ends_with("like secrets")
                && wide.warning.is_empty()
        );
        assert_eq!(describe("bogus", &[]).error, "Unknown scope");
        assert_eq!(describe("role:x", &[]).error, "bad format for scope role:x");
    }
}
