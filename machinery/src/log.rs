//! The log of a process: lines for people or one JSON object per line, on standard error.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
pub use tracing_subscriber::filter::ParseError;

/// Starts the log of this process. `directives` is a level, or directives such as `info,picoshift_apiserver=debug`.
///
/// # Errors
/// When the directives cannot be read.
pub fn start(directives: &str, json: bool) -> Result<(), ParseError> {
    let filter = EnvFilter::try_new(directives)?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let log = log.with_ansi(std::io::stderr().is_terminal());
    if json {
        log.json().init();
    } else {
        log.init();
    }
    Ok(())
}
