//! The vectors of `testdata/compress`, which readers in all languages must decode alike.
//!
//! `NUTHATCH_BLESS=1` writes them again, which is right only if the format has a new version.

use nuthatch_compress::{
    Codec, Dictionaries, Encoded, Error, Reservoir, read_dictionary, set_dictionary_id, train,
};
use std::fmt::Write;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The limit of the vectors in bytes.
const LIMIT: usize = 4 << 20;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/compress")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("ASCII"));
    digits.map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal digits")).collect()
}

/// Returns the name of an error in the table.
fn name(error: &Error) -> &'static str {
    match error {
        Error::Truncated { .. } => "truncated",
        Error::TrailingBytes { .. } => "trailing bytes",
        Error::UnknownCodec { .. } => "unknown codec",
        Error::Invalid { .. } => "invalid",
        Error::UnknownDictionary { .. } => "unknown dictionary",
        Error::TooLong { .. } => "too long",
        Error::Damaged { .. } => "damaged",
        _ => "other",
    }
}

#[test]
fn vectors_are_decoded_as_the_table_says() {
    if std::env::var_os("NUTHATCH_BLESS").is_some() {
        bless();
    }
    let dictionaries = Arc::new(Dictionaries::new(3, 64 << 20));
    for file in ["7.zdict", "70000.zdict"] {
        dictionaries.add(&read_dictionary(&folder().join(file)).expect("it")).expect("it");
    }
    let mut codec = Codec::new(&dictionaries).expect("memory");
    let table = std::fs::read_to_string(folder().join("values.csv")).expect("the table");
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("name,encoded,result,raw"));
    let mut count = 0;
    for line in lines {
        let columns: Vec<_> = line.split(',').collect();
        let [case, encoded, result, raw] = columns[..] else { panic!("{line}") };
        let mut out = Vec::new();
        let found = codec.decompress(&unhex(encoded), LIMIT, &mut out);
        assert_eq!(found.as_ref().map_or_else(name, |_| "ok"), result, "{case}: {found:?}");
        let expected = match raw.split_once('*') {
            Some((part, count)) => unhex(part).repeat(count.parse().expect("a number")),
            None => unhex(raw),
        };
        assert!(out == expected, "{case}");
        count += 1;
    }
    assert!(count >= 20, "{count} vectors");
}

/// Writes the dictionaries and the table.
fn bless() {
    let document = |n: u32| {
        let (day, city) = (1 + n % 28, ["Bern", "Basel", "Chur"][n as usize % 3]);
        format!(
            "{{\"id\":{n},\"city\":\"{city}\",\"is_open\":true,\"since\":\"2024-02-{day:02}\"}}"
        )
    };
    let mut samples = Reservoir::new(1 << 20, 1);
    (0..2000).for_each(|n| samples.offer(document(n).as_bytes()));
    let mut dictionary = train(samples.take(), 1 << 10, 3, NonZeroU32::new(7)).expect("it").bytes;
    std::fs::write(folder().join("7.zdict"), &dictionary).expect("a file");
    let seven = dictionary.clone();
    set_dictionary_id(&mut dictionary, NonZeroU32::new(70_000).expect("an id")).expect("room");
    std::fs::write(folder().join("70000.zdict"), &dictionary).expect("a file");

    let encode = |dictionary: Option<&[u8]>, raw: &[u8]| {
        let dictionaries = Arc::new(Dictionaries::new(3, 64 << 20));
        if let Some(dictionary) = dictionary {
            dictionaries.use_for_all(dictionary).expect("it");
        }
        let mut codec = Codec::new(&dictionaries).expect("memory").min_len(0);
        match codec.compress(b"k", raw, &mut Vec::new()) {
            Encoded::Compressed(encoded) => encoded.to_vec(),
            Encoded::Raw => panic!("a value that compresses"),
        }
    };
    let one = document(5000).into_bytes();
    let long = [&one[..], &document(5001).into_bytes(), &[b'-'; 200]].concat();
    let with_seven = encode(Some(&seven), &one);
    let mut table = "name,encoded,result,raw\n".to_owned();
    let mut ok = |case: &str, encoded: &[u8], raw: &str| {
        let _ = writeln!(table, "{case},{},ok,{raw}", hex(encoded));
    };
    ok("no dictionary", &encode(None, &one.repeat(2)), &hex(&one.repeat(2)));
    ok("a dictionary with an id of one byte", &with_seven, &hex(&one));
    ok("a dictionary with an id of three bytes", &encode(Some(&dictionary), &one), &hex(&one));
    ok("a length of two bytes", &encode(Some(&seven), &long), &hex(&long));
    ok("a length of 255", &encode(None, &[7; 255]), "07*255");
    ok("a length of 256", &encode(None, &[7; 256]), "07*256");
    ok(
        "a length of four bytes and blocks of 128 KiB",
        &encode(None, &vec![7; 300_000]),
        "07*300000",
    );
    ok("a window", &encode(None, &vec![7; 3 << 20]), "07*3145728");
    ok("a raw block", &unhex("002003190000616263"), "616263");
    ok("a repeated byte", &unhex("0020052b000061"), "61*5");
    ok("an empty value", &unhex("002000010000"), "");
    ok("a length of eight bytes", &unhex("00e00300000000000000190000616263"), "616263");
    errors(&with_seven, &mut table);
    std::fs::write(folder().join("values.csv"), table).expect("a file");
}

/// Appends the vectors that are errors. `with_seven` is a value with the dictionary 7.
fn errors(with_seven: &[u8], table: &mut String) {
    let mut error = |case: &str, encoded: &[u8], result: &str| {
        let _ = writeln!(table, "{case},{},{result},", hex(encoded));
    };
    error("empty", b"", "truncated");
    error("an id without an end", &unhex("87"), "truncated");
    error("no descriptor", &unhex("07"), "truncated");
    error("no length", &unhex("0020"), "truncated");
    error("no block", &unhex("002003"), "truncated");
    error("half a block", &with_seven[..with_seven.len() / 2], "truncated");
    error("a byte behind the last block", &[with_seven, b"x"].concat(), "trailing bytes");
    error(
        "an empty frame behind the last block",
        &unhex("0020031900006162632000010000"),
        "trailing bytes",
    );
    error("an id that is not the shortest form", &unhex("80002003190000616263"), "invalid");
    error("an id of 2^32", &unhex("80808080102003190000616263"), "invalid");
    error("an unknown dictionary", &[&[8], &with_seven[1..]].concat(), "unknown dictionary");
    error("the wrong dictionary", &[&[0], &with_seven[1..]].concat(), "damaged");
    error("a checksum", &unhex("00240319000061626300000000"), "unknown codec");
    error("the id of a dictionary in the frame", &unhex("00210703190000616263"), "unknown codec");
    error("a frame without a length", &unhex("000058190000616263"), "unknown codec");
    error("another codec", &unhex("000103190000616263"), "unknown codec");
    error("a reserved type of block", &unhex("0020031f0000616263"), "invalid");
    error("a length that the blocks cannot have", &unhex("00a000004000190000616263"), "invalid");
    error("a length above the limit", &unhex("00a001004000190000616263"), "too long");
    error("a length of 2^63", &unhex("00e00000000000000080190000616263"), "invalid");
    error("a shorter value", &unhex("002002190000616263"), "damaged");
    error("damage in a block", &unhex("002003150000ffff"), "damaged");
}
