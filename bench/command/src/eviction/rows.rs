//! The results of a replay, as a table and as rows in JSON.

use nuthatch_units::{bytes, grouped};
use std::fmt::Write;

/// A system that replays a trace, in the order of the table's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    Nuthatch,
    Lru,
    Lfu,
    RedisLru,
    RedisLfu,
    Optimum,
}

impl System {
    pub(crate) const ALL: [Self; 6] =
        [Self::Nuthatch, Self::Lru, Self::Lfu, Self::RedisLru, Self::RedisLfu, Self::Optimum];

    fn name(self) -> &'static str {
        match self {
            Self::Nuthatch => "nuthatch",
            Self::Lru => "lru",
            Self::Lfu => "lfu",
            Self::RedisLru => "redis-lru",
            Self::RedisLfu => "redis-lfu",
            Self::Optimum => "optimum",
        }
    }
}

/// The result of one system on one trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) system: System,
    pub(crate) misses: u64,
    /// Bytes of keys and values that the system held, or its capacity.
    pub(crate) held_bytes: u64,
}

/// The results of all systems on one trace.
#[derive(Clone, Debug)]
pub(crate) struct Result {
    pub(crate) trace: String,
    pub(crate) requests: usize,
    pub(crate) items: usize,
    pub(crate) rows: Vec<Row>,
}

impl Result {
    fn row(&self, system: System) -> Option<&Row> {
        self.rows.iter().find(|row| row.system == system)
    }

    fn ratio(&self, row: &Row) -> f64 {
        row.misses as f64 / self.requests.max(1) as f64
    }

    /// Returns the misses of a system divided by the misses of LRU, or `None` if LRU is not
    /// measured.
    fn times_lru(&self, row: &Row) -> Option<f64> {
        let lru = self.row(System::Lru)?.misses;
        (lru > 0).then(|| row.misses as f64 / lru as f64)
    }
}

/// Returns the rows of one trace in JSON. `is_first` is true for the first trace of the array.
pub(crate) fn json(result: &Result, is_first: bool) -> String {
    let mut text = String::new();
    let name = serde_json::Value::from(result.trace.as_str());
    for (at, row) in result.rows.iter().enumerate() {
        let before = if is_first && at == 0 { "[" } else { "," };
        let Result { requests, items, .. } = result;
        let Row { misses, held_bytes, .. } = row;
        let system = row.system.name();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "{before}\n  {{\"trace\":{name},\"system\":\"{system}\",\"requests\":{requests},\
             \"items\":{items},\"misses\":{misses},\"miss_ratio\":{:.5}",
            result.ratio(row)
        );
        if let Some(times) = result.times_lru(row) {
            let _ = write!(text, ",\"times_lru\":{times:.4}");
        }
        let _ = write!(text, ",\"held_bytes\":{held_bytes}}}");
    }
    text
}

/// Returns the header of the table.
pub(crate) fn heading(systems: &[System]) -> String {
    let mut text = format!("{:<12}{:>11}{:>11}", "trace", "items", "held");
    for system in systems {
        let _ = write!(text, "{:>14}", system.name());
    }
    text.push('\n');
    text
}

/// Returns a row of the table: misses in percent of requests, and divided by the misses of LRU.
pub(crate) fn line(result: &Result, systems: &[System]) -> String {
    let held = result.row(System::Nuthatch).map_or(0, |row| row.held_bytes);
    let name = &result.trace;
    let items = grouped(result.items as u64);
    let mut text = format!("{name:<12}{items:>11}{:>11}", bytes(held));
    for row in systems.iter().filter_map(|system| result.row(*system)) {
        let times = result.times_lru(row).map_or(String::new(), |times| format!("{times:.2}"));
        let _ = write!(text, "{:>7.2} %{times:>5}", result.ratio(row) * 100.0);
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result() -> Result {
        let row = |system, misses| Row { system, misses, held_bytes: 1 << 20 };
        Result {
            trace: "a\"b".to_owned(),
            requests: 1000,
            items: 1234,
            rows: vec![row(System::Nuthatch, 300), row(System::Lru, 400)],
        }
    }

    #[test]
    fn a_line_has_ratios() {
        let systems = [System::Nuthatch, System::Lru];
        assert_eq!(
            heading(&systems) + &line(&result(), &systems),
            "trace             items       held      nuthatch           lru\n\
             a\"b               1,234    1.0 MiB  30.00 % 0.75  40.00 % 1.00\n"
        );
    }

    #[test]
    fn rows_are_json() {
        let row = "{\"trace\":\"a\\\"b\",\"system\":\"nuthatch\",\"requests\":1000,\
                   \"items\":1234,\"misses\":300,\"miss_ratio\":0.30000,\"times_lru\":0.7500,\
                   \"held_bytes\":1048576}";
        let text = json(&result(), true);
        assert!(text.starts_with(&format!("[\n  {row},\n  {{")), "{text}");
        assert!(json(&result(), false).starts_with(&format!(",\n  {row}")));
        let mut one = result();
        one.rows.truncate(1);
        assert!(!json(&one, true).contains("times_lru"));
    }
}
