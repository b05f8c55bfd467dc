//! Compression of the values of the cache.

use super::disk;
use crate::outcome::Failure;
use crate::settings::{LoadedSettings, PathOrWord, compression_level};
use nuthatch_compress::{Error, read_dictionary};
use nuthatch_server::{Compression, CompressionOptions, DictionarySource};
use nuthatch_tiered::has_item_files;
use nuthatch_units::bytes;
use std::sync::Arc;

/// The folder of the dictionaries that items on disk need, in that of `data-dir`.
const FOLDER: &str = "dictionaries";

/// Returns the compression of values. Without a disk tier, `None` if it is off; otherwise values on
/// disk can be read in any case.
pub(super) fn compression(loaded: &LoadedSettings) -> Result<Option<Arc<Compression>>, Failure> {
    let settings = &loaded.settings;
    let options = options(loaded)?;
    let created = match (settings.data_dir.as_ref().filter(|_| settings.disk > 0), options) {
        (Some(data_dir), options) => {
            let items = data_dir.join(disk::FOLDER);
            let has_items = has_item_files(&items).map_err(|error| {
                let (disk, items) = (loaded.source("disk").named(), items.display());
                Failure::Error(format!("{disk}: {items}: the folder cannot be listed: {error}"))
            })?;
            let folder = data_dir.join(FOLDER);
            let folder = (folder.as_path(), has_items);
            Compression::with_folder(options.as_ref(), settings.memory, folder)
        }
        (None, Some(options)) => Compression::new(&options, settings.memory),
        (None, None) => return Ok(None),
    };
    match created {
        Ok(compression) => Ok(Some(Arc::new(compression))),
        Err(error @ Error::File { .. }) => {
            Err(Failure::Error(format!("{}: {error}", loaded.source("disk").named())))
        }
        Err(error) => Err(loaded.invalid("compress-dict", error.to_string())),
    }
}

/// Returns how values are compressed; `None` if compression is off.
fn options(loaded: &LoadedSettings) -> Result<Option<CompressionOptions>, Failure> {
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
    Ok(Some(options.min_len(settings.compress_min as usize)))
}
