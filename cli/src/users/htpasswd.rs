//! The text of a password file: one `NAME:HASH` per line. Lines that are not ours to change stay as they are.

use anyhow::{Context, Result};
use picoshift_machinery::bootstrap_user::LOGIN_NAME;

use crate::failure::Failure;

/// How often bcrypt doubles its work: about 60 ms for a password.
const COST: u32 = 10;
/// bcrypt looks at no more bytes than this; silently ignoring the rest would accept wrong passwords.
const PASSWORD_BYTES: usize = 72;

/// A password file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Htpasswd {
    lines: Vec<String>,
}

impl Htpasswd {
    /// Reads a file's text.
    pub(crate) fn parse(text: &str) -> Self {
        Self { lines: text.lines().map(str::to_owned).collect() }
    }

    /// The names in it, each once, sorted.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.lines.iter().filter_map(|line| name(line)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether there is a user of that name.
    pub(crate) fn has(&self, user: &str) -> bool {
        self.lines.iter().any(|line| name(line) == Some(user))
    }

    /// Sets a user's hash; other entries of the same name go.
    pub(crate) fn set(&mut self, user: &str, hash: &str) {
        self.remove(user);
        self.lines.push(format!("{user}:{hash}"));
    }

    /// Removes a user; says whether there was one.
    pub(crate) fn remove(&mut self, user: &str) -> bool {
        let before = self.lines.len();
        self.lines.retain(|line| name(line) != Some(user));
        self.lines.len() < before
    }

    /// The file's text.
    pub(crate) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// The user that a line is about.
fn name(line: &str) -> Option<&str> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    line.split_once(':').map(|(name, _)| name)
}

/// Hashes a password for the file.
pub(crate) fn hash(password: &str) -> Result<String> {
    if password.is_empty() || password.len() > PASSWORD_BYTES {
        let what = if password.is_empty() { "is empty" } else { "is longer than 72 bytes" };
        return Err(Failure::new(format!("the password {what}"), "choose one of 1 to 72 bytes").into());
    }
    let hash = bcrypt::hash_with_result(password, COST).context("cannot hash the password")?;
    // OpenShift takes no other prefix but this and $2a$.
    Ok(hash.format_for_version(bcrypt::Version::TwoY))
}

/// Fails when OpenShift would not have a User of that name, or the file could not hold it.
pub(crate) fn check_name(user: &str) -> Result<()> {
    let wrong = match user {
        "" => Some("is empty"),
        "." | ".." | "~" => Some("means something else"),
        LOGIN_NAME => Some("is kube:admin's"),
        _ if user.chars().any(|c| matches!(c, ':' | '/' | '%')) => Some("has one of the characters : / %"),
        _ if user.chars().any(char::is_control) || user.trim() != user => {
            Some("has space around it or control characters")
        }
        _ if user.starts_with('#') => Some("begins with #, which makes its line a comment"),
        _ if user.len() > 253 => Some("is longer than 253 bytes"),
        _ => None,
    };
    match wrong {
        None => Ok(()),
        Some(wrong) => {
            Err(Failure::new(format!("the user name {user:?} {wrong}"), "choose another name").into())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn other_lines_stay() {
        let mut file = Htpasswd::parse("# people\na:1\n\nb:2\na:3\njunk");
        assert_eq!(file.names(), ["a", "b"]);
        file.set("a", "4");
        assert_eq!(file.text(), "# people\n\nb:2\njunk\na:4\n");
        assert!(file.remove("a") && !file.remove("a") && !file.has("a"));
    }

    #[test]
    fn passwords_are_hashed_as_openshift_takes_them() {
        let hash = hash("secret").unwrap();
        assert!(hash.starts_with("$2y$10$"), "{hash}");
        assert!(bcrypt::verify("secret", &hash).unwrap());
        assert!(super::hash("").is_err());
        assert!(super::hash(&"x".repeat(73)).is_err());
    }

    #[test]
    fn names_that_openshift_has_not() {
        for name in ["", ".", "..", "~", "a:b", "a/b", "a%b", "a\nb", " a", "#a", "kubeadmin"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["a", "user@example.com", "Ann Other", "größe"] {
            check_name(name).unwrap();
        }
    }

    proptest! {
        /// Who is added is there, who is removed is not, and nobody else changes.
        #[test]
        fn changes_touch_one_user(text in "([a-c#]?:?[a-c]{0,2}\n){0,6}", user in "[a-d]{1,2}") {
            let before = Htpasswd::parse(&text);
            let mut file = before.clone();
            file.set(&user, "hash");
            prop_assert!(file.has(&user));
            prop_assert_eq!(Htpasswd::parse(&file.text()), file.clone());
            file.remove(&user);
            let others = |file: &Htpasswd| {
                file.names().into_iter().filter(|name| *name != user).map(str::to_owned).collect::<Vec<_>>()
            };
            prop_assert_eq!(others(&file), others(&before));
            prop_assert!(!file.has(&user));
        }
    }
}
