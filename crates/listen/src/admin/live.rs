//! The report of the live page as JSON.

use crate::live_report::{LiveReport, LiveRow, LiveTable, LiveValue};
use crate::metrics_source::MetricsSource;
use serde_json::{Map, Value, json};
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A report is used again for this long.
const MAX_AGE: Duration = Duration::from_millis(500);

/// Maximum bytes of a text, and of private bytes that are shown.
const MAX_TEXT_LEN: usize = 256;

/// Whether private values are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Privacy {
    Shown,
    Hidden,
}

/// The last report of a server.
#[derive(Debug, Default)]
pub(super) struct LiveCache {
    last: Mutex<Option<(Instant, Arc<LiveReport>)>>,
    /// Makes the names of hidden values different in each run.
    random: RandomState,
}

impl LiveCache {
    /// Returns the report of the server as JSON, at most half a second old.
    pub(super) fn json(
        &self,
        source: &dyn MetricsSource,
        (privacy, has_token): (Privacy, bool),
        now: Instant,
    ) -> String {
        let report = self.report(source, now);
        let tables = report.tables.iter().map(|table| {
            let LiveTable { name, summary, rows } = table;
            let rows = rows.iter().take(LiveTable::MAX_ROWS);
            let rows: Vec<_> = rows.map(|row| Value::from(self.object(row, privacy))).collect();
            let table = json!({ "summary": self.object(summary, privacy), "rows": rows });
            ((*name).to_owned(), table)
        });
        let value = json!({
            "server": report.server,
            "private_values": if privacy == Privacy::Shown { "shown" } else { "hidden" },
            "has_token": has_token,
            "tables": tables.collect::<Map<_, _>>(),
        });
        format!("{value}\n")
    }

    fn report(&self, source: &dyn MetricsSource, now: Instant) -> Arc<LiveReport> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((at, report)) if now.saturating_duration_since(*at) < MAX_AGE => {
                Arc::clone(report)
            }
            _ => {
                let report = Arc::new(source.live());
                *last = Some((now, Arc::clone(&report)));
                report
            }
        }
    }

    fn object(&self, row: &LiveRow, privacy: Privacy) -> Map<String, Value> {
        row.iter().map(|(name, value)| ((*name).to_owned(), self.value(value, privacy))).collect()
    }

    fn value(&self, value: &LiveValue, privacy: Privacy) -> Value {
        match value {
            LiveValue::Number(number) => Value::from(*number),
            LiveValue::Text(text) => Value::from(shortened(text.as_bytes(), text.len() as u64)),
            LiveValue::Private(bytes) if bytes.is_empty() => json!({ "text": "", "bytes": 0 }),
            LiveValue::Private(bytes) if privacy == Privacy::Shown => {
                json!({ "text": shortened(bytes, bytes.len() as u64), "bytes": bytes.len() })
            }
            LiveValue::Private(bytes) => self.hidden(bytes, bytes.len() as u64),
            LiveValue::PrivateStart { start, len, .. } if privacy == Privacy::Shown => {
                json!({ "text": shortened(start, *len), "bytes": len })
            }
            LiveValue::PrivateStart { start, len, hash } => self.hidden((start, hash), *len),
        }
    }

    /// Returns a hidden value of this length. Values that hash alike have one name.
    fn hidden(&self, value: impl Hash, len: u64) -> Value {
        let name = format!("{:08x}", self.random.hash_one(value) as u32);
        json!({ "hidden": name, "bytes": len })
    }
}

/// Returns the first bytes of a value of this length as text of limited length. Bytes that are not
/// UTF-8, and characters that change how text around them is shown, are escaped.
fn shortened(bytes: &[u8], len: u64) -> String {
    let mut text = String::new();
    let part = &bytes[..bytes.len().min(MAX_TEXT_LEN)];
    let is_part = (part.len() as u64) < len;
    for chunk in part.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_shown(character) {
                text.push(character);
            } else {
                text.extend(character.escape_default());
            }
        }
        // The last character may have been cut.
        let is_cut = is_part && chunk.invalid().len() < 4 && is_end(part, &chunk);
        if !is_cut {
            text.extend(chunk.invalid().escape_ascii().map(char::from));
        }
    }
    if is_part {
        text.push('\u{2026}');
    }
    text
}

fn is_end(part: &[u8], chunk: &std::str::Utf8Chunk<'_>) -> bool {
    part.as_ptr_range().end == chunk.invalid().as_ptr_range().end
}

/// Returns whether a character is shown as it is: no control characters, and none that change the
/// direction of text or are invisible.
fn is_shown(character: char) -> bool {
    let is_invisible = matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}');
    !character.is_control() && !is_invisible
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::MetricsFormat;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Default)]
    struct Source(AtomicU64);

    impl MetricsSource for Source {
        fn metrics(&self, _: MetricsFormat) -> String {
            String::new()
        }

        fn is_stopping(&self) -> bool {
            false
        }

        fn live(&self) -> LiveReport {
            let reports = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            let row = vec![
                ("key", LiveValue::private(*b"user:7")),
                ("bytes", 12_u64.into()),
                ("command", "get".into()),
            ];
            let mut table = LiveTable::new("keys", vec![row; 2 * LiveTable::MAX_ROWS]);
            table.summary.push(("reports", reports.into()));
            LiveReport { server: "server", tables: vec![table] }
        }
    }

    #[test]
    fn private_values_are_hidden_and_rows_are_limited() {
        let (cache, source, now) = (LiveCache::default(), Source::default(), Instant::now());
        let read = |privacy| -> Value {
            serde_json::from_str(&cache.json(&source, (privacy, true), now)).expect("JSON")
        };
        let hidden = read(Privacy::Hidden);
        let rows = hidden["tables"]["keys"]["rows"].as_array().expect("rows");
        assert_eq!(rows.len(), LiveTable::MAX_ROWS);
        assert_eq!(rows[0]["key"]["bytes"], 6);
        assert_eq!(rows[0]["key"]["hidden"], rows[1]["key"]["hidden"]);
        assert!(!hidden.to_string().contains("user"), "{hidden}");
        assert_eq!(read(Privacy::Shown)["tables"]["keys"]["rows"][0]["key"]["text"], "user:7");
    }

    #[test]
    fn a_report_is_used_again_for_half_a_second() {
        let (cache, source, start) = (LiveCache::default(), Source::default(), Instant::now());
        for (ms, reports) in [(0, 1), (499, 1), (500, 2), (600, 2), (1100, 3)] {
            cache.json(&source, (Privacy::Hidden, false), start + Duration::from_millis(ms));
            assert_eq!(source.0.load(Ordering::Relaxed), reports, "after {ms} ms");
        }
    }

    #[test]
    fn text_is_shortened_and_cannot_change_the_text_around_it() {
        let shortened = |bytes: &[u8]| shortened(bytes, bytes.len() as u64);
        assert_eq!(shortened(b"a\n\x1b[2J\xff\xc3"), "a\\n\\u{1b}[2J\\xff\\xc3");
        assert_eq!(shortened("\u{202e}b\u{200b}".as_bytes()), "\\u{202e}b\\u{200b}");
        assert_eq!(shortened("\u{e9}\u{1f426}".as_bytes()), "\u{e9}\u{1f426}");
        let long = "\u{e9}".repeat(MAX_TEXT_LEN);
        assert_eq!(shortened(&[b"x", long.as_bytes()].concat()).chars().count(), 129);
        assert_eq!(shortened(&[b'x'; 1000]).len(), MAX_TEXT_LEN + 3);
    }

    #[test]
    fn starts_of_long_values_have_the_length_of_the_whole_value() {
        let cache = LiveCache::default();
        let value = |hash, privacy| {
            let start = vec![b'k'; MAX_TEXT_LEN];
            cache.value(&LiveValue::PrivateStart { start, len: 1000, hash }, privacy)
        };
        let shown = value(1, Privacy::Shown);
        assert_eq!(shown["bytes"], 1000);
        assert!(shown["text"].as_str().is_some_and(|text| text.ends_with("k\u{2026}")), "{shown}");
        let (one, other) = (value(1, Privacy::Hidden), value(2, Privacy::Hidden));
        assert_eq!(one["bytes"], 1000);
        assert_ne!(one["hidden"], other["hidden"]);
        assert_eq!(one["hidden"], value(1, Privacy::Hidden)["hidden"]);
    }
}
