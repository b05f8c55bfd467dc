//! Limits log lines that clients, origins and the folder can cause repeatedly.

use crate::lock::lock;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Lines of one kind that are logged in a window of time.
const MAX_LINES: u32 = 5;
const WINDOW: Duration = Duration::from_secs(10);

/// Admits at most five lines of each kind in ten seconds, and counts the others.
#[derive(Debug, Default)]
pub struct LogLimit(Mutex<HashMap<&'static str, Window>>);

#[derive(Debug)]
struct Window {
    start: Instant,
    logged: u32,
    unlogged: u64,
}

impl LogLimit {
    /// Returns the number of lines of this kind that were suppressed since the last admitted one,
    /// for the field `unlogged`, or `None` if a line must not be logged now.
    pub fn admit(&self, kind: &'static str, now: Instant) -> Option<u64> {
        let mut windows = lock(&self.0);
        let new = Window { start: now, logged: 0, unlogged: 0 };
        let window = windows.entry(kind).or_insert(new);
        if now.saturating_duration_since(window.start) >= WINDOW {
            (window.start, window.logged) = (now, 0);
        }
        if window.logged == MAX_LINES {
            window.unlogged += 1;
            return None;
        }
        window.logged += 1;
        Some(std::mem::take(&mut window.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_lines_of_each_kind_are_logged_in_ten_seconds_and_the_others_are_counted() {
        let (limit, start) = (LogLimit::default(), Instant::now());
        let admit = |kind, ms| limit.admit(kind, start + Duration::from_millis(ms));
        assert_eq!([0, 1, 2, 3, 9998].map(|ms| admit("one", ms)), [Some(0); 5]);
        assert_eq!([9998, 9999].map(|ms| admit("one", ms)), [None; 2]);
        assert_eq!(admit("two", 9999), Some(0), "another kind has lines of its own");
        assert_eq!(admit("one", 10_000), Some(2));
        assert_eq!(admit("one", 10_001), Some(0));
    }
}
