//! Graceful end of a server: one signal that everybody who holds the [`Drain`] sees.

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The signal. Clones share it; it is given once and stays.
#[derive(Clone, Debug, Default)]
pub struct Drain {
    token: CancellationToken,
}

impl Drain {
    /// A signal that is not given yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the signal.
    pub fn start(&self) {
        self.token.cancel();
    }

    /// Whether the signal has been given.
    #[must_use]
    pub fn started(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits for the signal.
    pub fn wait(&self) -> WaitForCancellationFutureOwned {
        self.token.clone().cancelled_owned()
    }
}
