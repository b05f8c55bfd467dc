//! The removal log in `testdata/tier`: it is encoded byte for byte, and decoded again. With
//! `NUTHATCH_BLESS=1`, the test writes the file.

use super::entry::{Chain, Removal, shortened};
use super::header::{End, Header};
use crate::layout::BLOCK;
use crate::layout::removed::{FIRST, MARK};
use crate::record_id::RecordId;
use std::fs;
use std::path::Path;

const FOLDER_SALT: u64 = 0x0123_4567_89AB_CDEF;

/// Returns the packed id of a record.
fn id(file: u64, unit: u32) -> u64 {
    RecordId { file, unit }.pack()
}

/// Returns the header and the entries of the file.
fn content() -> (Header, Vec<Removal>) {
    let previous = End { offset: 5000, chain: Chain::from_word(0xFEDC_BA98_7654_3210) };
    let header = Header {
        number: 3,
        salt: 0x6E75_7468_6174_6368,
        folder_salt: FOLDER_SALT,
        bound: id(7, 0),
        previous: Some(previous),
    };
    let entries = vec![
        Removal::Committed(id(7, 300)),
        Removal::Record(id(7, 260)),
        Removal::Changed(shortened(0xA50C_30FD_1FF4_019E)),
        Removal::AllBefore(id(8, 1)),
        Removal::Record(id(9, 4_194_303)),
    ];
    (header, entries)
}

fn encoded() -> Vec<u8> {
    let (header, entries) = content();
    let mut bytes = vec![0; FIRST as usize];
    header.encode(&mut bytes[..BLOCK]);
    let mut chain = Chain::new(header.salt);
    for entry in entries {
        bytes.extend_from_slice(&chain.encode(entry).to_le_bytes());
    }
    let mark = Chain::new(header.salt).encode(Removal::AllBefore(id(6, 0)));
    bytes[MARK as usize..FIRST as usize].copy_from_slice(&mark.to_le_bytes());
    bytes
}

#[test]
fn the_removal_log_of_version_1_has_these_bytes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tier/removed.log");
    if std::env::var_os("NUTHATCH_BLESS").is_some() {
        fs::write(&path, encoded()).expect("a file");
    }
    let bytes = fs::read(path).expect("a file");
    assert!(bytes == encoded());
    let (header, entries) = content();
    assert_eq!(Header::decode(&bytes, header.number, FOLDER_SALT), Ok(header));
    let word = |at: &[u8]| u64::from_le_bytes(at.try_into().expect("eight bytes"));
    let mut chain = Chain::new(header.salt);
    let decode = |at| chain.decode(word(at)).expect("an entry");
    let decoded: Vec<_> = bytes[FIRST as usize..].chunks(8).map(decode).collect();
    assert_eq!(decoded, entries);
    let mark = Chain::new(header.salt).decode(word(&bytes[MARK as usize..FIRST as usize]));
    assert_eq!(mark, Some(Removal::AllBefore(id(6, 0))));
}
