//! OAuth access tokens that were there and are gone. A token counts as revoked only when the watch has shown it and then its
//! end, so a watch that lags behind refuses nobody. kube-apiserver, which remembers good tokens for seconds, learns of an end
//! later than we do.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use picoshift_machinery::oauth_token;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Tokens that are remembered as seen, for when the watch begins anew.
const MOST_SEEN: usize = 200_000;
/// Tokens that are remembered as revoked. kube-apiserver refuses them by itself soon.
const MOST_REVOKED: usize = 100_000;

/// A token's hash: what follows the prefix of its object's name.
type Key = [u8; 32];

/// What is known of tokens. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Revocations(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    seen: HashSet<Key>,
    /// Each with its place among those that were ever revoked.
    revoked: HashMap<Key, u64>,
    /// The same in the order in which they were revoked.
    order: BTreeMap<u64, Key>,
    places: u64,
    used: HashMap<Key, Used>,
}

#[derive(Debug)]
struct Used {
    end: CancellationToken,
    streams: usize,
}

/// A token in use by a request that goes on.
#[derive(Debug)]
pub struct Use {
    key: Key,
    end: CancellationToken,
    all: Revocations,
}

/// The token is revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the access token was revoked")]
pub struct Revoked;

impl Revocations {
    /// These objects are all there are.
    pub fn replace<'a>(&self, names: impl Iterator<Item = &'a str>) {
        let present: HashSet<Key> = names.filter_map(key_of_name).take(MOST_SEEN).collect();
        let mut state = self.0.lock();
        let full = present.len() == MOST_SEEN;
        let gone: Vec<Key> = state.seen.difference(&present).copied().collect();
        // Not all could be remembered, so one that is missing may be there.
        for key in gone.into_iter().filter(|_| !full) {
            state.revoke(key);
        }
        for key in &present {
            state.forgive(key);
        }
        state.seen = present;
    }

    /// The object is there.
    pub fn add(&self, name: &str) {
        let Some(key) = key_of_name(name) else { return };
        let mut state = self.0.lock();
        state.forgive(&key);
        if state.seen.len() < MOST_SEEN {
            state.seen.insert(key);
        }
    }

    /// The object is gone.
    pub fn remove(&self, name: &str) {
        let Some(key) = key_of_name(name) else { return };
        self.0.lock().revoke(key);
    }

    /// Says that a request uses `token`; `None` for a token of another kind.
    ///
    /// # Errors
    /// [`Revoked`].
    pub fn enter(&self, token: &str) -> Result<Option<Use>, Revoked> {
        let Some(key) = oauth_token::object_name(token).as_deref().and_then(key_of_name) else {
            return Ok(None);
        };
        let mut state = self.0.lock();
        if state.revoked.contains_key(&key) {
            return Err(Revoked);
        }
        let used =
            state.used.entry(key).or_insert_with(|| Used { end: CancellationToken::new(), streams: 0 });
        used.streams += 1;
        Ok(Some(Use { key, end: used.end.clone(), all: self.clone() }))
    }
}

impl State {
    /// It is there again.
    fn forgive(&mut self, key: &Key) {
        if let Some(place) = self.revoked.remove(key) {
            self.order.remove(&place);
        }
    }

    fn revoke(&mut self, key: Key) {
        self.seen.remove(&key);
        if let Entry::Vacant(place) = self.revoked.entry(key) {
            self.places += 1;
            self.order.insert(*place.insert(self.places), key);
        }
        while self.order.len() > MOST_REVOKED {
            if let Some((_, oldest)) = self.order.pop_first() {
                self.revoked.remove(&oldest);
            }
        }
        if let Some(used) = self.used.remove(&key) {
            used.end.cancel();
        }
    }
}

impl Use {
    /// Waits for the end of the token.
    pub fn revoked(&self) -> WaitForCancellationFutureOwned {
        self.end.clone().cancelled_owned()
    }

    /// Whether the token has ended.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.end.is_cancelled()
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        if self.end.is_cancelled() {
            return;
        }
        let mut state = self.all.0.lock();
        if let Some(used) = state.used.get_mut(&self.key) {
            used.streams -= 1;
            if used.streams == 0 {
                state.used.remove(&self.key);
            }
        }
    }
}

fn key_of_name(name: &str) -> Option<Key> {
    let hash = name.strip_prefix(oauth_token::PREFIX)?;
    URL_SAFE_NO_PAD.decode(hash).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(token: &str) -> String {
        oauth_token::object_name(token).unwrap()
    }

    #[test]
    fn only_what_was_there_and_is_gone_is_revoked() {
        let all = Revocations::default();
        let token = "sha256~one";
        let open = all.enter(token).unwrap().expect("not seen yet is no reason");
        assert!(all.enter("eyJ").unwrap().is_none());
        all.replace([name("sha256~two").as_str()].into_iter());
        assert!(!open.is_revoked(), "a list that lags behind says nothing");
        all.add(&name(token));
        all.remove(&name(token));
        assert!(open.is_revoked());
        assert_eq!(all.enter(token).unwrap_err(), Revoked);
        // A new list without the other one.
        let other = all.enter("sha256~two").unwrap().unwrap();
        all.replace(std::iter::empty());
        assert!(other.is_revoked());
        all.add(&name("sha256~two"));
        assert!(all.enter("sha256~two").is_ok(), "it is there again");
    }

    #[test]
    fn a_token_that_came_back_is_not_forgotten_before_its_time() {
        let all = Revocations::default();
        let first = name("sha256~first");
        all.remove(&first);
        all.add(&first);
        assert!(all.0.lock().order.is_empty(), "nothing is left of what is there again");
        for n in 0..MOST_REVOKED - 1 {
            all.remove(&name(&format!("sha256~{n}")));
        }
        all.remove(&first);
        all.remove(&name("sha256~last"));
        assert!(all.enter("sha256~first").is_err(), "there is room for it and what came before, but one");
        assert!(all.enter("sha256~0").is_ok());
    }

    #[test]
    fn what_is_over_leaves_nothing_behind() {
        let all = Revocations::default();
        let uses: Vec<_> =
            (0..10).map(|n| all.enter(&format!("sha256~{}", n % 3)).unwrap().unwrap()).collect();
        assert_eq!(all.0.lock().used.len(), 3);
        drop(uses);
        assert!(all.0.lock().used.is_empty());
        for n in 0..MOST_REVOKED + 5 {
            all.remove(&name(&format!("sha256~{n}")));
        }
        let state = all.0.lock();
        assert_eq!((state.revoked.len(), state.order.len()), (MOST_REVOKED, MOST_REVOKED));
    }
}
