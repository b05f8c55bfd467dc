//! Encodes the sealed file of `testdata/tier` again, byte for byte.

use crate::batch::{BatchHeader, seed};
use crate::checksum::checksum;
use crate::contents::Contents;
use crate::directory::padded_len;
use crate::footer::Footer;
use crate::header::Header;
use crate::layout::{BLOCK, batch};
use crate::manifest::Manifest;
use crate::place::Place;
use crate::record::Record;

const MANIFEST: &[u8] = include_bytes!("../../../testdata/tier/v1/tier");
const FILE: &[u8] = include_bytes!("../../../testdata/tier/v1/items-0000000001.log");

#[test]
fn the_file_of_version_1_is_encoded_again_byte_for_byte() {
    let manifest = Manifest::decode(MANIFEST).expect("a manifest");
    assert_eq!(manifest.encode(), MANIFEST);
    let header = Header::decode(FILE, 1, manifest.salt).expect("a header");
    let (salt, file_len) = (header.salt, FILE.len() as u64);
    let footer = Footer::decode(&FILE[FILE.len() - BLOCK..], salt, 1, file_len).expect("a footer");

    let mut out = vec![0; BLOCK];
    header.encode(&mut out);
    let mut contents = Contents::default();
    while out.len() < footer.directory as usize {
        let offset = out.len();
        encode_batch(&mut out, salt, header.created_ms, &mut contents);
        assert_eq!(out[offset..], FILE[offset..out.len()], "the batch at {offset}");
    }
    let directory_end = out.len() + padded_len(contents.records()) as usize;
    out.extend_from_slice(&contents.entries);
    out.resize(directory_end, 0);
    let directory_check = checksum(&out[footer.directory as usize..], salt);
    out.resize(directory_end + BLOCK, 0);
    let footer = Footer {
        number: 1,
        file_len,
        directory: footer.directory,
        records: contents.records(),
        batches: contents.batches,
        live_bytes: contents.live_bytes,
        last_expiry_ms: contents.last_expiry_ms,
        sealed_ms: footer.sealed_ms,
        directory_check,
    };
    footer.encode(&mut out[directory_end..], salt);
    assert!(out == FILE);
}

/// Decodes the next batch and its records, and appends them to `out`.
fn encode_batch(out: &mut Vec<u8>, salt: u64, created_ms: u64, contents: &mut Contents) {
    let offset = out.len();
    let header = BatchHeader::decode(&FILE[offset..], salt, offset as u64).expect("a batch");
    out.resize(offset + header.len as usize, 0);
    let mut at = offset + batch::HEADER_LEN;
    let mut records = 0;
    while at < offset + header.used as usize {
        let record = Record::decode(&FILE[at..], seed(salt, at as u64)).expect("a record");
        let len = record.encoded_len();
        record.encode(&mut out[at..at + len], seed(salt, at as u64));
        contents.add(&record, Place::of_bytes(0, at as u64, len as u64), created_ms);
        at += len;
        records += 1;
    }
    let data = &out[offset + batch::HEADER_LEN..];
    let data_check = checksum(data, seed(salt, offset as u64));
    let used = (at - offset) as u32;
    let sequence = contents.batches;
    BatchHeader { sequence, len: header.len, used, records, data_check }.encode(
        &mut out[offset..],
        salt,
        offset as u64,
    );
    contents.batches += 1;
}
