//! The report of a server beside its metrics: hot keys, big keys, slow commands, clients and
//! snapshots; and its lines.

use super::line::{Line, Style};
use super::quantity::{bytes, count, percent, span, time};
use serde_json::{Map, Value};

/// Maximum rows of a table on the screen.
const MAX_ROWS: usize = 8;

/// Maximum width of a key, an address or another text in characters.
const MAX_TEXT_LEN: usize = 40;

/// The report of a server, as its admin endpoint sends it. Empty if the server has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Report(Map<String, Value>);

/// A table of the screen: its name in the report, its heading, and its columns.
struct Table {
    name: &'static str,
    title: &'static str,
    columns: &'static [Column],
}

/// A column: its heading, its width (negative to the left), and the text of a row.
struct Column(&'static str, isize, fn(&Value) -> String);

const TABLES: [Table; 7] = [
    Table {
        name: "hot_keys",
        title: "hot keys (share of requests, from a sample)",
        columns: &[
            Column("key", -42, |row| text(&row["key"])),
            Column("share", 10, |row| percent(number(&row["share"]))),
            Column("error", 10, |row| format!("±{}", percent(number(&row["error"])))),
        ],
    },
    Table {
        name: "big_keys",
        title: "big keys (longest items in memory)",
        columns: &[
            Column("key", -42, |row| text(&row["key"])),
            Column("size", 10, |row| bytes(number(&row["bytes"]))),
        ],
    },
    Table {
        name: "slow",
        title: "slow commands (newest first)",
        columns: &[
            Column("command", -18, |row| text(&row["command"])),
            Column("time", 9, |row| time(row["seconds"].as_f64())),
            Column("  arguments", -44, |row| format!("  {}", text(&row["arguments"]))),
            Column("client", -24, |row| text(&row["client"])),
        ],
    },
    Table {
        name: "clients",
        title: "clients (most memory first)",
        columns: &[
            Column("address", -24, |row| text(&row["client"])),
            Column("name", -20, |row| text(&row["name"])),
            Column("command", -16, |row| text(&row["command"])),
            Column("memory", 10, |row| bytes(number(&row["bytes"]))),
            Column("age", 14, |row| span(number(&row["age_seconds"]))),
            Column("idle", 14, |row| span(number(&row["idle_seconds"]))),
        ],
    },
    Table {
        name: "snapshots",
        title: "snapshots",
        columns: &[
            Column("name", -24, |row| text(&row["name"])),
            Column("entries", 16, |row| count(number(&row["entries"]))),
            Column("size", 12, |row| bytes(number(&row["bytes"]))),
            Column("age", 14, |row| span(number(&row["age_seconds"]))),
            Column("  problem", -30, |row| format!("  {}", text(&row["error"]))),
        ],
    },
    Table {
        name: "cluster",
        title: "nodes of the cluster (this one first)",
        columns: &[
            Column("node", -10, |row| text(&row["id"]).chars().take(8).collect()),
            Column("address", -24, |row| text(&row["address"])),
            Column("state", -10, |row| text(&row["state"])),
            Column("slots", 8, |row| count(number(&row["slots"]))),
            Column("share", 9, |row| percent(number(&row["share"]))),
            Column("  ", -22, |row| format!("  {}", share_bar(number(&row["share"])))),
            Column("out", 8, |row| count(number(&row["moving_out"]))),
            Column("in", 8, |row| count(number(&row["moving_in"]))),
        ],
    },
    Table {
        name: "store_tables",
        title: "tables of the store",
        columns: &[
            Column("table", -42, |row| text(&row["table"])),
            Column("rows", 16, |row| count(number(&row["rows"]))),
            Column("size", 12, |row| bytes(number(&row["bytes"]))),
        ],
    },
];

impl Report {
    /// Parses the text of `/live.json`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match serde_json::from_str(text) {
            Ok(Value::Object(report)) => Ok(Self(report)),
            Ok(_) => Err("GET /live.json: expected an object, found another value".to_owned()),
            Err(error) => Err(format!("GET /live.json: expected JSON, found none: {error}")),
        }
    }

    /// Returns the tables of the report as JSON.
    pub(super) fn json(&self) -> Value {
        self.0.get("tables").cloned().unwrap_or_default()
    }

    /// Returns the lines of all tables, those without rows included.
    pub(super) fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        let tables = self.0.get("tables");
        for table in &TABLES {
            let Some(rows) = tables.and_then(|all| all[table.name]["rows"].as_array()) else {
                continue;
            };
            lines.push(Line { text: String::new(), style: Style::Plain });
            lines.push(Line { text: table.title.to_owned(), style: Style::Head });
            if rows.is_empty() {
                lines.push(Line { text: "none".to_owned(), style: Style::Plain });
                continue;
            }
            lines.push(Line { text: table.row(|column| column.0.to_owned()), style: Style::Plain });
            let shown = rows.iter().take(MAX_ROWS);
            lines.extend(
                shown.map(|row| Line {
                    text: table.row(|column| column.2(row)),
                    style: Style::Plain,
                }),
            );
        }
        if lines.is_empty() {
            let text = "the server reports no keys, slow commands or clients".to_owned();
            lines.push(Line { text, style: Style::Plain });
        } else if self.0.get("private_values").is_some_and(|values| values == "hidden") {
            let text = "private values are hidden: --token-file FILE shows them".to_owned();
            lines.extend([String::new(), text].map(|text| Line { text, style: Style::Plain }));
        }
        lines
    }
}

impl Table {
    /// Returns a row with this text in each column.
    fn row(&self, text: impl Fn(&Column) -> String) -> String {
        let cells = self.columns.iter().map(|column| {
            let (cell, width) = (text(column), column.1.unsigned_abs());
            if column.1 < 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<String>().trim_end().to_owned()
    }
}

/// Returns a bar of 20 characters.
fn share_bar(share: f64) -> String {
    #[expect(clippy::cast_sign_loss, reason = "clamped")]
    let filled = (share.clamp(0.0, 1.0) * 20.0).round() as usize;
    format!("{}{}", "#".repeat(filled), ".".repeat(20 - filled))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

/// Returns a text or a private value, shortened and without control characters.
fn text(value: &Value) -> String {
    let text = match (value["hidden"].as_str(), value["text"].as_str().or(value.as_str())) {
        (Some(hidden), _) => format!("#{hidden}, {} bytes", number(&value["bytes"])),
        (None, text) => text.unwrap_or_default().to_owned(),
    };
    let mut shown: String = text
        .chars()
        .take(MAX_TEXT_LEN)
        .map(|character| if character.is_control() { '?' } else { character })
        .collect();
    if text.chars().count() > MAX_TEXT_LEN {
        shown.pop();
        shown.push('\u{2026}');
    }
    shown
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a report with one row in two tables.
    pub(in crate::commands::top) fn report() -> Report {
        let text = r#"{"server":"cache server","private_values":"hidden","tables":{
            "hot_keys":{"rows":[{"key":{"hidden":"0a1b2c3d","bytes":6},"share":0.25,"error":0.01}]},
            "slow":{"rows":[{"command":"get","seconds":0.0125,"arguments":{"text":"a\u001bb"},
                "client":{"text":"127.0.0.1:5"}}]},
            "clients":{"rows":[]}}}"#;
        Report::parse(text).expect("a report")
    }

    #[test]
    fn tables_have_lines_and_hidden_values_their_hash() {
        let lines: Vec<_> = report().lines().into_iter().map(|line| line.text).collect();
        let expected = [
            "",
            "hot keys (share of requests, from a sample)",
            "key                                            share     error",
            "#0a1b2c3d, 6 bytes                            25.0 %    ±1.0 %",
            "",
            "slow commands (newest first)",
            "command                time  arguments                                client",
        ];
        assert_eq!(lines[..6], expected[..6]);
        assert!(lines[7].contains("a?b") && lines[7].ends_with("127.0.0.1:5"), "{lines:?}");
        assert_eq!(lines[9..11], ["clients (most memory first)", "none"]);
        assert!(lines[12].contains("--token-file"), "{lines:?}");
    }

    #[test]
    fn nodes_of_a_cluster_have_bars() {
        let text = r#"{"tables":{"cluster":{"rows":[{"id":"0a1b2c3d4e","address":{"text":"a:1"},
            "state":"draining","slots":4096,"share":0.25,"moving_out":64,"moving_in":0}]}}}"#;
        let lines = Report::parse(text).expect("a report").lines();
        let row = &lines[3].text;
        assert!(row.starts_with("0a1b2c3d  a:1 ") && row.contains("draining "), "{row}");
        assert!(
            row.contains("25.0 %  #####...............  ") && row.ends_with("64       0"),
            "{row}"
        );
    }

    #[test]
    fn a_server_without_a_report_has_one_line() {
        assert_eq!(Report::default().lines().len(), 1);
        assert!(Report::parse("[]").is_err() && Report::parse("<html>").is_err());
    }

    #[test]
    fn long_texts_are_shortened() {
        let long = Value::from("k".repeat(100));
        assert_eq!(text(&long).chars().count(), MAX_TEXT_LEN);
        assert!(text(&long).ends_with('\u{2026}'));
    }
}
