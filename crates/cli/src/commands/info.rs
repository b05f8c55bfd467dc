//! `nuthatch info`: prints statistics of a snapshot.

use crate::outcome::{Failure, Outcome};
use crate::terminal::{Stdout, quote_key};
use clap::Args;
use nuthatch_cli::output::{json_string, json_value};
use nuthatch_snapshot::{Metadata, Snapshot, Stats, Value, ValueType};
use nuthatch_units::{bytes, grouped};
use std::fmt::Write;
use std::path::PathBuf;

const NOTES: &str = "\
Examples:
  nuthatch info users.nut
  nuthatch info users.nut --json | jq .entries

Exit status:
  0  success
  2  invalid command line
  3  the file or a shard of the set is missing, not a snapshot, or its header, dictionary or
     metadata is damaged";

/// Print statistics of a snapshot: entries, types, sizes, index, metadata
///
/// Reads only the header, the dictionary and the metadata, so it takes the same time for a file of
/// any size. For a set, sizes and counts are sums over the shards, without the manifest.
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Info {
    /// Snapshot file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Info {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        let snapshot = Snapshot::open(&self.file)?;
        let (stats, metadata) = (snapshot.stats(), snapshot.metadata()?);
        let text =
            if self.json { self.json(&stats, &metadata) } else { self.text(&stats, &metadata) };
        let mut stdout = Stdout::new();
        stdout.write(text.as_bytes())?;
        stdout.flush()?;
        Ok(Outcome::Success)
    }

    fn text(&self, stats: &Stats, metadata: &Metadata<'_>) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<18}{value}");
        };
        let count = |number: u64| format!("{} bytes", grouped(number));
        line("file", &self.file.display().to_string());
        line("format", &version(stats));
        if stats.shards > 0 {
            line("shards", &grouped(u64::from(stats.shards)));
        }
        line("size", &format!("{} ({})", bytes(stats.file_len), count(stats.file_len)));
        line("entries", &grouped(stats.entries));
        for (value_type, entries) in types(stats) {
            line(&format!("  {value_type}"), &grouped(entries));
        }
        line("keys", &count(stats.key_bytes));
        line("values", &count(stats.value_bytes));
        line("  stored as", &count(stats.stored_value_bytes));
        line("  shared", &format!("{} entries", grouped(stats.shared_entries)));
        line("  compressed", &format!("{} entries", grouped(stats.compressed_entries)));
        line("  dictionary", &count(stats.dictionary_bytes));
        line(
            "overhead",
            &format!(
                "{:.2} bytes per entry, beyond keys and stored values",
                stats.overhead_per_entry()
            ),
        );
        line("index", &count(stats.index_bytes));
        line("  partitions", &grouped(stats.partitions));
        line("  lines", &grouped(stats.lines));
        line("  load", &format!("{:.1} %", stats.load() * 100.0));
        line("  longest probe", &format!("{} lines", stats.max_probe));
        line("  seed", &stats.seed.to_string());
        if !metadata.is_empty() {
            line("metadata", &count(stats.metadata_bytes));
        }
        for (name, value) in metadata.iter() {
            line(&format!("  {}", quote_key(name.as_bytes())), &quote_key(value));
        }
        text
    }

    fn json(&self, stats: &Stats, metadata: &Metadata<'_>) -> String {
        let mut file = Vec::new();
        json_string(&self.file.to_string_lossy(), &mut file);
        let mut fields = vec![
            format!("\"file\":{}", String::from_utf8_lossy(&file)),
            format!("\"version\":\"{}\"", version(stats)),
        ];
        let types: Vec<_> =
            types(stats).map(|(name, entries)| format!("\"{name}\":{entries}")).collect();
        for (name, value) in [
            ("shards", u64::from(stats.shards)),
            ("file_bytes", stats.file_len),
            ("entries", stats.entries),
            ("key_bytes", stats.key_bytes),
            ("value_bytes", stats.value_bytes),
            ("stored_value_bytes", stats.stored_value_bytes),
            ("shared_entries", stats.shared_entries),
            ("compressed_entries", stats.compressed_entries),
            ("dictionary_bytes", stats.dictionary_bytes),
            ("metadata_bytes", stats.metadata_bytes),
            ("index_bytes", stats.index_bytes),
            ("data_bytes", stats.data_bytes),
            ("partitions", stats.partitions),
            ("lines", stats.lines),
            ("max_probe", u64::from(stats.max_probe)),
            ("seed", stats.seed),
        ] {
            fields.push(format!("\"{name}\":{value}"));
        }
        fields.push(format!("\"load\":{:.4}", stats.load()));
        fields.push(format!("\"overhead_bytes_per_entry\":{:.3}", stats.overhead_per_entry()));
        fields.push(format!("\"entries_by_type\":{{{}}}", types.join(",")));
        fields.push(format!("\"metadata\":{}", json_metadata(metadata)));
        format!("{{{}}}\n", fields.join(","))
    }
}

/// Returns the metadata as a JSON object. A value that is not UTF-8 is bytes in base64.
fn json_metadata(metadata: &Metadata<'_>) -> String {
    let mut json = b"{".to_vec();
    for (number, (name, value)) in metadata.iter().enumerate() {
        json.extend_from_slice(if number == 0 { b"" } else { b"," });
        json_string(name, &mut json);
        json.push(b':');
        let text = std::str::from_utf8(value).map(Value::String);
        json_value(&text.unwrap_or(Value::Bytes(value)), &mut json);
    }
    json.push(b'}');
    String::from_utf8_lossy(&json).into_owned()
}

fn version(stats: &Stats) -> String {
    format!("{}.{}", stats.version.0, stats.version.1)
}

/// Returns the types that occur, with their number of entries.
fn types(stats: &Stats) -> impl Iterator<Item = (ValueType, u64)> {
    let counted = ValueType::ALL.map(|value_type| (value_type, stats.entries_of(value_type)));
    counted.into_iter().filter(|(_, entries)| *entries > 0)
}
