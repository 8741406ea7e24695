//! The log of a process: lines for people or one JSON object per line, on standard error. How much is said can be
//! changed while it runs.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
pub use tracing_subscriber::filter::ParseError;

/// The verbosity at which our own debug lines appear, as upstream's do.
const DEBUG: u32 = 4;
/// The verbosity at which our own trace lines appear.
const TRACE: u32 = 6;

/// What a running log says. The flag's directives always count; verbosity adds to them what our own crates say, and
/// never what the libraries say, which may print headers with credentials in them.
pub struct Verbosity {
    base: String,
    replace: Box<dyn Fn(EnvFilter) -> bool + Send + Sync>,
}

impl Verbosity {
    /// The verbosity of a log that began with `base`; `replace` gives it another filter and says whether it took it.
    pub fn new(base: &str, replace: impl Fn(EnvFilter) -> bool + Send + Sync + 'static) -> Self {
        Self { base: base.to_owned(), replace: Box::new(replace) }
    }

    /// Says as much as upstream would at `-v=LEVEL`. False when the log is gone.
    pub fn set(&self, level: u32) -> bool {
        match EnvFilter::try_new(directives(&self.base, level)) {
            Ok(filter) => (self.replace)(filter),
            Err(_) => false,
        }
    }
}

fn directives(base: &str, level: u32) -> String {
    match level {
        0..DEBUG => base.to_owned(),
        DEBUG..TRACE => format!("{base},picoshift=debug"),
        TRACE.. => format!("{base},picoshift=trace"),
    }
}

/// Starts the log of this process. `directives` is a level, or directives such as `info,picoshift_apiserver=debug`.
///
/// # Errors
/// When the directives cannot be read.
pub fn start(directives: &str, json: bool) -> Result<Verbosity, ParseError> {
    let filter = EnvFilter::try_new(directives)?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let log = log.with_ansi(std::io::stderr().is_terminal());
    if json {
        let log = log.json().with_filter_reloading();
        let handle = log.reload_handle();
        log.init();
        return Ok(Verbosity::new(directives, move |filter| handle.reload(filter).is_ok()));
    }
    let log = log.with_filter_reloading();
    let handle = log.reload_handle();
    log.init();
    Ok(Verbosity::new(directives, move |filter| handle.reload(filter).is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbosity_adds_our_own_lines_only() {
        for (level, wanted) in [
            (0, "warn"),
            (3, "warn"),
            (4, "warn,picoshift=debug"),
            (6, "warn,picoshift=trace"),
            (u32::MAX, "warn,picoshift=trace"),
        ] {
            assert_eq!(directives("warn", level), wanted);
            EnvFilter::try_new(wanted).unwrap();
        }
    }

    #[test]
    fn a_running_log_says_more_and_less() {
        let verbosity = start("info,picoshift_controllers=warn", true).unwrap();
        let enabled = || {
            (
                tracing::enabled!(target: "picoshift_apiserver::server", tracing::Level::DEBUG),
                tracing::enabled!(target: "h2", tracing::Level::DEBUG),
            )
        };
        assert_eq!(enabled(), (false, false));
        assert!(verbosity.set(4));
        assert_eq!(enabled(), (true, false));
        assert!(verbosity.set(2));
        assert_eq!(enabled(), (false, false));
    }
}
