//! The units of settings that are durations.

use std::time::Duration;

/// The unit of a setting that is a duration: its value is a whole number of units.
pub(crate) struct DurationUnit {
    /// The name of several units.
    pub(crate) name: &'static str,
    /// A duration for messages.
    pub(crate) example: &'static str,
    /// What `CONFIG` shows for `off`.
    pub(crate) off: i64,
    pub(crate) length: Duration,
}

pub(crate) const SECONDS: DurationUnit =
    DurationUnit { name: "seconds", example: "30s", off: 0, length: Duration::from_secs(1) };

pub(crate) const MICROSECONDS: DurationUnit = DurationUnit {
    name: "microseconds",
    example: "10ms",
    off: -1,
    length: Duration::from_micros(1),
};

impl DurationUnit {
    /// Returns the number of whole units of a duration.
    pub(crate) fn count(&self, duration: Duration) -> u128 {
        duration.as_nanos() / self.length.as_nanos()
    }

    /// Returns whether a duration is a whole number of units.
    pub(crate) fn divides(&self, duration: Duration) -> bool {
        duration.as_nanos().is_multiple_of(self.length.as_nanos())
    }
}
