//! Which port each component listens on: the one it had, else the usual one, else a free one.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};

/// Above the usual ports, so that 6443 becomes 16443: the first alternative.
const ALTERNATIVE: u16 = 10_000;

/// Chooses ports, none of them twice.
#[derive(Debug, Default)]
pub(crate) struct Chooser {
    given: BTreeSet<u16>,
}

impl Chooser {
    /// Keeps the port of a component that runs.
    pub(crate) fn keep(&mut self, port: u16) -> u16 {
        self.given.insert(port);
        port
    }

    /// Chooses a port that is free now; `recorded` is what the component had the last time.
    pub(crate) fn choose(&mut self, recorded: Option<u16>, usual: u16) -> Result<u16> {
        let candidates = [recorded, Some(usual), usual.checked_add(ALTERNATIVE)];
        for port in candidates.into_iter().flatten() {
            if !self.given.contains(&port) && is_free(port) {
                return Ok(self.keep(port));
            }
        }
        // The system may offer one that was given already; hold on to those so that it offers others.
        let mut held = Vec::new();
        loop {
            let listener =
                TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("there is no free port on 127.0.0.1")?;
            let port = listener.local_addr()?.port();
            if !self.given.contains(&port) {
                return Ok(self.keep(port));
            }
            held.push(listener);
        }
    }
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A port that is in use for as long as the listener lives.
    fn in_use() -> (TcpListener, u16) {
        loop {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            if port < u16::MAX - ALTERNATIVE {
                return (listener, port);
            }
        }
    }

    #[test]
    fn a_port_in_use_is_not_chosen() {
        let (_listener, port) = in_use();
        let chosen = Chooser::default().choose(None, port).unwrap();
        assert_ne!(chosen, port);
        let chosen = Chooser::default().choose(Some(port), port).unwrap();
        assert_ne!(chosen, port);
    }

    #[test]
    fn the_recorded_port_comes_first() {
        let (listener, usual) = in_use();
        let (other, recorded) = in_use();
        drop((listener, other));
        assert_eq!(Chooser::default().choose(Some(recorded), usual).unwrap(), recorded);
        assert_eq!(Chooser::default().choose(None, usual).unwrap(), usual);
    }

    #[test]
    fn no_port_is_given_twice() {
        let (listener, usual) = in_use();
        drop(listener);
        let mut chooser = Chooser::default();
        let ports: BTreeSet<u16> = (0..20).map(|_| chooser.choose(Some(usual), usual).unwrap()).collect();
        assert_eq!(ports.len(), 20);
    }
}
