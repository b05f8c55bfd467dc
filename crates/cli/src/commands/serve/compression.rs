//! Compression of the values of the cache.

use crate::outcome::Failure;
use crate::settings::{LoadedSettings, PathOrWord, compression_level};
use nuthatch_compress::read_dictionary;
use nuthatch_server::{Compression, CompressionOptions, DictionarySource};
use nuthatch_units::bytes;
use std::sync::Arc;

/// Returns the compression of all values; `None` if it is off.
pub(super) fn compression(loaded: &LoadedSettings) -> Result<Option<Arc<Compression>>, Failure> {
    let settings = &loaded.settings;
    let level = compression_level(&settings.compress);
    let Some(level) = level.map_err(|problem| loaded.invalid("compress", problem))? else {
        return Ok(None);
    };
    let invalid = |problem: String| loaded.invalid("compress-dict", problem);
    let source = match &settings.compress_dict {
        PathOrWord::Word("off") => DictionarySource::Off,
        PathOrWord::Word(_) => {
            let (found, min) = (settings.memory, Compression::MIN_MEMORY_TO_TRAIN);
            if found < min {
                let (found, min) = (bytes(found), bytes(min));
                return Err(invalid(format!(
                    "training dictionaries: expected a memory budget of at least {min}, found \
                     {found}; set memory, or compress-dict to off"
                )));
            }
            DictionarySource::Auto
        }
        PathOrWord::Path(path) => {
            let read = read_dictionary(path).map_err(|error| invalid(error.to_string()))?;
            DictionarySource::Fixed(read)
        }
    };
    let options = CompressionOptions::default().level(level).dictionaries(source);
    let options = options.min_len(settings.compress_min as usize);
    let compression = Compression::new(&options, settings.memory);
    Ok(Some(Arc::new(compression.map_err(|error| invalid(error.to_string()))?)))
}
