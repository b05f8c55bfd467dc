//! Readers of trace files.

use super::trace::{Recorder, Trace};
use crate::failure::Failure;
use std::array;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Value size in bytes of an item whose size the file does not state.
const VALUE_BYTES: u32 = 1008;

/// Maximum length of a key, in bytes.
const MAX_KEY_LEN: usize = 65_535;

/// Maximum length of a value, in bytes.
const MAX_VALUE_LEN: u32 = 512 << 20;

/// Bytes of one libCacheSim record: time (4), object identifier (8), object size (4), and the index
/// of the next request for the object (8).
const RECORD: usize = 24;

/// Reads at most `max_requests` requests of a file. The path `-` is standard input.
pub(crate) fn read(path: &Path, max_requests: usize) -> Result<Trace, Failure> {
    let stdin = path.as_os_str() == "-";
    let name = if stdin { "<stdin>".to_owned() } else { path.display().to_string() };
    let input: Box<dyn Read> = if stdin {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(path);
        Box::new(file.map_err(|error| Failure::Error(format!("{name}: open: {error}")))?)
    };
    let binary = path.file_name().is_some_and(|name| {
        let name = name.to_string_lossy();
        name.ends_with(".oracleGeneral") || name.ends_with(".oracleGeneral.bin")
    });
    let input = BufReader::with_capacity(1 << 16, input);
    let read = if binary { records(input, max_requests) } else { lines(input, max_requests) };
    let recorder = read.map_err(|message| Failure::Error(format!("{name}:{message}")))?;
    if recorder.len() == 0 {
        return Err(Failure::Error(format!("{name}: expected requests, found none")));
    }
    let file = path.file_name().filter(|_| !stdin);
    Ok(recorder.finish(file.map_or(name, |file| file.to_string_lossy().into_owned())))
}

/// Reads lines of text: a key, optionally followed by a tab or comma and the value size in bytes.
fn lines(mut input: impl BufRead, max_requests: usize) -> Result<Recorder, String> {
    let mut recorder = Recorder::default();
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        // Bounds the memory for a file without line ends.
        let limit = MAX_KEY_LEN as u64 + 64;
        let len = input.by_ref().take(limit).read_until(b'\n', &mut line);
        let wrong = |what: String| format!("{number}: {what}");
        if len.map_err(|error| format!(" read: {error}"))? == 0 || recorder.len() == max_requests {
            break;
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let (key, bytes) = parse(text).map_err(wrong)?;
        if !recorder.push(key, bytes) {
            return Err(wrong("expected keys of at most 4 GiB in total".to_owned()));
        }
    }
    Ok(recorder)
}

fn parse(line: &[u8]) -> Result<(&[u8], u32), String> {
    let ends = |separator: u8| line.iter().rposition(|byte| *byte == separator);
    let (key, size) = match ends(b'\t').or_else(|| ends(b',')) {
        Some(at) => (&line[..at], Some(&line[at + 1..])),
        None => (line, None),
    };
    if key.is_empty() || key.len() > MAX_KEY_LEN {
        let found = key.len();
        return Err(format!("expected a key of 1 to {MAX_KEY_LEN} bytes, found {found} bytes"));
    }
    let Some(size) = size else { return Ok((key, VALUE_BYTES)) };
    let number = std::str::from_utf8(size).ok().and_then(|size| size.trim().parse().ok());
    match number.filter(|bytes| *bytes <= MAX_VALUE_LEN) {
        Some(bytes) => Ok((key, bytes)),
        None => Err(format!(
            "expected the bytes of the value after the key, at most {MAX_VALUE_LEN}, found \"{}\"",
            size.escape_ascii()
        )),
    }
}

/// Reads libCacheSim's binary records, which are little-endian.
fn records(mut input: impl Read, max_requests: usize) -> Result<Recorder, String> {
    let mut recorder = Recorder::default();
    let mut record = Vec::with_capacity(RECORD);
    while recorder.len() < max_requests {
        let at = recorder.len() * RECORD;
        record.clear();
        let len = input.by_ref().take(RECORD as u64).read_to_end(&mut record);
        let len = len.map_err(|error| format!(" read: {error}"))?;
        if len == 0 {
            break;
        }
        let Some(record) = record.first_chunk::<RECORD>() else {
            return Err(format!(" at byte {at}: expected a record of {RECORD} bytes, found {len}"));
        };
        let id = u64::from_le_bytes(array::from_fn(|byte| record[4 + byte]));
        let size = u32::from_le_bytes(array::from_fn(|byte| record[12 + byte]));
        if size > MAX_VALUE_LEN {
            return Err(format!(
                " at byte {at}: expected an object of at most {MAX_VALUE_LEN} bytes, found {size}"
            ));
        }
        if !recorder.push(format!("{id:016x}").as_bytes(), size) {
            return Err(format!(" at byte {at}: expected keys of at most 4 GiB in total"));
        }
    }
    Ok(recorder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Result<Trace, String> {
        lines(text.as_bytes(), 100).map(|recorder| recorder.finish(String::new()))
    }

    #[test]
    fn lines_are_keys_and_sizes() {
        let trace = text("a,10\nb\t20\r\na,99\nx,y,5\nc").expect("a trace");
        assert_eq!(trace.requests, [0, 1, 0, 2, 3]);
        let items: Vec<_> =
            (0..4).map(|item| (trace.items.key(item), trace.items.value_bytes(item))).collect();
        assert_eq!(items, [(&b"a"[..], 10), (b"b", 20), (b"x,y", 5), (b"c", VALUE_BYTES as usize)]);
    }

    #[test]
    fn a_trace_has_at_most_the_given_number_of_requests() {
        let recorder = lines(&b"a\nb\nc\n"[..], 2).expect("a trace");
        assert_eq!(recorder.len(), 2);
        let recorder = records(&[0; 72][..], 2).expect("a trace");
        assert_eq!(recorder.len(), 2);
    }

    #[test]
    fn errors_contain_the_line_number() {
        for (lines, expected) in [
            (
                "a\nb,x\n",
                "2: expected the bytes of the value after the key, at most 536870912, \
                          found \"x\"",
            ),
            (
                "a,-1",
                "1: expected the bytes of the value after the key, at most 536870912, \
                      found \"-1\"",
            ),
            (
                "a,536870913",
                "1: expected the bytes of the value after the key, at most \
                             536870912, found \"536870913\"",
            ),
            ("a\n\n", "2: expected a key of 1 to 65535 bytes, found 0 bytes"),
            (",5", "1: expected a key of 1 to 65535 bytes, found 0 bytes"),
        ] {
            assert_eq!(text(lines).expect_err(lines), expected);
        }
        let long = "k".repeat(1 << 20);
        assert!(text(&long).is_err_and(|error| error.starts_with("1: expected a key")));
    }

    #[test]
    fn records_are_objects_and_sizes() {
        let mut bytes = Vec::new();
        for (id, size) in [(1_u64, 100_u32), (u64::MAX, 0), (1, 100)] {
            bytes.extend_from_slice(&[9; 4]);
            bytes.extend_from_slice(&id.to_le_bytes());
            bytes.extend_from_slice(&size.to_le_bytes());
            bytes.extend_from_slice(&[8; 8]);
        }
        let trace = records(&bytes[..], 100).expect("a trace").finish(String::new());
        assert_eq!(trace.requests, [0, 1, 0]);
        assert_eq!((trace.items.key(1), trace.items.value_bytes(0)), (&[b'f'; 16][..], 100));
        let error = records(&bytes[..71], 100).expect_err("half a record");
        assert_eq!(error, " at byte 48: expected a record of 24 bytes, found 23");
        bytes[12..16].fill(0xff);
        let error = records(&bytes[..], 100).expect_err("too large");
        assert!(error.starts_with(" at byte 0: expected an object of at most"), "{error}");
    }
}
