//! What a person sees while we work: a line for each step that is done, and what is being waited for.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// How often the waiting line of a terminal is drawn.
const FRAME: Duration = Duration::from_millis(100);
/// How often a log hears that a step still runs.
const REMINDER: Duration = Duration::from_secs(15);

/// Progress on standard error.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    shared: Arc<Mutex<Shared>>,
    _ticker: Arc<Ticker>,
}

#[derive(Debug)]
struct Shared {
    terminal: bool,
    colours: bool,
    active: Vec<Active>,
    next_id: usize,
    frame: usize,
}

#[derive(Debug)]
struct Active {
    id: usize,
    title: String,
    detail: String,
    since: Instant,
}

#[derive(Debug)]
struct Ticker(tokio::task::JoinHandle<()>);

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Progress {
    /// Progress that suits what standard error is.
    pub(crate) fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let shared = Arc::new(Mutex::new(Shared {
            terminal,
            colours: terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            active: Vec::new(),
            next_id: 0,
            frame: 0,
        }));
        let ticker = tokio::spawn({
            let shared = Arc::clone(&shared);
            async move {
                let mut interval = tokio::time::interval(if terminal { FRAME } else { REMINDER });
                interval.tick().await;
                loop {
                    interval.tick().await;
                    shared.lock().tick();
                }
            }
        });
        Self { shared, _ticker: Arc::new(Ticker(ticker)) }
    }

    /// Prints a line.
    pub(crate) fn say(&self, line: &str) {
        self.shared.lock().print(line);
    }

    /// Begins a step; it is shown until it is done or dropped.
    pub(crate) fn step(&self, title: &str) -> Step {
        let mut shared = self.shared.lock();
        let id = shared.next_id;
        shared.next_id += 1;
        shared.active.push(Active {
            id,
            title: title.to_owned(),
            detail: String::new(),
            since: Instant::now(),
        });
        Step { shared: Arc::clone(&self.shared), id }
    }
}

/// A step under way.
#[derive(Debug)]
pub(crate) struct Step {
    shared: Arc<Mutex<Shared>>,
    id: usize,
}

impl Step {
    /// Says more about it.
    pub(crate) fn detail(&self, detail: &str) {
        let mut shared = self.shared.lock();
        if let Some(active) = shared.active.iter_mut().find(|active| active.id == self.id) {
            detail.clone_into(&mut active.detail);
        }
    }

    /// It went well.
    pub(crate) fn done(self) {
        self.shared.lock().finish(self.id, "");
    }

    /// It went well, and this is to be said about it.
    pub(crate) fn done_with(self, remark: &str) {
        self.shared.lock().finish(self.id, remark);
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        let mut shared = self.shared.lock();
        shared.active.retain(|active| active.id != self.id);
        shared.clear();
    }
}

impl Shared {
    fn clear(&self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }

    fn print(&self, line: &str) {
        self.clear();
        eprintln!("{line}");
    }

    fn finish(&mut self, id: usize, remark: &str) {
        let Some(at) = self.active.iter().position(|active| active.id == id) else {
            return;
        };
        let active = self.active.remove(at);
        let (green, dim, plain) =
            if self.colours { ("\x1b[32m", "\x1b[2m", "\x1b[0m") } else { ("", "", "") };
        let gap = if remark.is_empty() { "" } else { ", " };
        self.print(&format!(
            "{green}✓{plain} {} {dim}({}{gap}{remark}){plain}",
            active.title,
            elapsed(active.since.elapsed())
        ));
    }

    fn tick(&mut self) {
        let Some(first) = self.active.first() else {
            return;
        };
        if self.terminal {
            self.frame = (self.frame + 1) % FRAMES.len();
            let titles: Vec<&str> = self.active.iter().map(|active| active.title.as_str()).collect();
            let mut line =
                format!("{} {} {}", FRAMES[self.frame], elapsed(first.since.elapsed()), titles.join(", "));
            if !first.detail.is_empty() {
                line.push_str(&format!(": {}", first.detail));
            }
            // A line that wraps could not be cleared.
            let line: String = line.chars().take(78).collect();
            eprint!("\r\x1b[K{line}");
            let _ = std::io::stderr().flush();
        } else {
            for active in &self.active {
                let gap = if active.detail.is_empty() { "" } else { ", " };
                eprintln!("… {} ({}{gap}{})", active.title, elapsed(active.since.elapsed()), active.detail);
            }
        }
    }
}

/// `0.4s`, `12.0s`, `2m05s`.
pub(crate) fn elapsed(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 60.. => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{:.1}s", duration.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elapsed_time_is_short() {
        assert_eq!(elapsed(Duration::from_millis(420)), "0.4s");
        assert_eq!(elapsed(Duration::from_secs(125)), "2m05s");
    }

    #[tokio::test]
    async fn steps_end_by_themselves() {
        let progress = Progress::new();
        let first = progress.step("first");
        drop(progress.step("second"));
        first.detail("more");
        assert_eq!(progress.shared.lock().active.len(), 1);
        first.done_with("fine");
        assert!(progress.shared.lock().active.is_empty());
    }
}
