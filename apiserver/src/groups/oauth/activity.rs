//! Tokens that time out when nobody uses them: every use puts the time-out off. Uses are noted in memory and written at
//! most every third of the time-out, early enough before the token would time out.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use picoshift_machinery::request_info::RequestInfo;
use picoshift_machinery::{Object, Status, UserInfo};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::lifetime;
use super::resources::number;
use crate::registry::Registry;
use crate::rest::{RequestContext, Storage, Updater, WriteOptions};

const FIELD: &str = "inactivityTimeoutSeconds";
/// A use is written so long before its token would time out.
const MARGIN: SignedDuration = SignedDuration::from_secs(10);
/// Most uses that wait to be written; others are noted again when their token is used again.
const MAX_PENDING: usize = 100_000;
/// Whose writes these are.
const WRITER: &str = "system:openshift-oauth-apiserver";

/// Uses that are still to be written.
pub(super) struct Activity {
    tokens: Arc<Registry>,
    clients: Arc<Registry>,
    /// The time-out of clients that say none; 0 for never.
    default_seconds: i64,
    pending: Mutex<HashMap<Arc<str>, Use>>,
    changed: Notify,
}

/// The last use of a token, and when it has to be written.
#[derive(Clone, Copy)]
struct Use {
    seen: Timestamp,
    due: Timestamp,
}

impl Activity {
    pub(super) fn new(tokens: Arc<Registry>, clients: Arc<Registry>, default_seconds: i64) -> Arc<Self> {
        Arc::new(Self { tokens, clients, default_seconds, pending: Mutex::default(), changed: Notify::new() })
    }

    /// Notes that a token that times out was used.
    pub(super) fn used(&self, token: &Object, now: Timestamp) {
        let Some(ends) = lifetime::timeout_of(token) else { return };
        let expires = number(token, "expiresIn");
        if expires != 0 && expires <= number(token, FIELD) {
            return;
        }
        if let Some(known) = self.pending.lock().get_mut(token.name()) {
            known.seen = now;
            return;
        }
        let third = SignedDuration::from_secs(self.client_seconds(token) / 3);
        let due =
            now.saturating_add(third).unwrap_or(now).min(ends.saturating_sub(MARGIN).unwrap_or(now)).max(now);
        let mut pending = self.pending.lock();
        if pending.len() < MAX_PENDING {
            pending.insert(token.name().into(), Use { seen: now, due });
            drop(pending);
            self.changed.notify_one();
        }
    }

    /// The time-out of the tokens of a token's client.
    fn client_seconds(&self, token: &Object) -> i64 {
        let client = self.clients.find("", token.str_at(&["clientName"])).and_then(|item| item.object().ok());
        let own = client.and_then(|client| client.0.get("accessTokenInactivityTimeoutSeconds")?.as_i64());
        own.unwrap_or(self.default_seconds)
    }

    /// Writes uses as they fall due, for good.
    pub(super) async fn run(self: Arc<Self>) {
        loop {
            let changed = self.changed.notified();
            let first = self.pending.lock().values().map(|used| used.due).min();
            let Some(first) = first else {
                changed.await;
                continue;
            };
            let left = Duration::try_from(first.duration_since(Timestamp::now())).unwrap_or_default();
            if !left.is_zero() && timeout(left + Duration::from_millis(1), changed).await.is_ok() {
                continue;
            }
            self.write(Timestamp::now()).await;
        }
    }

    async fn write(&self, now: Timestamp) {
        let due: Vec<(Arc<str>, Use)> = {
            let mut pending = self.pending.lock();
            pending.extract_if(|_, used| used.due <= now).collect()
        };
        let user = UserInfo { name: WRITER.to_owned(), ..UserInfo::default() };
        let cx = RequestContext::new(Arc::new(user), RequestInfo::default());
        for (name, used) in due {
            let push = Push { activity: self, seen: used.seen };
            match self.tokens.update(&cx, &name, &push, &WriteOptions::default()).await {
                Ok(_) => {}
                Err(status) if status.is("NotFound") => {}
                // The name is a hash, but nobody needs it: the next use is noted anew.
                Err(status) => tracing::warn!(why = %status, "the use of a token could not be written"),
            }
        }
    }
}

/// Puts a time-out off.
struct Push<'a> {
    activity: &'a Activity,
    seen: Timestamp,
}

impl Updater for Push<'_> {
    fn update(&self, current: &Object) -> Result<Object, Status> {
        let seconds = self.activity.client_seconds(current);
        let mut token = current.clone();
        if seconds == 0 {
            // The client's tokens no longer time out.
            token.0.remove(FIELD);
            return Ok(token);
        }
        let created = current.creation_timestamp().parse::<Timestamp>().map_err(Status::internal)?;
        let new = (self.seen.duration_since(created).as_secs() + seconds).min(i64::from(i32::MAX));
        if number(current, FIELD) < new {
            token.0.insert(FIELD.to_owned(), new.into());
        }
        Ok(token)
    }

    fn retries(&self) -> bool {
        true
    }
}
