//! Guessing passwords takes time: who fails too often within a minute is refused for the rest of it, right password or not.
//!
//! Counted are failures of a name from an address, of a name from anywhere, and from an address for any name. An attempt
//! counts as failed while it is under way, so that many at a time gain nothing.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
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
    over: Instant,
}

/// What counts.
#[derive(Clone, Debug, Default)]
pub struct Throttle {
    windows: Arc<Mutex<HashMap<Key, Window>>>,
}

/// An attempt that is under way; it has failed unless it is said to have not.
#[derive(Debug)]
pub struct Attempt {
    windows: Arc<Mutex<HashMap<Key, Window>>>,
    keys: [Key; 3],
}

impl Throttle {
    /// Begins an attempt.
    ///
    /// # Errors
    /// How long to wait instead.
    pub fn begin(&self, name: &str, address: IpAddr, now: Instant) -> Result<Attempt, Duration> {
        let (name, address): (String, _) = (name.chars().take(LONGEST_NAME).collect(), network(address));
        let keys = [Key::NameAndAddress(name.clone(), address), Key::Name(name), Key::Address(address)];
        let mut windows = self.windows.lock();
        let full =
            |key: &Key| windows.get(key).filter(|w| w.over > now && w.failures >= key.most()).map(|w| w.over);
        if let Some(over) = keys.iter().filter_map(full).max() {
            return Err(over.duration_since(now));
        }
        if windows.len() + keys.len() > MOST {
            windows.retain(|_, window| window.over > now);
        }
        for key in &keys {
            if let Some(window) = windows.get_mut(key).filter(|window| window.over > now) {
                window.failures += 1;
            } else if windows.len() < MOST {
                windows.insert(key.clone(), Window { failures: 1, over: now + WINDOW });
            }
        }
        Ok(Attempt { windows: Arc::clone(&self.windows), keys })
    }
}

impl Attempt {
    /// It does not count.
    pub fn forgive(self) {
        let mut windows = self.windows.lock();
        for key in &self.keys {
            if let Some(window) = windows.get_mut(key) {
                window.failures = window.failures.saturating_sub(1);
            }
        }
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

    #[test]
    fn a_name_is_guessed_ten_times_a_minute_from_an_address() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        for _ in 0..PER_NAME_AND_ADDRESS {
            throttle.begin("alice", address(1), now).unwrap();
        }
        let wait = throttle.begin("alice", address(1), now + Duration::from_secs(20)).unwrap_err();
        assert_eq!(wait, Duration::from_secs(40));
        assert!(throttle.begin("bob", address(1), now).is_ok());
        assert!(throttle.begin("alice", address(2), now).is_ok());
        assert!(throttle.begin("alice", address(1), now + WINDOW).is_ok());
    }

    #[test]
    fn spraying_is_slowed_down() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        for n in 0..PER_ADDRESS {
            throttle.begin(&format!("user{n}"), address(1), now).unwrap();
        }
        assert!(throttle.begin("one-more", address(1), now).is_err());
        assert!(throttle.begin("one-more", address(2), now).is_ok());
        let many = Throttle::default();
        let refused = (0..100).filter(|n| many.begin("alice", address(*n), now).is_err()).count();
        assert_eq!(refused, 40);
    }

    #[test]
    fn who_knows_the_password_is_never_refused() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        for _ in 0..1000 {
            throttle.begin("alice", address(1), now).unwrap().forgive();
        }
    }

    #[test]
    fn memory_is_bounded_and_networks_are_one() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        for n in 0..u32::try_from(MOST).unwrap() {
            let _ = throttle.begin(&n.to_string(), IpAddr::from(n.to_be_bytes()), now);
        }
        assert!(throttle.windows.lock().len() <= MOST);
        assert!(throttle.begin("late", address(1), now + WINDOW).is_ok());
        assert!(throttle.windows.lock().len() <= 3);
        assert_eq!(network("2001:db8::1".parse().unwrap()), network("2001:db8::2".parse().unwrap()));
        assert_eq!(network("::ffff:192.0.2.1".parse().unwrap()), address(1));
    }
}
