//! Which port each component listens on: the one it had, else the usual one, else a free one.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt};

/// Above the usual ports, so that 6443 becomes 16443: the first alternative.
const ALTERNATIVE: u16 = 10_000;

/// How often it is tried to have a component's own port again.
const PATIENCE: u32 = 100;
/// The time between two tries.
const PAUSE: Duration = Duration::from_millis(10);

/// Chooses ports, none of them twice, and holds them until their components start: that may be seconds later.
#[derive(Debug, Default)]
pub(crate) struct Chooser {
    given: BTreeSet<u16>,
    held: BTreeMap<u16, OwnedFd>,
}

impl Chooser {
    /// Keeps the port of a component that runs.
    pub(crate) fn keep(&mut self, port: u16) -> u16 {
        self.given.insert(port);
        port
    }

    /// Chooses a port that is free now; `recorded` is what the component had the last time.
    pub(crate) fn choose(&mut self, recorded: Option<u16>, usual: u16) -> Result<u16> {
        let candidates = [(recorded, PATIENCE), (Some(usual), 0), (usual.checked_add(ALTERNATIVE), 0)];
        for (port, patience) in candidates {
            if let Some(port) = port
                && !self.given.contains(&port)
                && let Ok((port, socket)) = hold_patiently(port, patience)
            {
                self.held.insert(port, socket);
                return Ok(self.keep(port));
            }
        }
        // The system may offer one that was given already; hold on to those so that it offers others.
        let mut unwanted = Vec::new();
        loop {
            let (port, socket) = hold(0).context("there is no free port on 127.0.0.1")?;
            if !self.given.contains(&port) {
                self.held.insert(port, socket);
                return Ok(self.keep(port));
            }
            unwanted.push(socket);
        }
    }

    /// Lets go of a port whose component is about to listen on it.
    pub(crate) fn release(&mut self, port: u16) {
        self.held.remove(&port);
    }
}

/// Takes a port as soon as it is free: a component that was killed holds its port until its last thread has ended,
/// and another port would mean another configuration for all that know this one.
fn hold_patiently(port: u16, tries: u32) -> io::Result<(u16, OwnedFd)> {
    let mut left = tries;
    loop {
        match hold(port) {
            Err(_) if left > 0 => std::thread::sleep(PAUSE),
            held => return held,
        }
        left -= 1;
    }
}

/// Takes a port so that nobody else can listen on it. Nobody listens on it here either: who connects is refused at once, where a
/// listener that never answers would make kube-apiserver wait for its time-outs.
fn hold(port: u16) -> io::Result<(u16, OwnedFd)> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Connections of the component's last run may linger; they are in nobody's way.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    // From here on: others that would share it may not.
    sockopt::set_socket_reuseaddr(&socket, false)?;
    let address = SocketAddrV4::try_from(getsockname(&socket)?).map_err(io::Error::other)?;
    Ok((address.port(), socket))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

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
    fn the_recorded_port_is_waited_for() {
        let (listener, port) = in_use();
        let end = std::thread::spawn(move || {
            std::thread::sleep(PAUSE * 5);
            drop(listener);
        });
        assert_eq!(Chooser::default().choose(Some(port), 1).unwrap(), port);
        end.join().unwrap();
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
    fn a_chosen_port_is_held_until_its_component_starts() {
        let (listener, port) = in_use();
        drop(listener);
        let mut chooser = Chooser::default();
        assert_eq!(chooser.choose(None, port).unwrap(), port);
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err(), "nobody else can listen");
        assert!(TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_err(), "nor on all addresses");
        assert_ne!(Chooser::default().choose(None, port).unwrap(), port);
        let refused = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        chooser.release(port);
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    }

    #[test]
    fn connections_that_linger_are_in_nobodys_way() {
        let (listener, port) = in_use();
        let client = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        let (server, _) = listener.accept().unwrap();
        // The server ends it first, so it is the server's port that lingers.
        drop((server, listener));
        drop(client);
        assert_eq!(Chooser::default().choose(None, port).unwrap(), port);
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
