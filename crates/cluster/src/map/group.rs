//! The ownership of 64 adjacent slots: one key in etcd.

use crate::node_id::NodeId;
use crate::slot::SlotRange;
use crate::text::InvalidText;
use std::fmt::Write;

/// Slots of a group.
pub const GROUP_SLOTS: usize = 64;
/// Groups of all slots.
pub const GROUPS: usize = crate::slot::SLOTS / GROUP_SLOTS;

/// How a slot came to its owner, and whether it moves to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// The owner has taken the slot without items.
    Taken,
    /// The previous owner has sent the items of the slot.
    Received,
    /// The owner sends the items to this node, which becomes the owner afterwards.
    Moving(NodeId),
}

/// The ownership of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// The node that serves the slot.
    pub owner: NodeId,
    /// Grows with every change of the owner.
    pub epoch: u64,
    /// How the slot came to its owner, and whether it moves.
    pub state: SlotState,
}

/// The ownership of 64 slots; `None` for a slot that never had an owner.
pub type Slots = [Option<Ownership>; GROUP_SLOTS];

/// The ownership of a group of slots at a revision of etcd. Slots with equal ownership are stored
/// once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    index: u8,
    revision: i64,
    is_absent: bool,
    runs: Vec<(SlotRange, Ownership)>,
}

impl Group {
    /// Returns the group with this index before its key exists, or after it was deleted at
    /// `revision`.
    #[must_use]
    pub fn absent(index: u8, revision: i64) -> Self {
        Self { index, revision, is_absent: true, runs: Vec::new() }
    }

    /// Creates a group from the ownership of its slots.
    #[must_use]
    pub fn new(index: u8, revision: i64, slots: &Slots) -> Self {
        let mut runs: Vec<(SlotRange, Ownership)> = Vec::new();
        let first = u16::from(index) * GROUP_SLOTS as u16;
        for (slot, ownership) in (first..).zip(slots) {
            let Some(ownership) = *ownership else { continue };
            match runs.last_mut() {
                Some((range, last)) if *last == ownership && range.last + 1 == slot => {
                    range.last = slot;
                }
                _ => runs.push((SlotRange { first: slot, last: slot }, ownership)),
            }
        }
        Self { index, revision, is_absent: false, runs }
    }

    /// Returns the number of the group, from 0 to 255.
    #[must_use]
    pub fn index(&self) -> u8 {
        self.index
    }

    /// Returns the revision at which the group changed last; 0 if its key never existed.
    #[must_use]
    pub fn revision(&self) -> i64 {
        self.revision
    }

    /// Returns the revision that etcd compares in a transaction: 0 if the key does not exist.
    #[must_use]
    pub fn compared_revision(&self) -> i64 {
        if self.is_absent { 0 } else { self.revision }
    }

    /// Returns the ranges of slots with an owner, in ascending order.
    #[must_use]
    pub fn runs(&self) -> &[(SlotRange, Ownership)] {
        &self.runs
    }

    /// Returns the ownership of each slot.
    #[must_use]
    pub fn slots(&self) -> Slots {
        let mut slots = [None; GROUP_SLOTS];
        for (range, ownership) in &self.runs {
            let first = usize::from(self.index) * GROUP_SLOTS;
            let (start, end) = range.indexes().into_inner();
            slots[start - first..=end - first].fill(Some(*ownership));
        }
        slots
    }

    /// Returns the ownership of a slot of this group.
    #[must_use]
    pub fn ownership(&self, slot: u16) -> Option<&Ownership> {
        let run = self.runs.iter().find(|(range, _)| range.last >= slot)?;
        (run.0.first <= slot).then_some(&run.1)
    }

    /// Returns the bytes that the group occupies in memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.runs.capacity() * size_of::<(SlotRange, Ownership)>()
    }

    /// Encodes the value of the group's key: a line for each range, `FIRST-LAST OWNER EPOCH STATE`.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        for (SlotRange { first, last }, Ownership { owner, epoch, state }) in &self.runs {
            let _ = write!(text, "{first}-{last} {owner} {epoch} ");
            let _ = match state {
                SlotState::Taken => writeln!(text, "taken"),
                SlotState::Received => writeln!(text, "received"),
                SlotState::Moving(target) => writeln!(text, "moving {target}"),
            };
        }
        text
    }

    /// Decodes the value of a group's key.
    ///
    /// # Errors
    ///
    /// Fails if a line is invalid, or if its slots belong to another group or follow out of order.
    pub fn decode(index: u8, revision: i64, value: &str) -> Result<Self, InvalidText> {
        let mut runs: Vec<(SlotRange, Ownership)> = Vec::new();
        let mut next = u16::from(index) * GROUP_SLOTS as u16;
        let end = next + (GROUP_SLOTS as u16 - 1);
        for (number, line) in (1..).zip(value.lines()) {
            let run = run(line).map_err(|error| error.at(format_args!("line {number}")))?;
            if run.0.first < next || run.0.last > end || run.0.first > run.0.last {
                let expected = format!("slots from {next} to {end}");
                let found = format!("{}-{}", run.0.first, run.0.last);
                let error = InvalidText::new(&expected, &found);
                return Err(error.at(format_args!("line {number}")));
            }
            next = run.0.last + 1;
            runs.push(run);
        }
        Ok(Self { index, revision, is_absent: false, runs })
    }
}

fn run(line: &str) -> Result<(SlotRange, Ownership), InvalidText> {
    let error = || {
        let expected = "FIRST-LAST OWNER EPOCH taken, received or moving TARGET";
        InvalidText::new(expected, line)
    };
    let words: Vec<&str> = line.split(' ').collect();
    let (range, owner, epoch, state) = match words[..] {
        [range, owner, epoch, "taken"] => (range, owner, epoch, SlotState::Taken),
        [range, owner, epoch, "received"] => (range, owner, epoch, SlotState::Received),
        [range, owner, epoch, "moving", target] => {
            (range, owner, epoch, SlotState::Moving(target.parse()?))
        }
        _ => return Err(error()),
    };
    let (first, last) = range.split_once('-').ok_or_else(error)?;
    let slot = |text: &str| text.parse::<u16>().map_err(|_| error());
    let range = SlotRange { first: slot(first)?, last: slot(last)? };
    let epoch = epoch.parse().map_err(|_| error())?;
    Ok((range, Ownership { owner: owner.parse()?, epoch, state }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots() -> Slots {
        let one = Ownership { owner: NodeId::numbered(1), epoch: 7, state: SlotState::Taken };
        let state = SlotState::Moving(NodeId::numbered(2));
        let mut slots = [Some(one); GROUP_SLOTS];
        slots[3] = None;
        slots[4] = Some(Ownership { state, ..one });
        slots[63] = Some(Ownership { epoch: 8, state: SlotState::Received, ..one });
        slots
    }

    #[test]
    fn a_group_is_decoded_as_it_was_encoded() {
        let group = Group::new(2, 9, &slots());
        assert_eq!(group.slots(), slots());
        assert_eq!(group.runs().len(), 4);
        assert_eq!(Group::decode(2, 9, &group.encode()), Ok(group.clone()));
        assert_eq!(group.ownership(131), None);
        assert_eq!(group.ownership(130).map(|ownership| ownership.epoch), Some(7));
        assert_eq!(group.ownership(191).map(|ownership| ownership.epoch), Some(8));
        assert_eq!(Group::decode(2, 1, "").expect("a group").runs(), []);
        assert_eq!(Group::absent(2, 5).compared_revision(), 0);
    }

    #[test]
    fn an_error_names_the_line() {
        let id = NodeId::numbered(1).to_string();
        for (value, error) in [
            ("0-1", "line 1: expected FIRST-LAST OWNER EPOCH"),
            ("0-1 me 1 taken", "line 1: expected 40 hexadecimal digits"),
            ("0-1 ID -1 taken", "line 1: expected FIRST-LAST"),
            ("0-1 ID 1 lost", "line 1: expected FIRST-LAST"),
            ("0-64 ID 1 taken", "line 1: expected slots from 0 to 63, found \"0-64\""),
            ("5-4 ID 1 taken", "line 1: expected slots from 0 to 63"),
            ("0-4 ID 1 taken\n4-5 ID 1 taken", "line 2: expected slots from 5 to 63"),
        ] {
            let value = value.replace("ID", &id);
            let found = Group::decode(0, 1, &value).expect_err(&value).to_string();
            assert!(found.starts_with(error), "{found}");
        }
    }
}
