//! Fields of reports, which `INFO` and `/metrics` have.

/// A field of a report `R`, with a value of type `V`.
pub(crate) struct ReportField<R, V> {
    /// Its name in `INFO`.
    pub(crate) info: &'static str,
    /// Its name in `/metrics`, without `_total`.
    pub(crate) metric: &'static str,
    /// Whether it only grows.
    pub(crate) is_counter: bool,
    pub(crate) help: &'static str,
    pub(crate) value: fn(&R) -> V,
}

/// Creates a field whose value may fall, with its names in `INFO` and `/metrics`.
pub(crate) const fn gauge<R, V>(
    (info, metric): (&'static str, &'static str),
    help: &'static str,
    value: fn(&R) -> V,
) -> ReportField<R, V> {
    ReportField { info, metric, is_counter: false, help, value }
}

/// Creates a field that only grows, with its names in `INFO` and `/metrics`.
pub(crate) const fn counter<R, V>(
    (info, metric): (&'static str, &'static str),
    help: &'static str,
    value: fn(&R) -> V,
) -> ReportField<R, V> {
    ReportField { info, metric, is_counter: true, help, value }
}
