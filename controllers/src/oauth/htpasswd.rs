//! htpasswd files: who is in them, and whether a password is somebody's.
//!
//! Checking a name that is not in the file costs as much as checking one that is: the costliest hash of the file is worked
//! out for nobody.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};
use subtle::ConstantTimeEq as _;

pub mod apr1;

/// Names are cut to so many bytes, as upstream does.
const LONGEST_NAME: usize = 255;
/// Bcrypt of a higher cost than this would keep a core busy for many seconds for each guess.
const HIGHEST_COST: u32 = 16;

/// Why a password cannot be judged. The texts are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The name could not stand in the file.
    #[error("Usernames may not contain : characters")]
    Name,
    /// A hash of a kind that is not known.
    #[error("Unrecognized hash type")]
    Kind,
    /// The old crypt.
    #[error("crypt password hashes are not supported")]
    Crypt,
    /// A hash that lacks a part.
    #[error("{0}")]
    Malformed(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hash {
    Bcrypt { text: String, cost: u32 },
    Apr1 { salt: String, text: String },
    Sha(String),
    Unusable(Unusable),
}

/// A file that has been read.
#[derive(Clone, Debug, Default)]
pub struct Htpasswd {
    users: HashMap<String, Hash>,
    /// Worked out when there is nobody, or somebody with a cheaper one.
    decoy: Option<Hash>,
}

impl Htpasswd {
    /// Reads a file; lines that are none are left out, and of several lines for a name the last counts.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        let users: HashMap<_, _> = lines.map(|(name, hash)| (name.to_owned(), Hash::parse(hash))).collect();
        let decoy = users.values().max_by_key(|hash| hash.work()).filter(|hash| hash.work() > 0).cloned();
        Self { users, decoy }
    }

    /// How many names it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// The name as it stands in the file if `password` is its own. Takes as long as the file's costliest hash, so it is no
    /// work for a thread that others wait for.
    ///
    /// # Errors
    /// [`Unusable`].
    pub fn check(&self, name: &str, password: &str) -> Result<Option<String>, Unusable> {
        let name = cut(name);
        if name.contains(':') {
            return Err(Unusable::Name);
        }
        let hash = self.users.get(name);
        let fits = hash.map_or(Ok(false), |hash| hash.fits(password));
        if hash.map_or(0, Hash::work) < self.decoy.as_ref().map_or(0, Hash::work)
            && let Some(decoy) = &self.decoy
        {
            // Whatever comes of it is nobody's.
            let _ = std::hint::black_box(decoy.fits(password));
        }
        Ok(fits?.then(|| name.to_owned()))
    }
}

fn cut(name: &str) -> &str {
    let mut end = name.len().min(LONGEST_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

impl Hash {
    fn parse(text: &str) -> Self {
        let text = text.trim_end_matches('\r');
        if let Some(rest) = text.strip_prefix(apr1::PREFIX) {
            return match rest.split('$').collect::<Vec<_>>()[..] {
                ["", _] => Self::Unusable(Unusable::Malformed("Malformed MD5 hash: missing salt")),
                [_, ""] => Self::Unusable(Unusable::Malformed("Malformed MD5 hash: missing hash")),
                [salt, _] => Self::Apr1 { salt: salt.chars().take(8).collect(), text: text.to_owned() },
                _ => Self::Unusable(Unusable::Malformed("Malformed MD5 hash")),
            };
        }
        if text.starts_with("$2y$") || text.starts_with("$2a$") {
            let cost = text.get(4..6).and_then(|cost| cost.parse().ok());
            return match cost {
                Some(cost @ 4..=HIGHEST_COST) if text.len() == 60 && text.is_ascii() => {
                    Self::Bcrypt { text: text.to_owned(), cost }
                }
                _ => Self::Unusable(Unusable::Malformed("Malformed bcrypt hash")),
            };
        }
        match text.strip_prefix("{SHA}") {
            Some("") => Self::Unusable(Unusable::Malformed("Invalid SHA hash")),
            Some(sum) => Self::Sha(sum.to_owned()),
            None if text.len() == 13 => Self::Unusable(Unusable::Crypt),
            None => Self::Unusable(Unusable::Kind),
        }
    }

    /// What it costs to check, for comparison: a bcrypt of any cost is more than a thousand rounds of MD5.
    fn work(&self) -> u32 {
        match self {
            Self::Unusable(_) => 0,
            Self::Sha(_) => 1,
            Self::Apr1 { .. } => 2,
            Self::Bcrypt { cost, .. } => 2 + cost,
        }
    }

    fn fits(&self, password: &str) -> Result<bool, Unusable> {
        match self {
            Self::Bcrypt { text, .. } => {
                bcrypt::verify(password, text).map_err(|_| Unusable::Malformed("Malformed bcrypt hash"))
            }
            Self::Apr1 { salt, text } => Ok(same(&apr1::hash(password, salt), text)),
            Self::Sha(sum) => Ok(same(&STANDARD.encode(Sha1::digest(password)), sum)),
            Self::Unusable(why) => Err(why.clone()),
        }
    }
}

fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

#[cfg(test)]
mod tests;
