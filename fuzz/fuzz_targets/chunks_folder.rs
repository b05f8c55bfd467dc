//! Opens a chunk cache with damaged or replaced files. Gets return only bytes that were put, and
//! the cache remains usable.
#![no_main]

use libfuzzer_sys::{arbitrary, arbitrary::Arbitrary, fuzz_target};
use nuthatch_chunks::{Check, Chunks, Lookup, Options};
use nuthatch_fuzz::chunks::{LIMIT, bytes, key};
use std::fs;
use std::sync::LazyLock;
use tempfile::TempDir;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

const OBJECTS: u8 = 6;
const CHUNKS: u64 = 4;

/// A modification of a file, which is selected by its number.
#[derive(Debug, Arbitrary)]
enum Patch {
    Byte {
        file: u8,
        at: u32,
        value: u8,
    },
    Word {
        file: u8,
        at: u16,
        value: u64,
    },
    Cut {
        file: u8,
        at: u32,
    },
    Whole {
        file: u8,
        bytes: Vec<u8>,
    },
    /// Overwrites a field in the head of a segment's first record, and corrects the checksum.
    Head {
        file: u8,
        at: u8,
        value: u16,
    },
    /// Overwrites a field in the header of a segment or of the index, and corrects the checksum.
    Header {
        file: u8,
        at: u8,
        value: u16,
    },
}

#[derive(Debug, Arbitrary)]
struct Input {
    patches: Vec<Patch>,
    /// Whether the files are modified while the cache is open.
    open: bool,
    check: u8,
}

/// The files of a cache with some objects.
static WHOLE: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder");
    let chunks = Chunks::open(folder.path(), &Options::new().limit(LIMIT)).expect("a cache");
    for object in 0..OBJECTS {
        for range in [0..1, 1..CHUNKS] {
            let (offsets, data) = bytes(object, range.clone(), 0);
            chunks.put(&key(object), range, &offsets, &data).expect("a put");
        }
    }
    chunks.pin(&key(1), true).expect("a pin");
    drop(chunks);
    let entries = fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("one"));
    let mut files: Vec<_> = entries
        .map(|entry| {
            let name = entry.file_name().into_string().expect("a name");
            (name, fs::read(entry.path()).expect("its bytes"))
        })
        .collect();
    files.sort();
    files
});

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

/// Applies a patch. Returns true if the patch corrects no checksum: then reads must not return
/// wrong bytes.
fn apply(files: &mut [(String, Vec<u8>)], patch: &Patch) -> bool {
    let (Patch::Byte { file, .. }
    | Patch::Word { file, .. }
    | Patch::Cut { file, .. }
    | Patch::Whole { file, .. }
    | Patch::Head { file, .. }
    | Patch::Header { file, .. }) = patch;
    let number = usize::from(*file) % files.len();
    let bytes = &mut files[number].1;
    let len = bytes.len().max(1);
    match patch {
        Patch::Byte { at, value, .. } => put(bytes, *at as usize % len, &[*value]),
        Patch::Word { at, value, .. } => {
            put(bytes, usize::from(*at) * 8 % len, &value.to_le_bytes());
        }
        Patch::Cut { at, .. } => bytes.truncate(*at as usize % len),
        Patch::Whole { bytes: other, .. } => bytes.clone_from(other),
        Patch::Head { at, value, .. } if bytes.len() > 256 => {
            // The record follows the segment header. It begins with magic, length and the checksum
            // of the rest.
            put(bytes, 80 + usize::from(*at) % 120, &value.to_le_bytes());
            let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8"));
            let (salt, end) = (word(24), 64 + (word(64) >> 32) as usize);
            if let Some(head) = bytes.get(80..end) {
                let check = xxh3_64_with_seed(head, salt ^ 64);
                put(bytes, 72, &check.to_le_bytes());
            }
            return false;
        }
        Patch::Header { at, value, .. } if bytes.len() > 64 => {
            let check_at = if bytes.starts_with(b"NUTSEGMT") { 56 } else { 24 };
            put(bytes, usize::from(*at) % check_at, &value.to_le_bytes());
            let check = xxh3_64(&bytes[..check_at]);
            put(bytes, check_at, &check.to_le_bytes());
            return false;
        }
        Patch::Head { .. } | Patch::Header { .. } => {}
    }
    true
}

fuzz_target!(|input: Input| {
    let mut files = WHOLE.clone();
    let honest = input.patches.iter().fold(true, |honest, patch| apply(&mut files, patch) & honest);
    let folder = TempDir::new().expect("a folder");
    let write = |files: &[(String, Vec<u8>)]| {
        for (name, bytes) in files {
            fs::write(folder.path().join(name), bytes).expect("a file");
        }
    };
    let before = if input.open { &*WHOLE } else { &files };
    write(before);
    // Only `Check::Always` detects damage that happens after an entry was verified.
    let check =
        if input.open || input.check.is_multiple_of(2) { Check::Always } else { Check::Once };
    let options = Options::new().limit(LIMIT).check(check);
    // An index with another version causes an error.
    let Ok(first) = Chunks::open(folder.path(), &options) else { return };
    if input.open {
        // Maps the segments, which are then modified.
        let read = |object| drop(first.view(&key(object), 0..CHUNKS));
        (0..OBJECTS).for_each(read);
        write(&files);
    }
    look(&first, honest, input.check);
    let Ok(other) = Chunks::open(folder.path(), &options) else { return };
    look(&other, honest, input.check);
});

/// Executes all reads, listings and writes.
fn look(chunks: &Chunks, honest: bool, kind: u8) {
    for object in 0..OBJECTS {
        for range in [0..1, 0..CHUNKS, 2..3] {
            let (offsets, expected) = bytes(object, range.clone(), 0);
            let mut out = vec![0; expected.len()];
            let found = chunks.get_into(&key(object), range.clone(), &mut out);
            if honest && let Ok(Lookup::Found(found)) = found {
                assert!(found == offsets && out == expected, "other bytes of {object} {range:?}");
            }
        }
        let _ = chunks.view(&key(object), 0..CHUNKS).expect("a view");
    }
    let _ = (chunks.list(), chunks.stat());
    let (offsets, data) = bytes(100, 0..CHUNKS, kind);
    if let Ok(stored) = chunks.put(&key(100), 0..CHUNKS, &offsets, &data)
        && stored.stored == CHUNKS
        && honest
    {
        let found = chunks.get(&key(100), 0..CHUNKS).expect("a get").found();
        assert!(found.is_none_or(|found| found.data == data), "other bytes than were put");
    }
    let _ = (chunks.verify(), chunks.prune(None), chunks.pin(&key(2), true), chunks.clear());
}
