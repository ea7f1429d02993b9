//! A line on a terminal that says what takes so long.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What is done sooner is not worth a line.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(500);

/// The exit code of what is ended by Ctrl-C, as shells have it.
const INTERRUPTED: i32 = 130;

/// Clears the line that the cursor is on.
const CLEAR: &str = "\r\u{1b}[K";

static ON: AtomicBool = AtomicBool::new(false);
static DRAWN: Mutex<bool> = Mutex::new(false);

/// Shows a line while it lives, once that is longer than a second, where standard error is a terminal.
#[derive(Debug)]
#[must_use]
pub struct Progress {
    /// Dropped to end the thread.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Lets lines be shown from now on. Who completes words or watches leaves the terminal to others.
    pub fn allow() {
        let able = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        ON.store(able && io::stderr().is_terminal(), Ordering::Relaxed);
    }

    /// Lets no line be shown from now on.
    pub fn forbid() {
        ON.store(false, Ordering::Relaxed);
    }

    /// Says that this goes on, which began `since` then. The text is shown as it is.
    pub fn new(what: impl Into<String>, since: Instant) -> Self {
        if !ON.load(Ordering::Relaxed) {
            return Self { stop: None, thread: None };
        }
        let what = what.into();
        let (stop, stopped) = mpsc::channel();
        Self {
            stop: Some(stop),
            thread: thread::Builder::new().spawn(move || draw(&what, since, &stopped)).ok(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // What is printed next finds the line clear.
            let _ = thread.join();
        }
    }
}

fn draw(what: &str, since: Instant, stopped: &mpsc::Receiver<()>) {
    let mut pause = PATIENCE.saturating_sub(since.elapsed());
    while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        clear_when_interrupted();
        let mut drawn = drawn();
        let line = line(what, since.elapsed(), columns());
        let mut out = io::stderr().lock();
        *drawn = write!(out, "{CLEAR}{line}").and_then(|()| out.flush()).is_ok();
        pause = TICK;
    }
    clear(&mut drawn());
}

fn drawn() -> MutexGuard<'static, bool> {
    DRAWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn clear(drawn: &mut bool) {
    if std::mem::take(drawn) {
        let mut out = io::stderr().lock();
        let _ = write!(out, "{CLEAR}").and_then(|()| out.flush());
    }
}

fn columns() -> usize {
    terminal_size::terminal_size_of(io::stderr()).map_or(80, |(terminal_size::Width(columns), _)| columns.into())
}

/// The line, cut so that it does not wrap.
fn line(what: &str, elapsed: Duration, columns: usize) -> String {
    let time = format!(", {} s", elapsed.as_secs());
    let room = columns.saturating_sub(time.chars().count() + 1);
    let what: String = what.chars().take(room).collect();
    format!("{what}{time}")
}

/// Ends the process at Ctrl-C, as without this, but leaves no half line behind.
fn clear_when_interrupted() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // A thread of its own: the first one may be busy with something that does not look up.
        let waits = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(tokio::signal::ctrl_c())?;
            let mut drawn = drawn();
            clear(&mut drawn);
            std::process::exit(INTERRUPTED)
        };
        let _ = thread::Builder::new().spawn(move || -> io::Result<()> { waits() });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_does_not_wrap() {
        let time = Duration::from_secs(12);
        assert_eq!(line("reading pods", time, 80), "reading pods, 12 s");
        assert_eq!(line("reading pods, nodes", time, 19), "reading pods, 12 s");
        assert_eq!(line("reading pods", time, 3), ", 12 s");
    }
}
