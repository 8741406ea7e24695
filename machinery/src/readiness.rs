//! Named checks that tell whether a server lives and may be given work.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

/// Which of the three probes show a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// `healthz`, `livez` and `readyz`.
    Everywhere,
    /// `healthz` and `readyz`: failing it must not have the process killed.
    NotLive,
    /// `readyz` alone.
    OnlyReady,
}

/// One of the three probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// `healthz`, the old one.
    Health,
    /// `livez`: must the process be restarted?
    Live,
    /// `readyz`: may it be given work?
    Ready,
}

impl Probe {
    /// The word in the path.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Health => "healthz",
            Self::Live => "livez",
            Self::Ready => "readyz",
        }
    }

    fn shows(self, shown: Shown) -> bool {
        match shown {
            Shown::Everywhere => true,
            Shown::NotLive => self != Self::Live,
            Shown::OnlyReady => self == Self::Ready,
        }
    }
}

/// A check that fails until [`Latch::release`] is called, and again after [`Latch::close`].
#[derive(Clone, Debug, Default)]
pub struct Latch {
    open: Arc<AtomicBool>,
}

impl Latch {
    /// The check passes from now on.
    pub fn release(&self) {
        self.open.store(true, Ordering::Release);
    }

    /// The check fails from now on.
    pub fn close(&self) {
        self.open.store(false, Ordering::Release);
    }

    /// Whether the check passes.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }
}

type Run = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// One named check.
#[derive(Clone)]
pub struct Check {
    /// Its name, for example `ping`.
    pub name: String,
    shown: Shown,
    run: Run,
}

impl Check {
    /// Asks.
    ///
    /// # Errors
    /// What is wrong, in words for the operator.
    pub fn run(&self) -> Result<(), String> {
        (self.run)()
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check").field("name", &self.name).field("shown", &self.shown).finish_non_exhaustive()
    }
}

/// All checks of a process, in the order in which they were added. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    checks: Arc<RwLock<Vec<Check>>>,
}

impl Checks {
    /// No checks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a check that a function answers; it must be quick and not block.
    pub fn add(
        &self,
        name: impl Into<String>,
        shown: Shown,
        run: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.checks.write().push(Check { name: name.into(), shown, run: Arc::new(run) });
    }

    /// Adds a latch; `pending` is what it says until it is released.
    pub fn latch(&self, name: impl Into<String>, shown: Shown, pending: &'static str) -> Latch {
        let latch = Latch::default();
        let asked = latch.clone();
        self.add(name, shown, move || if asked.is_released() { Ok(()) } else { Err(pending.to_owned()) });
        latch
    }

    /// The checks that a probe shows.
    #[must_use]
    pub fn of(&self, probe: Probe) -> Vec<Check> {
        self.checks.read().iter().filter(|check| probe.shows(check.shown)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_show_their_checks_in_order() {
        let checks = Checks::new();
        checks.add("ping", Shown::Everywhere, || Ok(()));
        let store = checks.latch("store", Shown::NotLive, "not open yet");
        checks.add("shutdown", Shown::OnlyReady, || Ok(()));
        let names =
            |probe| checks.of(probe).into_iter().map(|check| check.name).collect::<Vec<_>>().join(" ");
        assert_eq!(names(Probe::Ready), "ping store shutdown");
        assert_eq!(names(Probe::Health), "ping store");
        assert_eq!(names(Probe::Live), "ping");
        assert_eq!(checks.of(Probe::Health)[1].run(), Err("not open yet".to_owned()));
        store.release();
        assert_eq!(checks.of(Probe::Health)[1].run(), Ok(()));
        store.close();
        assert!(checks.of(Probe::Health)[1].run().is_err());
    }
}
