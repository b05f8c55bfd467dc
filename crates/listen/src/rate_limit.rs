//! Limits log lines that clients can cause repeatedly.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum lines of one kind in each window of time.
const MAX_LINES: u32 = 5;
const WINDOW: Duration = Duration::from_secs(10);

/// Admits at most five lines of one kind in ten seconds, and counts those that are left out.
#[derive(Debug)]
pub struct RateLimit(Mutex<Window>);

#[derive(Debug)]
struct Window {
    start: Option<Instant>,
    logged: u32,
    unlogged: u64,
}

impl RateLimit {
    /// Returns a limit that has admitted no line.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Window { start: None, logged: 0, unlogged: 0 }))
    }

    /// Returns the number of lines left out since the last one if a line may be logged now.
    pub fn admit(&self, now: Instant) -> Option<u64> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if window.start.is_none_or(|start| now.duration_since(start) >= WINDOW) {
            (window.start, window.logged) = (Some(now), 0);
        }
        if window.logged == MAX_LINES {
            window.unlogged += 1;
            return None;
        }
        window.logged += 1;
        Some(std::mem::take(&mut window.unlogged))
    }
}

impl Default for RateLimit {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suppressed_lines_are_counted() {
        let (rate_limit, start) = (RateLimit::new(), Instant::now());
        for _ in 0..MAX_LINES {
            assert_eq!(rate_limit.admit(start), Some(0));
        }
        for _ in 0..3 {
            assert_eq!(rate_limit.admit(start + WINDOW / 2), None);
        }
        assert_eq!(rate_limit.admit(start + WINDOW), Some(3));
        assert_eq!(rate_limit.admit(start + WINDOW), Some(0));
    }
}
