//! The values of the settings for compression.

/// The words that `compress-dict` can have in place of a file.
pub(crate) const DICTIONARY_WORDS: &[&str] = &["auto", "off"];

/// The level of `zstd` without a level.
const DEFAULT_LEVEL: i32 = 3;
/// The maximum level. Higher ones need much memory for each thread.
const MAX_LEVEL: i32 = 19;

/// Checks a value of `compress`.
///
/// # Errors
///
/// Returns what was expected and what was found.
pub(crate) fn check(text: &str) -> Result<(), String> {
    level(text).map(drop)
}

/// Returns the level of a value of `compress`; `None` if compression is off.
///
/// # Errors
///
/// Returns what was expected and what was found.
pub(crate) fn level(text: &str) -> Result<Option<i32>, String> {
    if text == "off" {
        return Ok(None);
    }
    let level = match text.strip_prefix("zstd") {
        Some("") => Some(DEFAULT_LEVEL),
        Some(level) => level.strip_prefix(':').and_then(|level| level.parse().ok()),
        None => None,
    };
    match level {
        Some(level @ 1..=MAX_LEVEL) => Ok(Some(level)),
        _ => Err(format!(
            "expected off, zstd or zstd:LEVEL with a level from 1 to {MAX_LEVEL}, found {text:?}; \
             try zstd:3"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codec_has_an_optional_level() {
        assert_eq!(level("off"), Ok(None));
        assert_eq!(level("zstd"), Ok(Some(3)));
        assert_eq!(level("zstd:19"), Ok(Some(19)));
        for text in ["", "lz4", "zstd:", "zstd:0", "zstd:20", "zstd:-1", "zstd3", "zstd:3 "] {
            let error = level(text).expect_err(text);
            assert!(error.contains(&format!("from 1 to 19, found {text:?}")), "{error}");
        }
    }
}
