//! What signals mean to our servers.

use std::io;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use crate::drain::Drain;
use crate::tls::ServingCertificate;

/// From now on SIGTERM and SIGINT start the drain, and SIGHUP reads the serving certificate again.
///
/// # Errors
/// When the system refuses the handlers.
pub fn follow(drain: Drain, certificate: Arc<ServingCertificate>) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                _ = hang_up.recv() => match certificate.reload_if_changed() {
                    Ok(new) => tracing::info!(new, "serving certificate looked at"),
                    Err(error) => tracing::warn!(%error, "the serving certificate stays as it was"),
                },
            }
        }
        tracing::info!("draining");
        drain.start();
    });
    Ok(())
}
