//! Plans: which node should own which slot.
//!
//! All nodes compute the plan from the same nodes and owners, so they agree without a coordinator.
//! A plan has two properties: each node has its quota of slots, and no other plan with these quotas
//! moves fewer slots.

use crate::node_id::NodeId;
use crate::slot::SLOTS;

/// A node that takes its part of the slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The node.
    pub id: NodeId,
    /// Its part in proportion to all weights. At least 1.
    pub weight: u32,
}

/// Returns the node that should own each slot.
///
/// `owners` has the owner of each slot: `None` for a slot without an owner, or one that has to leave
/// its owner. Owners that `shares` does not contain count as `None`. `shares` is sorted by `id`.
/// Without shares, all slots are without an owner. Takes time linear in slots and nodes.
#[must_use]
pub fn plan(owners: &[Option<NodeId>], shares: &[Share]) -> Vec<Option<NodeId>> {
    if shares.is_empty() {
        return vec![None; owners.len()];
    }
    let place = |id: NodeId| shares.binary_search_by_key(&id, |share| share.id).ok();
    let mut last = (None, None);
    let mut owners: Vec<Option<usize>> = owners
        .iter()
        .map(|owner| {
            // Adjacent slots mostly have one owner.
            if *owner != last.0 {
                last = (*owner, owner.and_then(place));
            }
            last.1
        })
        .collect();
    let mut counts = vec![0; shares.len()];
    owners.iter().flatten().for_each(|owner| counts[*owner] += 1);
    let quotas = quotas(owners.len(), shares, &counts);
    // The highest slots leave a node that has too many: ranges stay as long as possible.
    for owner in owners.iter_mut().rev() {
        if let Some(at) = *owner
            && counts[at] > quotas[at]
        {
            counts[at] -= 1;
            *owner = None;
        }
    }
    let mut taker = 0;
    for owner in owners.iter_mut().filter(|owner| owner.is_none()) {
        while counts[taker] == quotas[taker] {
            taker += 1;
        }
        counts[taker] += 1;
        *owner = Some(taker);
    }
    owners.into_iter().map(|owner| owner.map(|at| shares[at].id)).collect()
}

/// Returns the number of slots of each node: its exact share, rounded so that the sum is `slots`.
/// Those with the largest remainders are rounded up; of equal remainders, those of nodes that own
/// the additional slot already, then those of the first nodes.
fn quotas(slots: usize, shares: &[Share], counts: &[usize]) -> Vec<usize> {
    let weight = |share: &Share| u64::from(share.weight.max(1));
    let total: u64 = shares.iter().map(weight).sum();
    let exact: Vec<(usize, u64)> = shares
        .iter()
        .map(|share| {
            let product = slots as u64 * weight(share);
            ((product / total) as usize, product % total)
        })
        .collect();
    let mut quotas: Vec<usize> = exact.iter().map(|(floor, _)| *floor).collect();
    let rest = slots - quotas.iter().sum::<usize>();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by_key(|at| {
        let (floor, remainder) = exact[*at];
        (u64::MAX - remainder, counts[*at] <= floor, *at)
    });
    order.iter().take(rest).for_each(|at| quotas[*at] += 1);
    quotas
}

/// Returns the number of slots with another owner in the plan.
#[must_use]
pub fn moves(owners: &[Option<NodeId>], planned: &[Option<NodeId>]) -> usize {
    owners.iter().zip(planned).filter(|(owner, planned)| owner != planned).count()
}

/// Returns the exact number of slots of each node if `shares` have equal weights: the smallest and
/// the largest quota.
#[must_use]
pub fn equal_quotas(nodes: usize) -> (usize, usize) {
    (SLOTS / nodes.max(1), SLOTS.div_ceil(nodes.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_testing::random::Random;
    use std::collections::BTreeMap;

    fn counts(owners: &[Option<NodeId>]) -> BTreeMap<NodeId, usize> {
        let mut counts = BTreeMap::new();
        owners.iter().flatten().for_each(|id| *counts.entry(*id).or_default() += 1);
        counts
    }

    fn shares(numbers: impl IntoIterator<Item = u32>) -> Vec<Share> {
        let share = |number| Share { id: NodeId::numbered(number), weight: 1 };
        numbers.into_iter().map(share).collect()
    }

    #[test]
    fn the_first_plan_has_one_range_for_each_node() {
        let planned = plan(&vec![None; SLOTS], &shares(1..=3));
        assert_eq!(counts(&planned).into_values().collect::<Vec<_>>(), [5462, 5461, 5461]);
        assert!(planned.is_sorted());
        assert_eq!(plan(&planned, &[]), vec![None; SLOTS]);
    }

    #[test]
    fn nodes_differ_by_one_slot_and_no_slot_moves_without_need() {
        let mut random = Random::new(1);
        let mut owners = vec![None; SLOTS];
        for _ in 0..150 {
            let nodes = shares((1..=40).filter(|_| random.below(2) == 0));
            if nodes.is_empty() {
                continue;
            }
            let planned = plan(&owners, &nodes);
            let after = counts(&planned);
            assert!(planned.iter().all(Option::is_some));
            let (min, max) = equal_quotas(nodes.len());
            assert!(after.values().all(|count| (min..=max).contains(count)), "{after:?}");
            // Any plan moves slots without an owner, and slots above the quota of a node. Nodes with
            // more than the smaller quota keep one more, as long as there are larger quotas.
            let is_active = |id: &NodeId| nodes.iter().any(|share| share.id == *id);
            let before: Vec<usize> = counts(&owners)
                .into_iter()
                .filter_map(|(id, count)| is_active(&id).then_some(count))
                .collect();
            let larger = SLOTS - min * nodes.len();
            let above = before.iter().filter(|count| **count > min).count();
            let kept: usize = before.iter().map(|count| (*count).min(min)).sum();
            assert_eq!(moves(&owners, &planned), SLOTS - kept - above.min(larger));
            assert_eq!(plan(&planned, &nodes), planned, "a plan is stable");
            owners = planned;
            // Some slots lose their owners, as if a claim had failed.
            for _ in 0..random.below(50) {
                owners[random.below(SLOTS as u64) as usize] = None;
            }
        }
    }

    #[test]
    fn weights_divide_the_slots() {
        let mut random = Random::new(2);
        let mut owners = vec![None; SLOTS];
        for _ in 0..50 {
            let mut nodes = shares(1..=1 + random.below(12) as u32);
            for share in &mut nodes {
                share.weight = random.below(70_000) as u32;
            }
            let planned = plan(&owners, &nodes);
            let after = counts(&planned);
            let total: f64 = nodes.iter().map(|share| f64::from(share.weight.max(1))).sum();
            for share in &nodes {
                let exact = SLOTS as f64 * f64::from(share.weight.max(1)) / total;
                let found = after.get(&share.id).copied().unwrap_or_default();
                assert!((found as f64 - exact).abs() < 1.0, "{exact}: {found}");
            }
            assert_eq!(plan(&planned, &nodes), planned, "a plan is stable");
            owners = planned;
        }
    }
}
