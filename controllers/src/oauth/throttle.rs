//! Guessing passwords takes time: who fails too often within a minute is refused for the rest of it, right password or not.
//!
//! Counted are failures of a name from an address, of a name from anywhere, and from an address for any name. Of
//! attempts at a time only so many are under way as may still fail, and others wait, so that many at a time gain nothing.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

const WINDOW: Duration = Duration::from_secs(60);
/// Failures of a name from one address. Nobody mistypes so often in a minute.
pub const PER_NAME_AND_ADDRESS: u32 = 10;
/// Failures of a name from anywhere: enough that who wants to lock somebody out needs several addresses.
pub const PER_NAME: u32 = 60;
/// Failures from one address, behind which a whole office or a router may be.
pub const PER_ADDRESS: u32 = 300;
/// More is not remembered; a window is forgotten when it is over.
const MOST: usize = 20_000;
const LONGEST_NAME: usize = 255;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    NameAndAddress(String, IpAddr),
    Name(String),
    Address(IpAddr),
}

impl Key {
    fn most(&self) -> u32 {
        match self {
            Self::NameAndAddress(..) => PER_NAME_AND_ADDRESS,
            Self::Name(_) => PER_NAME,
            Self::Address(_) => PER_ADDRESS,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Window {
    failures: u32,
    /// Attempts that may become failures.
    under_way: u32,
    over: Instant,
}

/// What counts, shared with the attempts.
#[derive(Debug, Default)]
struct Counts {
    windows: Mutex<HashMap<Key, Window>>,
    /// An attempt has ended.
    ended: Notify,
}

/// What keeps guesses few.
#[derive(Clone, Debug, Default)]
pub struct Throttle {
    counts: Arc<Counts>,
}

/// An attempt that is under way; when it is dropped it has failed.
#[derive(Debug)]
pub struct Attempt {
    counts: Arc<Counts>,
    keys: [Key; 3],
    is_forgiven: bool,
}

/// Why an attempt does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotNow {
    /// Too many have failed; so long.
    Refused(Duration),
    /// If those that are under way fail, too many will have.
    Wait,
}

impl Throttle {
    /// Begins an attempt, once those that are under way leave room for a failure more.
    ///
    /// # Errors
    /// How long to wait instead.
    pub async fn begin(&self, name: &str, address: IpAddr) -> Result<Attempt, Duration> {
        loop {
            let ended = self.counts.ended.notified();
            match self.try_begin(name, address, Instant::now()) {
                Ok(attempt) => return Ok(attempt),
                Err(NotNow::Refused(wait)) => return Err(wait),
                Err(NotNow::Wait) => ended.await,
            }
        }
    }

    fn try_begin(&self, name: &str, address: IpAddr, now: Instant) -> Result<Attempt, NotNow> {
        let (name, address): (String, _) = (name.chars().take(LONGEST_NAME).collect(), network(address));
        let keys = [Key::NameAndAddress(name.clone(), address), Key::Name(name), Key::Address(address)];
        let mut windows = self.counts.windows.lock();
        if windows.len() + keys.len() > MOST {
            make_room(&mut windows, keys.len(), now);
        }
        for key in &keys {
            if let Some(window) = windows.get_mut(key).filter(|window| window.over <= now) {
                *window = Window { failures: 0, over: now + WINDOW, ..*window };
            }
        }
        let known = || keys.iter().filter_map(|key| windows.get(key).map(|window| (key.most(), window)));
        let full = known().filter(|(most, window)| window.failures >= *most).map(|(_, window)| window.over);
        if let Some(over) = full.max() {
            return Err(NotNow::Refused(over.duration_since(now)));
        }
        if known().any(|(most, window)| window.failures + window.under_way >= most) {
            return Err(NotNow::Wait);
        }
        for key in &keys {
            if let Some(window) = windows.get_mut(key) {
                window.under_way += 1;
            } else {
                windows.insert(key.clone(), Window { failures: 0, under_way: 1, over: now + WINDOW });
            }
        }
        Ok(Attempt { counts: Arc::clone(&self.counts), keys, is_forgiven: false })
    }
}

impl Attempt {
    /// It does not count.
    pub fn forgive(mut self) {
        self.is_forgiven = true;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let mut windows = self.counts.windows.lock();
        for key in &self.keys {
            if let Some(window) = windows.get_mut(key) {
                window.under_way = window.under_way.saturating_sub(1);
                window.failures = window.failures.saturating_add(u32::from(!self.is_forgiven));
            }
        }
        drop(windows);
        self.counts.ended.notify_waiters();
    }
}

/// Forgets what is over, and then, if need be, whoever has failed least: names and addresses that are made up by the thousand
/// fail once or twice each, and must not make room for those that are guessed at. Attempts that are under way stay; they are
/// fewer than connections.
fn make_room(windows: &mut HashMap<Key, Window>, wanted: usize, now: Instant) {
    windows.retain(|_, window| window.over > now || window.under_way > 0);
    let mut least = 1;
    while windows.len() + wanted > MOST && least <= PER_ADDRESS {
        windows.retain(|_, window| window.failures > least || window.under_way > 0);
        least *= 2;
    }
}

/// Whoever has an IPv6 address has all of its /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => {
            let mut octets = six.octets();
            octets[8..].fill(0);
            IpAddr::from(octets)
        }
        four @ IpAddr::V4(_) => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    /// Fails at once.
    fn guess(throttle: &Throttle, name: &str, address: IpAddr, now: Instant) -> Result<(), NotNow> {
        throttle.try_begin(name, address, now).map(drop)
    }

    #[test]
    fn a_name_is_guessed_ten_times_a_minute_from_an_address() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        for _ in 0..PER_NAME_AND_ADDRESS {
            guess(&throttle, "alice", address(1), now).unwrap();
        }
        let wait = guess(&throttle, "alice", address(1), now + Duration::from_secs(20));
        assert_eq!(wait, Err(NotNow::Refused(Duration::from_secs(40))));
        assert!(guess(&throttle, "bob", address(1), now).is_ok());
        assert!(guess(&throttle, "alice", address(2), now).is_ok());
        assert!(guess(&throttle, "alice", address(1), now + WINDOW).is_ok());
    }

    #[test]
    fn spraying_is_slowed_down() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        for n in 0..PER_ADDRESS {
            guess(&throttle, &format!("user{n}"), address(1), now).unwrap();
        }
        assert!(guess(&throttle, "one-more", address(1), now).is_err());
        assert!(guess(&throttle, "one-more", address(2), now).is_ok());
        let many = Throttle::default();
        let refused = (0..100).filter(|n| guess(&many, "alice", address(*n), now).is_err()).count();
        assert_eq!(refused, 40);
    }

    #[tokio::test]
    async fn who_knows_the_password_is_never_refused_however_many_at_a_time() {
        let throttle = Throttle::default();
        let logins = (0..1000).map(|_| async {
            let attempt = throttle.begin("alice", address(1)).await.unwrap();
            tokio::task::yield_now().await;
            attempt.forgive();
        });
        futures::future::join_all(logins).await;
        assert!(
            throttle.counts.windows.lock().values().all(|window| window.failures + window.under_way == 0)
        );
    }

    #[tokio::test]
    async fn guesses_at_a_time_gain_nothing() {
        let throttle = Throttle::default();
        let guesses = (0..100).map(|_| async {
            let attempt = throttle.begin("alice", address(1)).await.ok()?;
            tokio::task::yield_now().await;
            drop(attempt);
            Some(())
        });
        let answered = futures::future::join_all(guesses).await.into_iter().flatten().count();
        assert_eq!(answered, usize::try_from(PER_NAME_AND_ADDRESS).unwrap());
    }

    #[test]
    fn who_fills_the_memory_does_not_guess_for_free() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        let mut made_up = 0..u32::MAX;
        let mut fill = || {
            for n in made_up.by_ref().take(MOST) {
                let _ =
                    guess(&throttle, &format!("nobody{n}"), IpAddr::from((1 << 31 | n).to_be_bytes()), now);
            }
        };
        fill();
        let answered = (0..250).filter(|n| guess(&throttle, "alice", address(*n), now).is_ok()).count();
        assert_eq!(answered, usize::try_from(PER_NAME).unwrap(), "guesses count while all is full");
        fill();
        assert!(guess(&throttle, "alice", address(251), now).is_err(), "and are not forgotten first");
    }

    #[test]
    fn memory_is_bounded_and_networks_are_one() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        for n in 0..u32::try_from(MOST).unwrap() {
            let _ = guess(&throttle, &n.to_string(), IpAddr::from(n.to_be_bytes()), now);
        }
        assert!(throttle.counts.windows.lock().len() <= MOST);
        assert!(guess(&throttle, "late", address(1), now + WINDOW).is_ok());
        let mut windows = throttle.counts.windows.lock();
        make_room(&mut windows, MOST, now + 2 * WINDOW);
        assert!(windows.is_empty(), "what is over goes first");
        assert_eq!(network("2001:db8::1".parse().unwrap()), network("2001:db8::2".parse().unwrap()));
        assert_eq!(network("::ffff:192.0.2.1".parse().unwrap()), address(1));
    }
}
