//! The good files: their contents and options.

use nuthatch_snapshot::{Compression, Result, StringListBuf, Value, WriterOptions};
use std::path::Path;

/// A function that adds a row.
pub(crate) type Put<'a> = dyn FnMut(&[u8], Value<'_>) + 'a;

/// A good file.
pub(crate) struct Good {
    pub(crate) name: &'static str,
    fill: fn(&mut Put<'_>),
    seed: u64,
    compressed: bool,
    /// Number of shards; 0 for one file.
    shards: u32,
    pub(crate) metadata: &'static [(&'static str, &'static [u8])],
}

const fn plain(name: &'static str, fill: fn(&mut Put<'_>)) -> Good {
    Good { name, fill, seed: 0, compressed: false, shards: 0, metadata: &[] }
}

const fn compressed(name: &'static str, fill: fn(&mut Put<'_>)) -> Good {
    Good { compressed: true, ..plain(name, fill) }
}

const fn seeded(name: &'static str, fill: fn(&mut Put<'_>), seed: u64) -> Good {
    Good { seed, ..plain(name, fill) }
}

pub(crate) const GOOD: &[Good] = &[
    plain("empty", |_| ()),
    plain("one", |put| put(b"key", Value::String("value"))),
    plain("types", types),
    plain("keys", keys),
    plain("long-values", long_values),
    plain("shifted", shifted),
    plain("large-shift", large_shift),
    plain("shared", shared),
    compressed("zstd", zstd),
    compressed("zstd-dictionary", zstd_dictionary),
    compressed("shared-compressed", shared_compressed),
    plain("entries-14", |put| numbered(14, put)),
    plain("entries-15", |put| numbered(15, put)),
    plain("entries-200", |put| numbered(200, put)),
    seeded("seed", types, 0xfedc_ba98_7654_3210),
    // With this seed, some lines overflow.
    seeded("overflow", |put| numbered(40, put), 1872),
    // With this seed, the last lines of a partition overflow to its first line.
    seeded("entries-20000", |put| even(20_000, put), 25),
    plain("partitions", partitions),
    Good { metadata: METADATA, ..plain("metadata", |put| numbered(3, put)) },
    Good { shards: 3, metadata: METADATA, ..seeded("set-3", types, 5) },
    // Some shards have no entry, and those with entries are compressed.
    Good { shards: 7, ..compressed("set-7", |put| zstd(put)) },
    Good { shards: 1, ..plain("set-1", |put| numbered(20, put)) },
];

const METADATA: &[(&str, &[u8])] = &[
    ("created", b"2026-11-23T22:00:00Z"),
    ("name", "Kleiber \u{1f426}".as_bytes()),
    ("no value", b""),
    ("not text", &[0, 0xff, 0xfe]),
    ("source", b"tests"),
];

impl Good {
    pub(crate) fn named(name: &str) -> &'static Self {
        GOOD.iter().find(|good| good.name == name).expect("a good file of that name")
    }

    /// Calls `put` with every row.
    pub(crate) fn rows(&self, put: &mut Put<'_>) {
        (self.fill)(put);
    }

    pub(crate) fn build(&self, path: &Path) -> Result<()> {
        let compression =
            if self.compressed { Compression::Zstd { level: 3 } } else { Compression::None };
        let options = WriterOptions::new().seed(self.seed).compression(compression).threads(2);
        let mut writer = options.shards(self.shards).create(path)?;
        for (name, value) in self.metadata.iter().rev() {
            writer.set_metadata(name, value)?;
        }
        let mut outcome = Ok(());
        self.rows(&mut |key, value| {
            if outcome.is_ok() {
                outcome = writer.insert(key, value);
            }
        });
        outcome?;
        writer.finish()?;
        Ok(())
    }

    /// Returns keys that are not in the file: some similar to its keys, and one of each length
    /// class.
    pub(crate) fn absent(&self) -> Vec<Vec<u8>> {
        let mut absent: Vec<Vec<u8>> =
            (0..12).map(|i| format!("absent {i}").into_bytes()).collect();
        absent.extend([b"ke".to_vec(), b"key!".to_vec(), b"\xff\xfe".to_vec(), vec![b'k'; 300]]);
        let mut other = |key: &[u8]| absent.push([key, b"\0"].concat());
        let mut left = 4;
        self.rows(&mut |key, _| {
            if left > 0 && key.len() < 1000 {
                left -= 1;
                other(key);
            }
        });
        absent
    }
}

fn strings(put: &mut Put<'_>, key: &[u8], list: &[&str]) {
    put(key, Value::StringList(list.iter().collect::<StringListBuf>().as_list()));
}

/// Adds values of every type, with edge cases.
fn types(put: &mut Put<'_>) {
    put(b"bytes", Value::Bytes(&[0, 1, 0xfe, 0xff]));
    put(b"bytes: none", Value::Bytes(&[]));
    put(b"string", Value::String("a nuthatch"));
    put(b"string: empty", Value::String(""));
    put(b"string: control characters", Value::String("\0\t\n\r\"\\\u{7f}"));
    put(b"string: beyond ASCII", Value::String("Kleiber, 五子雀, поползень, 🐦"));
    put(b"bool: false", Value::Bool(false));
    put(b"bool: true", Value::Bool(true));
    for (key, number) in [("0", 0), ("-1", -1), ("least", i64::MIN), ("greatest", i64::MAX)] {
        put(format!("i64: {key}").as_bytes(), Value::I64(number));
    }
    for (key, number) in [
        ("0", 0.0),
        ("-0", -0.0),
        ("0.1", 0.1),
        ("whole", 1e15),
        ("least", f64::from_bits(1)),
        ("greatest", f64::MAX),
        ("infinity", f64::INFINITY),
        ("-infinity", f64::NEG_INFINITY),
        ("NaN", f64::NAN),
        ("another NaN", f64::from_bits(0x7ff8_0000_0000_0001)),
    ] {
        put(format!("f64: {key}").as_bytes(), Value::F64(number));
    }
    put(b"list of i64", Value::I64List(&[1, -2, i64::MIN, i64::MAX]));
    put(b"list of i64: one", Value::I64List(&[7]));
    put(b"list of f64", Value::F64List(&[0.5, -0.0, 1e300]));
    put(b"list of f64: special", Value::F64List(&[f64::NAN, f64::INFINITY, -1.0]));
    put(b"list of f32", Value::F32List(&[0.1, -0.0, 16_777_216.0, f32::MAX, f32::MIN_POSITIVE]));
    put(b"list of f32: special", Value::F32List(&[f32::NAN, f32::NEG_INFINITY, 1.0]));
    let embedding: Vec<f32> = (0..128_u8).map(|i| f32::from(i) / 64.0 - 1.0).collect();
    put(b"list of f32: 128 elements", Value::F32List(&embedding));
    strings(put, b"list of string", &["nut", "seed"]);
    strings(put, b"list of string: one, empty", &[""]);
    strings(put, b"list of string: beyond ASCII", &["", "Spechtmeise", "ゴジュウカラ", "", "🐦🌰"]);
    put(b"list of nothing", Value::EmptyList);
    put(b"", Value::String("the empty key"));
    put(b"\0", Value::String("the key that is a zero"));
    put(b"\xff\xfe\0key", Value::String("a key that is not UTF-8"));
    put("ключ".as_bytes(), Value::String("a key beyond ASCII"));
}

/// Adds keys around every length at which the hash function or the form of the record changes.
fn keys(put: &mut Put<'_>) {
    for len in [
        0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 32, 33, 64, 65, 96, 97, 127, 128, 129, 143, 144, 239,
        240, 241, 254, 255, 256, 257, 1023, 1024, 1025, 2048, 65_535,
    ] {
        let key: Vec<u8> = (0..len).map(|i: u32| b'a' + (i * 7 % 26) as u8).collect();
        put(&key, Value::I64(i64::from(len)));
    }
    put(&[0xff; 256], Value::Bool(true));
}

/// Adds values around the lengths at which the form of the record changes.
fn long_values(put: &mut Put<'_>) {
    let bytes: Vec<u8> = (0..20_000_u32).map(|i| (i * i / 3) as u8).collect();
    let text = "a nuthatch climbs down a trunk head first; ".repeat(1000);
    for len in [254, 255, 256, 257, 20_000] {
        put(format!("bytes: {len}").as_bytes(), Value::Bytes(&bytes[..len]));
        put(format!("string: {len}").as_bytes(), Value::String(&text[..len]));
    }
    let numbers: Vec<i64> = (0..1000).map(|i| i * i * i - 500).collect();
    for len in [31, 32, 1000] {
        put(format!("list of i64: {len}").as_bytes(), Value::I64List(&numbers[..len]));
    }
    let floats: Vec<f32> = (0..500_u16).map(|i| f32::from(i) / 8.0).collect();
    for len in [63, 64, 500] {
        put(format!("list of f32: {len}").as_bytes(), Value::F32List(&floats[..len]));
    }
    let many: Vec<String> = (0..300).map(|i| format!("string number {i}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    strings(put, b"list of string: 300", &many);
}

/// Adds small values and two so large that the offsets of the line count in larger units.
fn shifted(put: &mut Put<'_>) {
    let bytes: Vec<u8> = (0..70_001_u32).map(|i| (i / 251) as u8).collect();
    put(b"70,001 bytes", Value::Bytes(&bytes));
    let numbers: Vec<i64> = (0..9000).map(|i| i % 10).collect();
    put(b"9,000 integers", Value::I64List(&numbers));
    for i in 0..10 {
        put(format!("string {i}").as_bytes(), Value::String("small"));
        put(format!("integer {i}").as_bytes(), Value::I64(i));
    }
}

/// Adds values so large that the records of a line span a megabyte.
fn large_shift(put: &mut Put<'_>) {
    let text = "0123456789abcdef".repeat(5000);
    for i in 0..9 {
        put(format!("text {i}").as_bytes(), Value::String(&text[i..]));
        put(format!("number {i}").as_bytes(), Value::F64(i as f64 / 2.0));
    }
}

/// Adds repeated values: short ones, which are stored repeatedly, and longer ones, which are
/// shared.
fn shared(put: &mut Put<'_>) {
    let text = "a value that is stored once and referred to by the others";
    for i in 0..6_i64 {
        put(format!("string {i}").as_bytes(), Value::String(text));
        put(format!("bytes {i}").as_bytes(), Value::Bytes(text.as_bytes()));
        put(format!("list of i64 {i}").as_bytes(), Value::I64List(&[10, 20, 30, 40, 50]));
        put(format!("list of f32 {i}").as_bytes(), Value::F32List(&[0.5; 100]));
        put(format!("short {i}").as_bytes(), Value::String("short"));
        put(format!("alone {i}").as_bytes(), Value::I64(i));
    }
}

/// Adds compressible values, too few to train a dictionary.
fn zstd(put: &mut Put<'_>) {
    let text = "Nuthatches cache seeds in the crevices of bark. ";
    for i in [1, 2, 10, 100] {
        put(format!("string {i}").as_bytes(), Value::String(&text.repeat(i)));
    }
    put(b"bytes", Value::Bytes(&[0xff; 500]));
    put(b"shared", Value::Bytes(&[0xee; 500]));
    put(b"shared too", Value::Bytes(&[0xee; 500]));
    put(b"list of i64", Value::I64List(&[1; 100]));
    put(b"list of f64", Value::F64List(&[0.25; 100]));
    put(b"list of f32", Value::F32List(&[-0.5; 128]));
    strings(put, b"list of string", &["seed"; 50]);
    put(b"short", Value::String("too short to compress"));
    put(b"i64", Value::I64(1));
    put(b"none", Value::EmptyList);
}

/// Adds enough similar values to train a dictionary.
fn zstd_dictionary(put: &mut Put<'_>) {
    let birds = ["Sitta europaea", "Sitta canadensis", "Sitta carolinensis", "Sitta pygmaea"];
    for i in 0..120_usize {
        let value = format!(
            concat!(
                "{{\"species\":\"{}\",\"ring\":{},\"weight_g\":{}.{},",
                "\"caches\":{},\"tree\":\"oak {}\"}}"
            ),
            birds[i % 4],
            i * 7919,
            9 + i % 16,
            i % 10,
            i * i,
            i % 9
        );
        put(format!("bird {i}").as_bytes(), Value::String(&value));
    }
    put(b"count", Value::I64(120));
}

/// Adds the values of `zstd_dictionary`, and one that many keys share.
fn shared_compressed(put: &mut Put<'_>) {
    zstd_dictionary(put);
    let text = "{\"species\":\"Sitta whiteheadi\",\"ring\":0,\"weight_g\":12.0,\"tree\":\"pine\"}";
    for i in 0..20 {
        put(format!("text {i}").as_bytes(), Value::String(text));
    }
}

/// Adds keys of five digits in more than two partitions. Keys of all partitions share values.
fn partitions(put: &mut Put<'_>) {
    let texts = ["a value that partitions share, one of two", "a value that partitions share, two"];
    for i in 0..33_000_usize {
        let value = Value::String(texts[i / 100 % 2]);
        let value = if i % 100 == 0 { value } else { Value::Bool(i % 3 == 0) };
        put(format!("{i:05}").as_bytes(), value);
    }
}

/// Adds keys of five digits with their numbers: records without gaps between them.
fn numbered(count: i64, put: &mut Put<'_>) {
    for i in 0..count {
        put(format!("{i:05}").as_bytes(), Value::I64(i));
    }
}

/// Adds keys of five digits, each with a boolean: whether its number is even.
fn even(count: i64, put: &mut Put<'_>) {
    for i in 0..count {
        put(format!("{i:05}").as_bytes(), Value::Bool(i % 2 == 0));
    }
}
