//! Reads removal logs.

use crate::disk::Disk;
use crate::error::{Damage, Result};
use crate::fields::word;
use crate::folder::{Folder, FolderEntry, removed_name, removed_number};
use crate::layout::removal::LEN;
use crate::layout::removed::{FIRST, MARK};
use crate::layout::{BLOCK, MAX_NUMBER};
use crate::removal_log::entry::{Chain, MAX_BOUND, Removal, is_incomplete};
use crate::removal_log::header::{End, Header};
use std::fs::File;
use std::io;

/// A removal log that was opened.
pub(crate) struct OpenedLog {
    pub(crate) file: File,
    pub(crate) name: String,
    pub(crate) number: u64,
    pub(crate) len: u64,
    pub(crate) header: std::result::Result<Header, Fault>,
}

/// Why a log is not complete.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    Damaged(Damage),
    /// The system cannot read it.
    Unreadable(Damage),
}

impl Fault {
    /// Returns the place and the reason.
    pub(crate) fn into_damage(self) -> Damage {
        match self {
            Self::Damaged(damage) | Self::Unreadable(damage) => damage,
        }
    }
}

/// What a log contains.
pub(crate) struct LogContents {
    /// All ids in the log are lower. The maximum if that is unknown.
    pub(crate) bound: u64,
    /// The number of entries.
    pub(crate) entries: u64,
    /// Where the entries end, or what is damaged.
    pub(crate) end: std::result::Result<End, Fault>,
}

/// Returns the removal logs of a folder, with their numbers, the oldest first.
pub(crate) fn log_entries(entries: &[FolderEntry]) -> Vec<(u64, FolderEntry)> {
    let numbered = entries.iter().filter_map(|entry| {
        let number = removed_number(&entry.name).filter(|_| entry.is_file)?;
        Some((number, entry.clone()))
    });
    let mut logs: Vec<_> = numbered.collect();
    logs.sort_by_key(|(number, _)| *number);
    logs
}

/// Opens the removal logs of a folder and reads their headers.
///
/// # Errors
///
/// Returns the error of the system if a log cannot be opened.
pub(crate) fn open_logs(
    folder: &Folder,
    entries: &[FolderEntry],
    folder_salt: u64,
    is_writable: bool,
) -> Result<Vec<OpenedLog>> {
    let logs = log_entries(entries).into_iter().map(|(number, entry)| {
        let file = folder.open_file(&entry.name, is_writable)?;
        let mut block = [0; BLOCK];
        let header = match folder.disk.read(&file, &entry.name, &mut block, 0) {
            Ok(read) => Header::decode(&block[..read], number, folder_salt)
                .map_err(|reason| Fault::Damaged(Damage::new(&entry.name, 0, reason))),
            Err(error) => Err(unreadable(&entry.name, 0, &error)),
        };
        Ok(OpenedLog { file, name: entry.name, number, len: entry.len, header })
    });
    logs.collect()
}

/// Reads the logs in order, and calls `visit` for each entry. The entries of a damaged log are
/// incomplete. Calls `end` with each log and its contents.
pub(crate) fn read_logs(
    logs: Vec<OpenedLog>,
    disk: &dyn Disk,
    mut visit: impl FnMut(Removal),
    mut end: impl FnMut(OpenedLog, LogContents),
) {
    let mut logs = logs.into_iter().peekable();
    while let Some(log) = logs.next() {
        let next = logs.peek().and_then(|next| next.header.as_ref().ok());
        let next = next.filter(|next| next.number == log.number + 1);
        let contents = read_log(&log, disk, next, &mut visit);
        end(log, contents);
    }
}

/// Returns damage for each log that is missing between two others.
pub(crate) fn missing_logs(logs: &[OpenedLog]) -> Vec<Damage> {
    let gaps = logs.windows(2).filter(|pair| pair[0].number + 1 < pair[1].number);
    let missing = gaps.map(|pair| {
        let name = removed_name((pair[0].number + 1).min(MAX_NUMBER));
        Damage::new(&name, 0, "expected a removal log, found no such file")
    });
    missing.collect()
}

fn unreadable(name: &str, offset: u64, error: &io::Error) -> Fault {
    Fault::Unreadable(Damage::new(name, offset, format!("cannot be read: {error}")))
}

fn read_log(
    log: &OpenedLog,
    disk: &dyn Disk,
    next: Option<&Header>,
    visit: &mut impl FnMut(Removal),
) -> LogContents {
    let (mut bound, mut entries, mut committed) = (0, 0, 0);
    let end = log.header.clone().and_then(|header| {
        read_entries(log, disk, header, next.and_then(|next| next.previous), |removal| {
            if let Removal::Committed(to) = removal {
                committed = to;
            }
            bound = bound.max(removal.bound(committed));
            entries += 1;
            visit(removal);
        })
    });
    if end.is_err() {
        bound = next.map_or(MAX_BOUND, |next| next.bound);
    }
    LogContents { bound, entries, end }
}

/// Reads the mark and the entries up to `stop`, or up to the first entry that is not complete.
fn read_entries(
    log: &OpenedLog,
    disk: &dyn Disk,
    header: Header,
    stop: Option<End>,
    mut visit: impl FnMut(Removal),
) -> std::result::Result<End, Fault> {
    let damaged =
        |offset, reason: &str| Err(Fault::Damaged(Damage::new(&log.name, offset, reason)));
    let len = stop.map_or(log.len, |end| end.offset);
    if !log.len.is_multiple_of(BLOCK as u64) || !(FIRST..=log.len).contains(&len) {
        return damaged(log.len, "expected a longer removal log, found a truncated file");
    }
    let (mut chain, mut end) = (Chain::new(header.salt), None);
    let mut buffer = vec![0; 16 * BLOCK];
    let mut offset = MARK;
    while offset < len {
        let bytes = &mut buffer[..(len - offset).min(16 * BLOCK as u64) as usize];
        match disk.read(&log.file, &log.name, bytes, offset) {
            Ok(read) if read == bytes.len() => {}
            Ok(_) => return damaged(offset, "expected a longer removal log, found its end"),
            Err(error) => return Err(unreadable(&log.name, offset, &error)),
        }
        for at in (0..bytes.len()).step_by(LEN as usize) {
            let (entry, offset) = (word(bytes, at), offset + at as u64);
            if offset == MARK {
                match Chain::new(header.salt).decode(entry) {
                    Some(mark @ Removal::AllBefore(_)) => visit(mark),
                    _ if entry == 0 => {}
                    _ => return damaged(offset, "expected a mark, found another check"),
                }
            } else if end.is_some() {
                if entry != 0 {
                    return damaged(offset, "expected no entry after an incomplete one");
                }
            } else if is_incomplete(entry) {
                end = Some(End { offset, chain });
            } else if let Some(removal) = chain.decode(entry) {
                visit(removal);
            } else {
                return damaged(offset, "expected an entry, found another check");
            }
        }
        offset += bytes.len() as u64;
    }
    let end = end.unwrap_or(End { offset: len, chain });
    match stop {
        Some(stop) if stop != end => {
            damaged(end.offset, "expected the entries before the next log")
        }
        _ => Ok(end),
    }
}
