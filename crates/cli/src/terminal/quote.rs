//! Keys in messages.

use nuthatch_cli::output::tsv_escape;

/// Returns a key in quotes, with control characters escaped.
pub(crate) fn quote_key(key: &[u8]) -> String {
    let mut text = Vec::new();
    tsv_escape(key, &mut text);
    format!("\"{}\"", String::from_utf8_lossy(&text))
}
