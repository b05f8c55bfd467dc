//! The file in `data-dir` with the slots whose items outlive the process of a node.
//!
//! docs/formats/cluster.md has its lines.

use super::disk::FOLDER as ITEMS;
use crate::files::AtomicFile;
use crate::outcome::Failure;
use crate::settings::{LoadedSettings, Settings};
use nuthatch_cache::KeyHash;
use nuthatch_cluster::member::Data;
use nuthatch_cluster::slot::SlotSet;
use nuthatch_server::{KeptSlot, KeptSlots, WarmRestart};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;
use tracing::warn;

/// The name of the file.
const FILE: &str = "node-slots";

const FIRST_LINE: &str = "nuthatch node slots 1";

/// Returns the slots that the last process with the folder of `data-dir` has kept, if this one is a
/// node with items that outlive it. Otherwise removes the items of a node, some of which other
/// nodes may have served since, and then the file: clients may change items whose slots it names.
pub(super) fn kept_slots(loaded: &LoadedSettings) -> Result<Option<KeptSlots>, Failure> {
    let settings = &loaded.settings;
    let Some(folder) = &settings.data_dir else { return Ok(None) };
    let path = folder.join(FILE);
    let failure = |error: &io::Error| {
        let source = loaded.source("data-dir").named();
        Failure::Error(format!("{source}: {}: {error}", path.display()))
    };
    if settings.cluster == "off" || !keeps_items(settings) {
        if path.try_exists().map_err(|error| failure(&error))? {
            let discarded = WarmRestart::discard(&folder.join(ITEMS), settings.memory);
            let items = discarded.map_err(|error| failure(&io::Error::other(error)))?;
            if items > 0 {
                let text = "the items of a node in data-dir were removed, since other nodes may \
                            have changed them";
                warn!(target: "nuthatch::cluster", items, "{text}");
            }
            fs::remove_file(&path).map_err(|error| failure(&error))?;
        }
        return Ok(None);
    }
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Some(KeptSlots::default())),
        read => read.map_err(|error| failure(&error))?,
    };
    let slots = parse(&String::from_utf8_lossy(&bytes));
    if slots.is_none() {
        let path = path.display();
        warn!(
            target: "nuthatch::cluster",
            %path,
            "expected the slots of the last process, found a damaged file: the items of the last \
             process are dropped"
        );
    }
    Ok(Some(slots.unwrap_or_default()))
}

/// Returns whether items outlive the process.
pub(super) fn keeps_items(settings: &Settings) -> bool {
    settings.disk > 0 || settings.warm_restart
}

/// Stores the slots for the next process. Without them, it drops its items.
pub(super) fn keep_slots(folder: &Path, slots: &KeptSlots) {
    let path = folder.join(FILE);
    let written = AtomicFile::create(path.clone()).and_then(|mut file| {
        file.write_all(format(slots).as_bytes())?;
        file.publish()
    });
    if let Err(error) = written {
        let path = path.display();
        warn!(
            target: "nuthatch::cluster",
            %path,
            %error,
            "the slots of this node cannot be stored: if it is started again, it drops the items \
             of those that changed"
        );
    }
}

fn format(kept: &KeptSlots) -> String {
    let Data { identity, revision } = &kept.data;
    let mut groups: BTreeMap<(u64, u64), SlotSet> = BTreeMap::new();
    for KeptSlot { slot, epoch, first_record } in &kept.slots {
        groups.entry((*epoch, *first_record)).or_default().insert(*slot);
    }
    let folder = kept.folder_id;
    let mut text =
        format!("{FIRST_LINE}\nidentity {identity}\nrevision {revision}\nfolder {folder:016x}\n");
    for ((epoch, first_record), slots) in groups {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "slots {slots} epoch {epoch} first-record {first_record}");
    }
    let _ = writeln!(text, "checksum {:016x}", checksum(&text));
    text
}

/// Returns the slots of a file; `None` if it is damaged.
fn parse(text: &str) -> Option<KeptSlots> {
    let checked = text.strip_suffix('\n')?.rfind('\n')? + 1;
    let (text, last) = text.split_at(checked);
    let found = u64::from_str_radix(last.trim_end().strip_prefix("checksum ")?, 16).ok()?;
    let mut lines = text.lines();
    if found != checksum(text) || lines.next()? != FIRST_LINE {
        return None;
    }
    let identity = lines.next()?.strip_prefix("identity ")?.to_owned();
    let revision = lines.next()?.strip_prefix("revision ")?.parse().ok()?;
    let folder_id = u64::from_str_radix(lines.next()?.strip_prefix("folder ")?, 16).ok()?;
    let mut slots = Vec::new();
    for line in lines {
        let (set, rest) = line.strip_prefix("slots ")?.split_once(" epoch ")?;
        let (epoch, first_record) = rest.split_once(" first-record ")?;
        let (epoch, first_record) = (epoch.parse().ok()?, first_record.parse().ok()?);
        let set: SlotSet = set.parse().ok()?;
        slots.extend(set.iter().map(|slot| KeptSlot { slot, epoch, first_record }));
    }
    slots.sort_by_key(|kept| kept.slot);
    Some(KeptSlots { data: Data { identity, revision }, folder_id, slots })
}

/// Returns the XXH3-64 of the lines.
fn checksum(lines: &str) -> u64 {
    KeyHash::of(lines.as_bytes(), 0).to_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> KeptSlots {
        let data = Data { identity: "5f2a 1790000000000".to_owned(), revision: 31 };
        let slots = [(0, 7, 0), (1, 7, 0), (2, 9, 1 << 40), (16_383, 7, 0)];
        let slots = slots.map(|(slot, epoch, first_record)| KeptSlot { slot, epoch, first_record });
        KeptSlots { data, folder_id: 0x1234, slots: slots.into() }
    }

    #[test]
    fn stored_slots_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        for slots in [sample(), KeptSlots::default()] {
            keep_slots(folder.path(), &slots);
            let text = fs::read_to_string(folder.path().join(FILE)).expect("a file");
            assert_eq!(parse(&text), Some(slots));
        }
    }

    #[test]
    fn a_file_is_as_its_page_describes() {
        let expected = "nuthatch node slots 1\n\
                        identity 5f2a 1790000000000\n\
                        revision 31\n\
                        folder 0000000000001234\n\
                        slots 0-1,16383 epoch 7 first-record 0\n\
                        slots 2 epoch 9 first-record 1099511627776\n\
                        checksum ";
        let text = format(&sample());
        assert_eq!(text.strip_prefix(expected).map(str::len), Some(17), "{text}");
    }

    #[test]
    fn a_damaged_file_has_no_slots() {
        let text = format(&sample());
        for at in 0..text.len() {
            assert_eq!(parse(&text[..at]), None, "the first {at} bytes");
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8(bytes).expect("ASCII");
            assert!(parse(&changed).is_none_or(|slots| slots == sample()), "byte {at}");
        }
    }
}
