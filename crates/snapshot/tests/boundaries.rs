//! Tests of records and values at large offsets, in sparse hand-made files: beyond 4 GiB, beyond
//! 1 TiB, and at the end of the largest files that the filesystem and the machine support.

mod craft;

use craft::{Craft, Line, Record, data_start};
use nuthatch_snapshot::layout::{SECTION_ALIGN, line, record};
use nuthatch_snapshot::{CowValue, Entry, Error, Snapshot, Value, ValueType};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

type AnyResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// An expected value.
enum Expected {
    Text(String),
    Number(i64),
    List(Vec<f32>),
}

impl Expected {
    fn value(&self) -> Value<'_> {
        match self {
            Self::Text(text) => Value::String(text),
            Self::Number(number) => Value::I64(*number),
            Self::List(list) => Value::F32List(list),
        }
    }
}

/// A file and its expected values.
struct Scene {
    craft: Craft,
    expected: HashMap<Vec<u8>, Expected>,
}

impl Scene {
    fn new(lines: usize) -> Self {
        Self { craft: Craft::new(lines), expected: HashMap::new() }
    }

    /// Adds a record to a line, at an offset that must be a multiple of the line's unit.
    fn put(&mut self, line: usize, at: u64, make: impl FnOnce(&[u8]) -> (Record, Expected)) {
        let slot = self.craft.lines[line].records.len();
        let key = self.craft.key(line, &format!("{line}.{slot}"));
        let Line { base, shift, records } = &mut self.craft.lines[line];
        let units = u16::try_from((at - *base) >> *shift).expect("a place the line reaches");
        assert_eq!(*base + (u64::from(units) << *shift), at, "a place at whole units");
        let (record, expected) = make(&key);
        records.push((units, record));
        self.expected.insert(key, expected);
    }

    fn text(&mut self, line: usize, at: u64) {
        let text = format!("text at {at:x}");
        self.put(line, at, |key| {
            (Record::short(key, ValueType::String.code(), text.as_bytes()), Expected::Text(text))
        });
    }

    fn number(&mut self, line: usize, at: u64) {
        let number = at.cast_signed();
        self.put(line, at, |key| {
            let value = [&padding(at, key, 8)[..], &number.to_le_bytes()].concat();
            (Record::long(key, ValueType::I64.code(), 8, &value), Expected::Number(number))
        });
    }

    /// Adds a record with a list. Returns the offset of the list, and the list.
    fn list(&mut self, line: usize, at: u64) -> (u64, Vec<f32>) {
        let list = vec![1.5, at as f32, -0.0];
        let mut list_at = 0;
        self.put(line, at, |key| {
            let padding = padding(at, key, 4);
            list_at = at + (record::LONG_HEAD + key.len() + padding.len()) as u64;
            let bytes = list.iter().flat_map(|number| number.to_le_bytes());
            let value: Vec<u8> = padding.into_iter().chain(bytes).collect();
            let record = Record::long(key, ValueType::F32List.code(), 12, &value);
            (record, Expected::List(list.clone()))
        });
        (list_at, list)
    }

    fn reference(&mut self, line: usize, at: u64, (list_at, list): &(u64, Vec<f32>)) {
        self.put(line, at, |key| {
            let tag = ValueType::F32List.code() | record::SHARED;
            let reference = &list_at.to_le_bytes()[..record::REFERENCE_LEN];
            (Record::long(key, tag, 12, reference), Expected::List(list.clone()))
        });
    }

    /// Checks that all lookups return the expected values, and that other keys of the lines are
    /// absent.
    fn check(&self, path: &Path) -> AnyResult {
        let snapshot = Snapshot::open(path)?;
        for (key, expected) in &self.expected {
            let value = Some(expected.value());
            assert_eq!(snapshot.get(key)?, value.map(CowValue::from), "{}", key.escape_ascii());
            assert_eq!(snapshot.value_type(key)?, value.map(|value| value.value_type()));
            match expected {
                Expected::Text(text) => {
                    assert_eq!(snapshot.get_string(key)?.as_deref(), Some(&text[..]));
                }
                Expected::Number(number) => assert_eq!(snapshot.get_i64(key)?, Some(*number)),
                Expected::List(list) => {
                    assert_eq!(snapshot.get_f32_list(key)?.as_deref(), Some(&list[..]));
                }
            }
        }
        let absent = (0..self.craft.lines.len()).map(|line| self.craft.key(line, "absent"));
        let keys: Vec<_> = self.expected.keys().cloned().chain(absent).collect();
        let mut found = vec![None; keys.len()];
        snapshot.get_many(&keys, &mut found)?;
        for (key, found) in keys.iter().zip(found) {
            let expected = self.expected.get(key).map(Expected::value);
            assert_eq!(found, expected.map(CowValue::from));
        }
        let mut seen = 0;
        for entry in &snapshot {
            let Entry { key, value } = entry?;
            assert_eq!(self.expected.get(key).map(Expected::value), value.in_place()?);
            seen += 1;
        }
        assert_eq!(seen, self.expected.len());
        Ok(())
    }
}

/// Returns the padding between a key and its aligned value.
fn padding(at: u64, key: &[u8], align: u64) -> Vec<u8> {
    let key_end = at + (record::LONG_HEAD + key.len()) as u64;
    vec![0; (key_end.next_multiple_of(align) - key_end) as usize]
}

/// Adds records at, around and across each of these offsets, in lines of small and of large units,
/// and references from the start of the data to each of them.
fn scene(data_len: u64, places: &[u64]) -> Scene {
    let mut scene = Scene::new(2 * places.len() + 2);
    let (references, span) = (2 * places.len(), 2 * places.len() + 1);
    for (i, &place) in places.iter().enumerate() {
        let (near, far) = (2 * i, 2 * i + 1);
        scene.craft.lines[near].base = place - 64;
        scene.text(near, place - 64);
        scene.text(near, place - 6);
        scene.number(near, place + 64);
        let list = scene.list(near, place + 128);
        scene.reference(references, 128 * i as u64, &list);
        scene.craft.lines[far] = Line { base: place + 256 - 3 * MIB, shift: 20, records: vec![] };
        scene.number(far, place + 256 - 3 * MIB);
        scene.number(far, place + 256);
    }
    let units = (data_len - 4096) >> line::MAX_SHIFT;
    let last = 4096 + (units.min(u64::from(u16::MAX)) << line::MAX_SHIFT);
    let largest = Line { base: 4096, shift: line::MAX_SHIFT, records: vec![] };
    scene.craft.lines[span] = largest;
    scene.number(span, 4096);
    scene.number(span, last);
    scene
}

/// Returns folders for large sparse files: the usual temporary folder, and one in memory.
fn folders() -> impl Iterator<Item = PathBuf> {
    let memory = PathBuf::from("/dev/shm");
    [std::env::temp_dir(), memory].into_iter().filter(|folder| folder.is_dir())
}

/// Builds a file with records at these offsets and at the end of its data, and checks it. Returns
/// `false` if the filesystem or the machine does not support a file of this length.
fn check(folder: &Path, file_len: u64, places: &[u64]) -> AnyResult<bool> {
    let directory = tempfile::tempdir_in(folder)?;
    let path = directory.path().join("sparse.nut");
    let lines = 2 * places.len() as u64 + 4;
    let data_len = (file_len - data_start(lines)) / SECTION_ALIGN * SECTION_ALIGN;
    let places: Vec<_> = places.iter().copied().chain([data_len - 1024]).collect();
    let scene = scene(data_len, &places);
    match scene.craft.write(&path, data_len) {
        Err(e) if matches!(e.kind(), ErrorKind::FileTooLarge | ErrorKind::InvalidInput) => {
            return Ok(false);
        }
        written => written?,
    }
    match Snapshot::open(&path) {
        // The address space is too small: a failed system call is the only permitted error.
        Err(Error::Io(error)) if error.operation == "map" => return Ok(false),
        opened => assert_eq!(opened?.stats().file_len, data_start(lines) + data_len),
    }
    scene.check(&path)?;
    Ok(true)
}

#[test]
fn records_beyond_4_gib() -> AnyResult {
    for folder in folders() {
        assert!(check(&folder, 6 * GIB, &[4 * GIB])?, "{}", folder.display());
    }
    Ok(())
}

#[test]
fn records_beyond_1_tib() -> AnyResult {
    let places = [4 * GIB, TIB];
    for folder in folders() {
        assert!(check(&folder, TIB + 6 * GIB, &places)?, "{}", folder.display());
    }
    Ok(())
}

/// ext4 supports files of less than 16 TiB; other filesystems support more.
#[test]
fn records_up_to_16_tib_and_beyond() -> AnyResult {
    let places = [4 * GIB, TIB, 15 * TIB];
    let mut most = 0;
    for folder in folders() {
        for file_len in [16 * TIB - 4096, 17 * TIB, 80 * TIB, 256 * TIB] {
            let further = [16 * TIB, 64 * TIB].into_iter().filter(|&place| place < file_len);
            let places: Vec<_> = places.into_iter().chain(further).collect();
            let places = &places[..places.len().min((file_len / TIB) as usize)];
            let places: Vec<_> = places.iter().copied().filter(|p| p + TIB < file_len).collect();
            let taken = check(&folder, file_len, &places)?;
            println!("{}: {} TiB taken: {taken}", folder.display(), file_len.div_ceil(TIB));
            most = if taken { most.max(file_len) } else { most };
        }
    }
    assert!(most >= 16 * TIB - 4096, "the largest file was of {most} bytes");
    Ok(())
}

#[test]
fn a_value_of_4_gib_is_read_and_a_longer_one_refused() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("long.nut");
    let mut craft = Craft::new(2);
    let (longest, too_long) = (craft.key(0, "longest"), craft.key(1, "too long"));
    let code = ValueType::Bytes.code();
    let longest_record = Record::long(&longest, code, 4 * GIB, b"begin");
    craft.lines[0].records.push((0, longest_record));
    let longer = Record::long(&too_long, code, 4 * GIB + 1, b"begin");
    craft.lines[1] = Line { base: 5 * GIB, shift: 0, records: vec![(0, longer)] };
    craft.write(&path, 10 * GIB)?;
    let snapshot = Snapshot::open(&path)?;
    let value = snapshot.get_bytes(&longest)?.ok_or("the longest value")?;
    assert_eq!(value.len() as u64, 4 * GIB);
    assert_eq!((&value[..5], value.last()), (&b"begin"[..], Some(&0)));
    let answer = snapshot.get_bytes(&too_long).map(|value| value.map(|value| value.len()));
    let Err(Error::Corrupt(damage)) = answer else { panic!("{answer:?}") };
    assert_eq!(damage.offset, data_start(2) + 5 * GIB + 3);
    assert_eq!(
        (&damage.expected[..], &damage.found[..]),
        ("a value of at most 4 GiB", "4294967297")
    );
    Ok(())
}
