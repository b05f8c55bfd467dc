//! The names of the folders of generations.

use crate::manifest::Generation;

/// Digits of the hash in a name.
const HASH_DIGITS: usize = 16;

/// Returns the name of the folder of a generation. The hash tells apart generations with the same
/// number, of a destination that was created again.
pub(super) fn folder_name(generation: &Generation) -> String {
    let hashes: Vec<_> = generation.files.iter().map(|file| file.blake3.as_str()).collect();
    let hash = blake3::hash(hashes.concat().as_bytes()).to_hex();
    format!("{}-{}", generation.id, &hash[..HASH_DIGITS])
}

/// Returns whether a name is that of the folder of a generation.
pub(super) fn is_folder_name(name: &str) -> bool {
    name.split_once('-')
        .is_some_and(|(id, hash)| id.parse::<u64>().is_ok() && hash.len() == HASH_DIGITS)
}
