//! What a machine that loses power may leave of a file: bytes that were synced are there; of those
//! written since, any may be there and any not, by whole sectors and in any order.

use crate::disk::Event;
use nuthatch_testing::random::Random;

/// The disk writes no less than this at once.
const SECTOR: usize = 512;

/// Bytes that were written and are not safe yet.
type Pending = Vec<(u64, Vec<u8>)>;

/// One thing that may be left.
pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
    /// What the test said last before.
    pub(crate) said: usize,
    /// Whether it says so right now.
    pub(crate) saying: bool,
    /// Where, and what of the bytes that were not safe is there.
    pub(crate) story: String,
}

/// Calls back with what may be left after each of the events.
pub(crate) fn after_each(events: &[Event], mut check: impl FnMut(Image)) {
    let (mut safe, mut pending, mut said) = (Vec::new(), Pending::new(), 0);
    let mut random = Random::new(0x2545_F491_4F6C_DD1D);
    for (number, event) in events.iter().enumerate() {
        let saying = matches!(event, Event::Said(_));
        match event {
            Event::Said(what) => said = *what,
            Event::Sync => {
                pending.drain(..).for_each(|(offset, bytes)| write(&mut safe, offset, &bytes));
            }
            Event::Write { offset, bytes, .. } => pending.push((*offset, bytes.clone())),
        }
        for (chosen, story) in choices(&pending, &mut random) {
            let mut bytes = safe.clone();
            for (offset, new) in &chosen {
                write(&mut bytes, *offset, new);
            }
            let story = format!("after event {number}, {story}");
            check(Image { bytes, said, saying, story });
        }
        // Writes that are safe at once were not while they were under way: that was checked above.
        if let Event::Write { offset, bytes, safe: true } = event {
            pending.pop();
            write(&mut safe, *offset, bytes);
            let story = format!("event {number} is safe");
            check(Image { bytes: safe.clone(), said, saying, story });
        }
    }
}

/// Some of what may have reached the disk: nothing, all, all but one, one alone, and by lot.
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
    for lot in 0..4 {
        let some = pending.iter().filter(|_| random.below(2) == 0).cloned().collect();
        choices.push((some, format!("lot {lot} of the writes")));
        let sectors = pending.iter().flat_map(|(offset, bytes)| by_sectors(*offset, bytes));
        let some = sectors.filter(|_| random.below(2) == 0).collect();
        choices.push((some, format!("lot {lot} of their sectors")));
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
        // What a file has between its old end and what was written behind it reads as zeros.
        file.resize(end, 0);
    }
    file[start..end].copy_from_slice(bytes);
}
