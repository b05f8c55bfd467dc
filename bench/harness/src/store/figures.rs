//! The results of a run.

/// One result: rows or writes per second.
#[derive(Clone, Debug)]
pub(crate) struct StoreFigure {
    pub(crate) work: &'static str,
    pub(crate) system: &'static str,
    pub(crate) per_second: f64,
    /// The name of the reference, and this rate divided by the rate of the reference.
    pub(crate) against: Option<(&'static str, f64)>,
    /// The 99th percentile of the acknowledgement times, in microseconds.
    pub(crate) p99_us: Option<f64>,
}

/// The names of Nuthatch's store and of plain LMDB in tables.
pub(super) const OWN: &str = "nuthatch";
pub(super) const LMDB: &str = "lmdb";

/// Returns the median of the samples, or NaN if there are none.
pub(crate) fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}
