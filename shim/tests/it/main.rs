//! The shim between raw sockets: what a client writes, what a server behind the shim reads, byte for byte.

#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]

mod direct;
mod forwarding;
mod identity;
mod pki;
mod shared;
mod smuggling;
mod stage;
mod streams;
mod upstream;
