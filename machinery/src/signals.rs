//! What signals mean to our servers.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

use crate::drain::Drain;

/// From now on SIGTERM and SIGINT start the drain, and `hung_up` is called on SIGHUP.
///
/// # Errors
/// When the system refuses the handlers.
pub fn follow(drain: Drain, hung_up: impl Fn() + Send + 'static) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                _ = hang_up.recv() => hung_up(),
            }
        }
        tracing::info!("draining");
        drain.start();
    });
    Ok(())
}
