//! Scopes of OAuth tokens: `user:…` and `role:CLUSTER_ROLE:NAMESPACE[:!]`. They say what a token may do of what its
//! user may do.
//!
//! Rules and texts are those of `library-go/pkg/authorization/scopemetadata`. What a scope permits is for
//! authorization to say; whether a client may ask for it, for [`restriction`].

use std::str::FromStr;

use crate::field_error::FieldError;

pub mod restriction;
#[cfg(test)]
mod tests;

/// Every namespace, in a role scope.
pub const ALL_NAMESPACES: &str = "*";

const USER_FULL: &str = "user:full";
const USER_INFO: &str = "user:info";
const USER_CHECK_ACCESS: &str = "user:check-access";
const USER_LIST_SCOPED_PROJECTS: &str = "user:list-scoped-projects";
const USER_LIST_PROJECTS: &str = "user:list-projects";
const ROLE: &str = "role:";
const ESCALATING: &str = ":!";

/// One scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything that the user may do.
    UserFull,
    /// Who the user is.
    UserInfo,
    /// What the user may do: access reviews about oneself.
    UserCheckAccess,
    /// The projects that this token may see.
    UserListScopedProjects,
    /// The projects that the user may see.
    UserListProjects,
    /// What a ClusterRole permits.
    Role(RoleScope),
}

/// A scope that borrows a ClusterRole's rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleScope {
    /// The ClusterRole; its name may hold colons.
    pub role: String,
    /// Where it holds, or [`ALL_NAMESPACES`].
    pub namespace: String,
    /// Whether what would let the token's holder become more is not left out: secrets, tokens, roles.
    pub escalating: bool,
}

impl RoleScope {
    /// Whether it holds in `namespace`; requests for what has none are in `""`.
    #[must_use]
    pub fn holds_in(&self, namespace: &str) -> bool {
        self.namespace == ALL_NAMESPACES || self.namespace == namespace
    }
}

/// A string that is no scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// A role scope without a role or without a namespace. The text names it without its `:!`, as upstream's does.
    #[error("bad format for scope {0}")]
    BadFormat(String),
    /// Neither a user scope nor a role scope.
    #[error("no scope handler found")]
    Unknown,
}

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(scope: &str) -> Result<Self, ScopeError> {
        match scope {
            USER_FULL => Ok(Self::UserFull),
            USER_INFO => Ok(Self::UserInfo),
            USER_CHECK_ACCESS => Ok(Self::UserCheckAccess),
            USER_LIST_SCOPED_PROJECTS => Ok(Self::UserListScopedProjects),
            USER_LIST_PROJECTS => Ok(Self::UserListProjects),
            _ if scope.starts_with(ROLE) => role(scope).map(Self::Role),
            _ => Err(ScopeError::Unknown),
        }
    }
}

/// Parses `role:NAME:NAMESPACE[:!]`. Names of ClusterRoles may hold colons and namespaces may not, so the last colon parts
/// the two.
fn role(scope: &str) -> Result<RoleScope, ScopeError> {
    let (unmarked, escalating) = scope.strip_suffix(ESCALATING).map_or((scope, false), |rest| (rest, true));
    let bad = || ScopeError::BadFormat(unmarked.to_owned());
    // `role:!` has lost its own colon with the mark.
    let (role, namespace) =
        unmarked.strip_prefix(ROLE).and_then(|rest| rest.rsplit_once(':')).ok_or_else(bad)?;
    if role.is_empty() || namespace.is_empty() {
        return Err(bad());
    }
    Ok(RoleScope { role: role.to_owned(), namespace: namespace.to_owned(), escalating })
}

/// Whether a scope is about a ClusterRole, well formed or not.
#[must_use]
pub fn is_role(scope: &str) -> bool {
    scope.starts_with(ROLE)
}

/// All that is wrong with a list of scopes that is found at `field`; an empty list is wrong.
#[must_use]
pub fn validate<S: AsRef<str>>(scopes: &[S], field: &str) -> Vec<FieldError> {
    if scopes.is_empty() {
        return vec![FieldError::required(field, "may not be empty")];
    }
    let mut errors = Vec::new();
    for (index, scope) in scopes.iter().enumerate() {
        let (scope, field) = (scope.as_ref(), format!("{field}[{index}]"));
        // Characters are named by number, as upstream prints a rune.
        let illegal: Vec<u32> =
            scope.chars().filter(|character| !is_legal(*character)).map(u32::from).collect();
        errors.extend(
            illegal
                .iter()
                .map(|number| FieldError::invalid_str(&field, scope, format!("{number} not allowed"))),
        );
        if illegal.is_empty()
            && let Err(error) = scope.parse::<Scope>()
        {
            errors.push(FieldError::invalid_str(&field, scope, error.to_string()));
        }
    }
    errors
}

/// Whether RFC 6749, section 3.3 has this character in a scope.
const fn is_legal(character: char) -> bool {
    matches!(character, '!' | '#'..='[' | ']'..='~')
}
