//! The states in which a power failure may leave a file: all synced bytes are there; of the bytes
//! written since, any set of whole sectors is.

use crate::disk::Event;
use nuthatch_testing::random::Random;

/// The unit in bytes that the disk writes atomically.
const SECTOR: usize = 512;

/// Bytes that were written and are not durable yet.
type Pending = Vec<(u64, Vec<u8>)>;

/// A possible state of the file after a power failure.
pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
    /// The last progress that the test recorded.
    pub(crate) progress: usize,
    /// Whether recording that progress was the last event.
    pub(crate) is_at_progress: bool,
    /// The last event, and which of the bytes that were not durable are there.
    pub(crate) description: String,
}

/// Calls `check` with possible states of the file after each event.
pub(crate) fn after_each(events: &[Event], mut check: impl FnMut(Image)) {
    let (mut durable, mut pending, mut progress) = (Vec::new(), Pending::new(), 0);
    let mut random = Random::new(0x2545_F491_4F6C_DD1D);
    for (number, event) in events.iter().enumerate() {
        let is_at_progress = matches!(event, Event::Progress(_));
        match event {
            Event::Progress(what) => progress = *what,
            Event::Sync => {
                pending.drain(..).for_each(|(offset, bytes)| write(&mut durable, offset, &bytes));
            }
            Event::Write { offset, bytes, .. } => pending.push((*offset, bytes.clone())),
        }
        for (chosen, description) in choices(&pending, &mut random) {
            let mut bytes = durable.clone();
            for (offset, new) in &chosen {
                write(&mut bytes, *offset, new);
            }
            let description = format!("after event {number}, {description}");
            check(Image { bytes, progress, is_at_progress, description });
        }
        // A write that is durable at once is not durable while it is in progress: checked above.
        if let Event::Write { offset, bytes, durable: true } = event {
            pending.pop();
            write(&mut durable, *offset, bytes);
            let description = format!("event {number} is durable");
            check(Image { bytes: durable.clone(), progress, is_at_progress, description });
        }
    }
}

/// Returns some sets of writes that may have reached the disk: none, all, all but one, one alone,
/// and random ones.
fn choices(pending: &Pending, random: &mut Random) -> Vec<(Pending, String)> {
    let mut choices = vec![(Vec::new(), "nothing".to_owned())];
    if pending.is_empty() {
        return choices;
    }
    choices.push((pending.clone(), "everything".to_owned()));
    for one in 0..pending.len() {
        choices.push((vec![pending[one].clone()], format!("write {one} alone")));
        let mut others = pending.clone();
        others.remove(one);
        choices.push((others, format!("all but write {one}")));
    }
    for number in 0..4 {
        let some = pending.iter().filter(|_| random.below(2) == 0).cloned().collect();
        choices.push((some, format!("random set {number} of the writes")));
        let sectors = pending.iter().flat_map(|(offset, bytes)| by_sectors(*offset, bytes));
        let some = sectors.filter(|_| random.below(2) == 0).collect();
        choices.push((some, format!("random set {number} of their sectors")));
    }
    choices
}

fn by_sectors(offset: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, Vec<u8>)> {
    let first = SECTOR - offset as usize % SECTOR;
    let (head, rest) = bytes.split_at(first.min(bytes.len()));
    let pieces = std::iter::once(head).chain(rest.chunks(SECTOR)).filter(|piece| !piece.is_empty());
    pieces.scan(offset, |at, piece| {
        let place = *at;
        *at += piece.len() as u64;
        Some((place, piece.to_vec()))
    })
}

fn write(file: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let (start, end) = (offset as usize, offset as usize + bytes.len());
    if file.len() < end {
        // Bytes between the old end of a file and a write beyond it read as zeros.
        file.resize(end, 0);
    }
    file[start..end].copy_from_slice(bytes);
}
