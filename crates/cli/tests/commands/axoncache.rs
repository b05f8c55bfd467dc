//! Files of AxonCache as inputs.

use crate::folder::{Folder, row};

/// A value of each type, as AxonCache stores it: the number of the type, and the bytes.
type Stored<'a> = (&'a str, u8, &'a [u8]);

/// Returns a file of AxonCache with these records. Values of `shared` are stored at its end.
fn cache(records: &[Stored<'_>], kind: u16, shared: &[&[u8]]) -> Vec<u8> {
    let slots = 16_u64;
    let mut data = vec![0; slots as usize * 8];
    for (key, value_type, value) in records {
        let number = shared.iter().position(|shared| shared == value);
        let (flags, stored) = match number {
            None => (0, value.to_vec()),
            Some(number @ 0..256) => (16, vec![number as u8]),
            Some(number) => (1, (number as u16).to_le_bytes().to_vec()),
        };
        data.extend((key.len() as u16).to_le_bytes());
        data.push(flags | value_type << 5);
        data.extend(&(value.len() as u32).to_le_bytes()[..3]);
        data.extend(key.as_bytes());
        data.extend(stored);
    }
    if kind > 3 {
        let start = data.len();
        if !shared.is_empty() {
            data.extend((shared.len() as u16).to_le_bytes());
            data.extend(shared.iter().flat_map(|value| (value.len() as u32).to_le_bytes()));
            data.extend(shared.concat());
        }
        let len = if shared.is_empty() { 0 } else { data.len() - start + 8 };
        data.extend((len as u64).to_le_bytes());
    }
    let mut file = Vec::new();
    for number in [37_460, 104, 72, 1, kind, 29, 35, 2] {
        file.extend(number.to_le_bytes());
    }
    file.extend([0; 8]);
    file.extend(0.5_f64.to_le_bytes());
    let (entries, len) = (records.len() as u64, data.len() as u64);
    for number in [1_700_000_000_000, slots, entries, len, 104 + len] {
        file.extend(number.to_le_bytes());
    }
    file.extend([0; 32]);
    file.extend(data);
    file
}

const LIST: &[u8] = b"\x02\0\x01\0a\0\x00\0\0";

#[test]
fn values_of_all_types_are_read() {
    let records: [Stored<'_>; 11] = [
        ("string", 0, b"text\0"),
        ("bytes", 0, b"\xff\x01\0"),
        ("list", 1, LIST),
        ("no strings", 1, b"\0\0"),
        ("bool", 2, b"\x01"),
        ("int64", 3, &(-5_i64).to_le_bytes()),
        ("double", 4, &0.25_f64.to_le_bytes()),
        ("int", 5, &7_i32.to_le_bytes()),
        ("float", 6, &0.5_f32.to_le_bytes()),
        ("floats", 7, &[0, 0, 0, 63, 0, 0, 128, 191]),
        ("again", 0, b"text\0"),
    ];
    let mut expected = [
        row("again", "\"text\""),
        row("bool", "true"),
        row("bytes", "{\"$bytes\":\"/wE=\"}"),
        row("double", "0.25"),
        row("float", "0.5"),
        row("floats", "{\"$f32\":[0.5,-1.0]}"),
        row("int", "7"),
        row("int64", "-5"),
        row("list", "[\"a\",\"\"]"),
        row("no strings", "[]"),
        row("string", "\"text\""),
    ];
    expected.sort();
    let many: Vec<_> = (0..300_u16).map(u16::to_le_bytes).collect();
    let many: Vec<&[u8]> = many.iter().map(|value| &value[..]).chain([&b"text\0"[..]]).collect();
    let folder = Folder::new();
    for (kind, shared) in [(3, &[][..]), (4, &[]), (4, &[b"text\0", LIST]), (5, &many)] {
        folder.file("a.cache", cache(&records, kind, shared)).build(&["a.cache", "-o", "a.nut"]);
        assert_eq!(folder.rows("a.nut"), expected, "kind {kind}, {} shared", shared.len());
    }
}

#[test]
fn a_file_and_its_text_give_the_same_snapshot() {
    let folder = Folder::new();
    folder.file("a.dta", "250.xxx=foo=bar\x1e\n\x01999.vec=a||\x1e888.empty=\x1e");
    let vec = b"\x03\0\x01\0a\0\0\0\0\0\0\0";
    let records: [Stored<'_>; 3] =
        [("250.xxx", 0, b"foo=bar\0"), ("999.vec", 1, vec), ("888.empty", 0, b"\0")];
    folder.file("a.cache", cache(&records, 3, &[]));
    folder.build(&["a.dta", "-o", "text.nut"]).build(&["a.cache", "-o", "cache.nut"]);
    assert_eq!(folder.bytes("text.nut"), folder.bytes("cache.nut"));
}

#[test]
fn files_of_many_blocks_are_read() {
    let keys: Vec<_> = (0..50_000).map(|number| format!("key:{number}")).collect();
    let value = [b'v'; 40];
    let records: Vec<_> = keys.iter().map(|key| (&key[..], 0, &value[..])).collect();
    let folder = Folder::new();
    folder.file("a.cache", cache(&records, 3, &[]));
    folder.build(&["a.cache", "-o", "a.nut", "--threads", "3", "--memory", "32M"]);
    let run = folder.run(&["info", "a.nut", "--json"]).stdout;
    assert!(run.contains("\"entries\":50000"), "{run}");
}

#[test]
fn damaged_files_are_errors_with_their_place() {
    let records: [Stored<'_>; 2] = [("a", 0, b"x\0"), ("b", 3, b"12345678")];
    let good = cache(&records, 3, &[]);
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    let folder = Folder::new();
    let first = 104 + 128;
    for (bytes, message) in [
        (good[..50].to_vec(), ": expected an AxonCache file of at least 104 bytes, found 50"),
        (with(0, 0), ": at byte 0: expected 37460, as in AxonCache files, found 37376"),
        (with(8, 2), ": at byte 8: expected an AxonCache file of kind 3, 4 or 5 (linear probing)"),
        (with(47, 255), ": at byte 40: expected slots within 256 bytes, found "),
        (
            good[..good.len() - 1].to_vec(),
            ": at byte 247: expected 9 bytes of record 2 of 2, found",
        ),
        (with(48, 3), ": at byte 256: expected 6 bytes of record 3 of 3, found the end"),
        (with(48, 1), ": at byte 241: expected the end of 1 records at 256"),
        (with(first + 2, 1 << 5), ":1:1: expected a list of strings in UTF-8, found 2 other bytes"),
        (with(first + 2, 4), ":1:1: expected the flags 0, 1 or 16, found 4"),
        (with(first + 11, 2 << 5), ":2:1: expected a value of 1 byte, found 8 bytes"),
        (with(8, 4), ": at byte 248: expected a length from 10 to 152, found "),
    ] {
        folder.file("a.cache", bytes);
        let error = folder.build_fails(3, &["a.cache", "-o", "a.nut"]);
        assert!(error.starts_with(&format!("nuthatch: a.cache{message}")), "{error}{message}");
    }
    let mut bytes = cache(&records, 4, &[b"x\0"]);
    bytes[first + 7] = 1;
    folder.file("a.cache", bytes);
    let error = folder.build_fails(3, &["a.cache", "-o", "a.nut"]);
    assert!(error.contains(":1:1: expected the number of a shared value, found 1"), "{error}");
    let error = folder.build_fails(3, &["-", "-o", "a.nut", "--format", "axoncache"]);
    assert!(error.contains("expected a file, because AxonCache is read from its end"), "{error}");
}
