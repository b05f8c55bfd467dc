//! Slots whose requests wait, since this node or another one is about to serve them.

use nuthatch_cluster::slot::SlotSet;
use std::time::{Duration, Instant};

/// How long requests for a slot wait before they are refused.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Slots whose requests wait for a limited time.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    /// Slots with the time until which their requests wait.
    groups: Vec<(Instant, SlotSet)>,
    /// Slots whose requests have waited for long enough.
    overdue: SlotSet,
}

impl Awaited {
    /// Notes which slots are about to be served. Returns those whose requests wait.
    pub(super) fn update(&mut self, expected: &SlotSet, now: Instant) -> SlotSet {
        self.overdue = self.overdue.common(expected);
        for (until, slots) in &mut self.groups {
            *slots = slots.common(expected);
            if *until <= now {
                self.overdue.add(slots);
            }
        }
        self.groups.retain(|(until, slots)| *until > now && !slots.is_empty());
        let mut waiting = SlotSet::new();
        self.groups.iter().for_each(|(_, slots)| waiting.add(slots));
        let mut new = expected.clone();
        new.subtract(&waiting);
        new.subtract(&self.overdue);
        if !new.is_empty() {
            waiting.add(&new);
            self.groups.push((now + MAX_WAIT, new));
        }
        waiting
    }

    /// Returns when requests for some slots have waited for long enough.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.groups.iter().map(|(until, _)| *until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_for_a_slot_wait_for_a_limited_time() {
        let set = |slots: &[u16]| slots.iter().copied().collect::<SlotSet>();
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut awaited = Awaited::default();
        assert_eq!(awaited.update(&set(&[1, 2]), start), set(&[1, 2]));
        assert_eq!(awaited.update(&set(&[2, 3]), at(1000)), set(&[2, 3]));
        assert_eq!(awaited.next_end(), Some(at(2000)));
        assert_eq!(awaited.update(&set(&[2, 3]), at(2000)), set(&[3]));
        assert_eq!(awaited.update(&set(&[2, 3]), at(3000)), set(&[]));
        assert_eq!(awaited.next_end(), None);
        // A slot that was served meanwhile is awaited anew.
        assert_eq!(awaited.update(&set(&[3]), at(3100)), set(&[]));
        assert_eq!(awaited.update(&set(&[2, 3]), at(3200)), set(&[2]));
    }
}
