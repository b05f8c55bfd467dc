//! The folder in `testdata/tier`. With `NUTHATCH_BLESS=1`, the test writes it again, with other
//! salts.

use crate::{Case, NOW_MS, item_files, small};
use nuthatch_tier::{Kind, Options, Record, Tier, verify};
use std::fmt::Write;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64_with_seed;

const SEED: u64 = 0x6e75_7468_6174_6368;

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tier")
}

/// Returns the records of the first file, which is sealed.
fn records() -> Vec<Record<'static>> {
    let mut records = vec![
        Record { key: b"plain", value: b"value", ..Record::default() },
        Record { key: b"", value: b"", ..Record::default() },
        Record {
            key: b"all fields",
            value: &[0xAB; 40],
            kind: Kind::new(3).expect("a kind"),
            database: 9,
            frequency: 3,
            expires_ms: Some(NOW_MS + 60_500),
            cas: Some(7),
            client_flags: Some(0xFF),
            is_compressed: true,
            ..Record::default()
        },
        Record { key: b"expired", value: b"x", expires_ms: Some(1), ..Record::default() },
        Record { key: b"long", value: &[0xCD; 5000], frequency: 1, ..Record::default() },
    ];
    for record in &mut records {
        record.hash = xxh3_64_with_seed(record.key, SEED);
    }
    records
}

fn second_file() -> Record<'static> {
    let record = Record { key: b"plain", value: b"a newer value", ..Record::default() };
    Record { hash: xxh3_64_with_seed(record.key, SEED), ..record }
}

fn options() -> Options {
    Options { hash_seed: Some(SEED), ..small() }
}

fn write(folder: &Path) {
    let (mut tier, _) = Tier::open(folder, &options()).expect("a tier");
    for (number, record) in records().iter().enumerate() {
        tier.append(record).expect("appended");
        if number == 2 {
            tier.flush().expect("flushed");
        }
    }
    tier.seal().expect("sealed");
    tier.append(&second_file()).expect("appended");
    tier.flush().expect("flushed");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn line(number: u64, record: &Record<'_>) -> String {
    let or_empty = |word: Option<u64>| word.map_or(String::new(), |word| word.to_string());
    format!(
        "{number},{},{},{:016x},{},{},{},{},{},{},{}",
        hex(record.key),
        hex(record.value),
        record.hash,
        record.kind.number(),
        record.database,
        record.frequency,
        or_empty(record.expires_ms),
        or_empty(record.cas),
        or_empty(record.client_flags.map(u64::from)),
        u8::from(record.is_compressed),
    )
}

const HEADER: &str = "file,key,value,hash,kind,database,frequency,expires_ms,cas,client_flags,\
    is_compressed";

/// Copies the folder of version 1.
pub(crate) fn copy(to: &Path) {
    fs::create_dir(to).expect("a folder");
    for entry in fs::read_dir(testdata().join("v1")).expect("the folder") {
        let path = entry.expect("an entry").path();
        fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("a copy");
    }
}

#[test]
fn the_folder_of_version_1_has_the_items_of_its_table() {
    if std::env::var_os("NUTHATCH_BLESS").is_some() {
        let folder = testdata().join("v1");
        let _ = fs::remove_dir_all(&folder);
        write(&folder);
        fs::remove_file(folder.join("lock")).expect("a lock file");
        let first = records().into_iter().map(|record| line(1, &record));
        let lines: Vec<_> = first.chain([line(2, &second_file())]).collect();
        let table = format!("{HEADER}\n{}\n", lines.join("\n"));
        fs::write(testdata().join("items.csv"), table).expect("a table");
    }
    let case = Case::new();
    copy(&case.path());
    let (tier, recovery) = Tier::open(case.path(), &options()).expect("a tier");
    assert_eq!(tier.hash_seed(), SEED);
    assert_eq!((recovery.records, recovery.unsealed_files, recovery.damage.len()), (6, 1, 0));
    let reader = tier.reader();
    let mut lines = vec![HEADER.to_owned()];
    for number in reader.numbers() {
        reader.records(number, |_, record| {
            lines.push(line(number, record));
            ControlFlow::Continue(())
        });
    }
    let table = fs::read_to_string(testdata().join("items.csv")).expect("a table");
    assert_eq!(lines, table.lines().collect::<Vec<_>>());
}

/// Each line of `damage.csv` has a file, the offset of a byte whose lowest bit is flipped, and
/// where and how the damage is reported.
#[test]
fn damage_is_reported_as_in_its_table() {
    let table = fs::read_to_string(testdata().join("damage.csv")).expect("a table");
    let mut count = 0;
    for line in table.lines().skip(1) {
        let [file, offset, reported_at, reason] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let case = Case::new();
        copy(&case.path());
        let index = usize::from(file == "items-0000000002.log");
        let path = &item_files(&case.path())[index];
        let file = fs::OpenOptions::new().read(true).write(true).open(path).expect("a file");
        let (mut byte, offset) = ([0], offset.parse().expect("an offset"));
        file.read_exact_at(&mut byte, offset).expect("a byte");
        file.write_all_at(&[byte[0] ^ 1], offset).expect("a byte");
        let verified = verify(case.path(), |_, _| ()).expect("verified");
        let found = verified.damage.first().or(verified.incomplete_batch.as_ref());
        let found = found.unwrap_or_else(|| panic!("{line}: nothing is reported"));
        assert_eq!(found.offset.to_string(), reported_at, "{line}");
        assert_eq!(found.reason.replace(',', ";"), reason, "{line}");
        count += 1;
    }
    assert!(count > 8);
}
