//! Seals an item file: writes its directory and its footer, and frees the rest.

use crate::checksum::Checksum;
use crate::contents::Contents;
use crate::directory::{padded_len, sealed_len};
use crate::error::Result;
use crate::footer::Footer;
use crate::items::ItemFile;
use crate::layout::BLOCK;
use crate::shared::Shared;

/// Seals an item file with batches up to `data_end`, and waits until it is durable. `buffer` is
/// overwritten; its length is a multiple of the block.
///
/// # Errors
///
/// Returns the error of the system. The batches stay readable then, and the call can be repeated.
pub(crate) fn seal(
    shared: &Shared,
    items: &ItemFile,
    contents: &Contents,
    data_end: u64,
    sealed_ms: u64,
    buffer: &mut [u8],
) -> Result<()> {
    let records = contents.records();
    let file_len = sealed_len(data_end, records);
    let directory_check = write_directory(shared, items, contents, data_end, buffer)?;
    let footer = Footer {
        number: items.number,
        file_len,
        directory: data_end,
        records,
        batches: contents.batches,
        live_bytes: contents.live_bytes,
        last_expiry_ms: contents.last_expiry_ms,
        sealed_ms,
        directory_check,
    };
    let block = &mut buffer[..BLOCK];
    footer.encode(block, items.salt);
    shared.write(items, block, file_len - BLOCK as u64)?;
    let (disk, name) = (shared.disk(), &items.name);
    let cut = disk.set_len(&items.file, name, file_len);
    cut.map_err(|e| shared.folder.error("truncate", name, e))?;
    disk.sync(&items.file, name).map_err(|e| shared.folder.error("sync", name, e))?;
    items.set_len(file_len);
    let _ = items.footer.set(footer);
    Ok(())
}

/// Writes the directory in pieces. Returns its checksum.
fn write_directory(
    shared: &Shared,
    items: &ItemFile,
    contents: &Contents,
    data_end: u64,
    buffer: &mut [u8],
) -> Result<u64> {
    let mut sum = Checksum::new(items.salt);
    let mut offset = data_end;
    for piece in contents.entries.chunks(buffer.len()) {
        let padded = &mut buffer[..piece.len().next_multiple_of(BLOCK)];
        padded[..piece.len()].copy_from_slice(piece);
        padded[piece.len()..].fill(0);
        sum.add(padded);
        shared.write(items, padded, offset)?;
        offset += padded.len() as u64;
    }
    debug_assert_eq!(offset, data_end + padded_len(contents.records()), "the directory's length");
    Ok(sum.finish())
}
