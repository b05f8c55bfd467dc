//! Keys in messages.

use nuthatch_cli::output::tsv_escape;

/// A key as messages show it.
pub(crate) fn shown(key: &[u8]) -> String {
    let mut text = Vec::new();
    tsv_escape(key, &mut text);
    format!("\"{}\"", String::from_utf8_lossy(&text))
}
