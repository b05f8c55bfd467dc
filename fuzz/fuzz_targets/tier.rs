//! Opens a folder of item files that are damaged or forged, with correct checksums. Nothing panics
//! or allocates without limit, records that were not forged are those that were written, and the
//! folder remains usable.
#![no_main]

use libfuzzer_sys::{arbitrary, arbitrary::Arbitrary, fuzz_target};
use nuthatch_tier::{
    AlignedBuffer, Error, FolderState, Options, Place, Record, RecordId, Tier, stat, verify,
};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::LazyLock;
use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const BLOCK: usize = 4096;
const NAMES: [&str; 4] =
    ["tier", "items-0000000001.log", "items-0000000002.log", "removed-0000000001.log"];

/// The first record of the first file.
const REMOVED: RecordId = RecordId { file: 1, unit: (BLOCK as u32 + 64) / 16 };

/// A modification of a file, which is selected by its number.
#[derive(Debug, Arbitrary)]
enum Patch {
    Byte {
        file: u8,
        at: u16,
        value: u8,
    },
    Word {
        file: u8,
        at: u16,
        value: u64,
    },
    Cut {
        file: u8,
        at: u16,
    },
    /// Overwrites a field of the first block of a file, and corrects its checksum.
    Header {
        file: u8,
        at: u8,
        value: u64,
    },
    /// Overwrites a field of the header of the first batch, and corrects its checksum.
    Batch {
        file: u8,
        at: u8,
        value: u32,
    },
    /// Overwrites a field of the first record, and corrects the checksums of record and batch.
    Record {
        file: u8,
        at: u8,
        value: u32,
    },
    /// Overwrites a field of the last block of a file, and corrects its checksum.
    Footer {
        file: u8,
        at: u8,
        value: u64,
    },
    /// Overwrites an entry of the first file, and corrects the checksums of directory and footer.
    Directory {
        at: u8,
        value: u32,
    },
}

fn options() -> Options {
    Options {
        file_len: 64 << 10,
        batch_len: 4 << 10,
        direct_io: false,
        hash_seed: Some(1),
        ..Options::new(1 << 20)
    }
}

fn value(number: u8) -> Vec<u8> {
    vec![number; usize::from(number) * 40]
}

fn append(tier: &mut Tier, numbers: std::ops::Range<u8>) -> Result<(), Error> {
    for number in numbers {
        let value = value(number);
        let record =
            Record { key: &[number], value: &value, hash: number.into(), ..Record::default() };
        tier.append(&record)?;
    }
    tier.flush()
}

/// The files of a folder: one is sealed, one is not, and one is the removal log.
static WHOLE: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder");
    let (mut tier, _) = Tier::open(folder.path(), &options()).expect("a tier");
    append(&mut tier, 1..40).expect("appended");
    tier.seal().expect("sealed");
    append(&mut tier, 40..50).expect("appended");
    let removals = tier.removals().expect("a log");
    removals.append(&[REMOVED]).expect("removed");
    drop(tier);
    NAMES.map(|name| fs::read(folder.path().join(name)).expect("a file")).to_vec()
});

fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
    word.map_or(0, u64::from_le_bytes)
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

/// Stores the checksum of the bytes from `from` to `to` at an offset.
fn mend(bytes: &mut [u8], at: usize, from: usize, to: usize, seed: u64) {
    if let Some(summed) = bytes.get(from..to) {
        let check = xxh3_64_with_seed(summed, seed);
        put(bytes, at, &check.to_le_bytes());
    }
}

/// Corrects the checksums of the first batch.
fn mend_batch(bytes: &mut [u8], salt: u64) {
    let len = word(bytes, BLOCK + 24) as u32 as usize;
    let seed = salt ^ BLOCK as u64;
    mend(bytes, BLOCK + 40, BLOCK + 64, BLOCK.saturating_add(len), seed);
    mend(bytes, BLOCK + 56, BLOCK, BLOCK + 56, seed);
}

/// Returns the end of the first record, according to its lengths.
fn record_end(bytes: &[u8], at: usize) -> usize {
    let value_len = word(bytes, at + 16) as usize & ((1 << 30) - 1);
    let lengths = word(bytes, at + 20);
    let (key_len, kind) = (lengths as usize & 0xFFFF, lengths as usize >> 16);
    let fields = (kind >> 4 & 1) * 8 + (kind >> 5 & 1) * 8 + (kind >> 6 & 1) * 4;
    at + 24 + fields + key_len + value_len
}

fn apply(files: &mut [Vec<u8>], patch: &Patch) {
    let file_of = |file: &u8| usize::from(*file) % NAMES.len();
    match patch {
        Patch::Byte { file, at, value } => put(&mut files[file_of(file)], (*at).into(), &[*value]),
        Patch::Word { file, at, value } => {
            put(&mut files[file_of(file)], (*at).into(), &value.to_le_bytes());
        }
        Patch::Cut { file, at } => files[file_of(file)].truncate((*at).into()),
        Patch::Header { file, at, value } => {
            let bytes = &mut files[file_of(file)];
            put(bytes, (*at).into(), &value.to_le_bytes());
            mend(bytes, BLOCK - 8, 0, BLOCK - 8, 0);
        }
        Patch::Batch { file, at, value } => {
            let bytes = &mut files[1 + usize::from(file % 2)];
            let salt = word(bytes, 24);
            put(bytes, BLOCK + usize::from(at % 64), &value.to_le_bytes());
            mend_batch(bytes, salt);
        }
        Patch::Record { file, at, value } => {
            let bytes = &mut files[1 + usize::from(file % 2)];
            let (salt, record) = (word(bytes, 24), BLOCK + 64);
            put(bytes, record + usize::from(*at), &value.to_le_bytes());
            let end = record_end(bytes, record);
            mend(bytes, record, record + 8, end, salt ^ record as u64);
            mend_batch(bytes, salt);
        }
        Patch::Footer { file, at, value } => {
            let bytes = &mut files[1 + usize::from(file % 2)];
            let (salt, footer) = (word(bytes, 24), bytes.len().saturating_sub(BLOCK));
            put(bytes, footer + usize::from(*at), &value.to_le_bytes());
            mend(bytes, footer + BLOCK - 8, footer, footer + BLOCK - 8, salt);
        }
        Patch::Directory { at, value } => {
            let bytes = &mut files[1];
            let (salt, footer) = (word(bytes, 24), bytes.len().saturating_sub(BLOCK));
            let directory = word(bytes, footer + 32) as usize;
            put(bytes, directory.saturating_add((*at).into()), &value.to_le_bytes());
            mend(bytes, footer + 80, directory, footer, salt);
            mend(bytes, footer + BLOCK - 8, footer, footer + BLOCK - 8, salt);
        }
    }
}

fn look(folder: &Path, is_forged: bool) {
    let _ = stat(folder, 0);
    let _ = verify(folder, |_, _| ());
    let (mut tier, _) = match Tier::open(folder, &options()) {
        Ok(opened) => opened,
        Err(Error::Manifest { .. } | Error::Version { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    let (reader, mut buffer) = (tier.reader(), AlignedBuffer::new(0));
    let check = |record: &Record<'_>| {
        let [number] = record.key else { panic!("another key: {:?}", record.key) };
        assert_eq!(record.value, value(*number));
    };
    reader.all_records(|_, record| {
        if !is_forged {
            check(record);
        }
        ControlFlow::Continue(())
    });
    for number in reader.numbers() {
        let Some((directory, _)) = reader.directory(number) else { continue };
        for entry in directory.iter().rev() {
            for blocks in [entry.place.blocks, 0] {
                let place = Place { blocks, ..entry.place };
                let read = reader.read(place, &[entry.hash as u8], &mut buffer);
                if let (Ok(record), false) = (read, is_forged) {
                    check(&record);
                }
            }
        }
    }
    append(&mut tier, 60..70).expect("a usable folder");
    tier.close().expect("closed");
    let (_, recovery) = Tier::open(folder, &options()).expect("a tier");
    assert!(matches!(
        recovery.state,
        FolderState::Closed | FolderState::LostPower | FolderState::Outdated
    ));
}

fuzz_target!(|patches: Vec<Patch>| {
    let mut files = WHOLE.clone();
    patches.iter().take(20).for_each(|patch| apply(&mut files, patch));
    let is_forged = patches.iter().any(|patch| {
        matches!(patch, Patch::Record { .. } | Patch::Batch { .. } | Patch::Directory { .. })
    });
    let folder = TempDir::new().expect("a folder");
    for (name, bytes) in NAMES.iter().zip(&files) {
        fs::write(folder.path().join(name), bytes).expect("a file");
    }
    look(folder.path(), is_forged);
});
