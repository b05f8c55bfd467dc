//! Plans: which node should own which slot.
//!
//! All nodes compute the plan from the same nodes and owners, so they agree without a coordinator.
//! A plan has two properties: each node has its quota of slots, and no other plan with these quotas
//! moves fewer slots.

/// Returns the node that should own each slot.
///
/// Nodes are numbered in the order of their identifiers. `weights` has the weight of each: its part
/// in proportion to the sum, where 0 counts as 1. `owners` has the owner of each slot: `None` for a
/// slot without an owner, and for one that has to leave its owner. Without nodes, the plan has no
/// owners. Takes time linear in slots and nodes.
///
/// # Panics
///
/// If an owner has no weight.
#[must_use]
pub fn plan(owners: &[Option<u16>], weights: &[u32]) -> Vec<Option<u16>> {
    if weights.is_empty() {
        return vec![None; owners.len()];
    }
    let mut owners = owners.to_vec();
    let mut counts = vec![0; weights.len()];
    for owner in owners.iter().flatten() {
        counts[usize::from(*owner)] += 1;
    }
    let quotas = quotas(owners.len(), weights, &counts);
    // The highest slots leave a node that has too many: ranges stay as long as possible.
    for owner in owners.iter_mut().rev() {
        if let Some(at) = owner.map(usize::from)
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
        *owner = Some(taker as u16);
    }
    owners
}

/// Returns the number of slots of each node: its exact share, rounded so that the sum is `slots`.
/// Those with the largest remainders are rounded up; of equal remainders, those of nodes that own
/// the additional slot already, then those of the first nodes.
fn quotas(slots: usize, weights: &[u32], counts: &[usize]) -> Vec<usize> {
    let total: u64 = weights.iter().map(|weight| u64::from(*weight).max(1)).sum();
    let exact: Vec<(usize, u64)> = weights
        .iter()
        .map(|weight| {
            let product = slots as u64 * u64::from(*weight).max(1);
            ((product / total) as usize, product % total)
        })
        .collect();
    let mut quotas: Vec<usize> = exact.iter().map(|(floor, _)| *floor).collect();
    let rest = slots - quotas.iter().sum::<usize>();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|at| {
        let (floor, remainder) = exact[*at];
        (u64::MAX - remainder, counts[*at] <= floor, *at)
    });
    for at in order.into_iter().take(rest) {
        quotas[at] += 1;
    }
    quotas
}

/// Returns the number of slots with another owner in the plan.
#[must_use]
pub fn moves(owners: &[Option<u16>], planned: &[Option<u16>]) -> usize {
    owners.iter().zip(planned).filter(|(owner, planned)| owner != planned).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::SLOTS;
    use nuthatch_testing::random::Random;

    fn counts(owners: &[Option<u16>], nodes: usize) -> Vec<usize> {
        let mut counts = vec![0; nodes];
        owners.iter().flatten().for_each(|owner| counts[usize::from(*owner)] += 1);
        counts
    }

    #[test]
    fn the_first_plan_has_one_range_for_each_node() {
        let planned = plan(&vec![None; SLOTS], &[1; 3]);
        assert_eq!(counts(&planned, 3), [5462, 5461, 5461]);
        assert!(planned.is_sorted());
        assert_eq!(plan(&planned, &[]), vec![None; SLOTS]);
    }

    #[test]
    fn nodes_differ_by_one_slot_and_no_slot_moves_without_need() {
        let mut random = Random::new(1);
        let mut owners = vec![None; SLOTS];
        for _ in 0..150 {
            let nodes = 1 + random.below(40) as usize;
            // Slots of nodes that are gone have no owner, and some others have lost theirs.
            for owner in &mut owners {
                *owner = owner.filter(|at| usize::from(*at) < nodes && random.below(90) > 0);
            }
            let planned = plan(&owners, &vec![1; nodes]);
            let (min, max) = (SLOTS / nodes, SLOTS.div_ceil(nodes));
            let after = counts(&planned, nodes);
            assert!(after.iter().all(|count| (min..=max).contains(count)), "{after:?}");
            assert!(planned.iter().all(Option::is_some));
            // Any plan moves slots without an owner, and slots above the quota of a node. As many
            // nodes as there are larger quotas keep one more.
            let before = counts(&owners, nodes);
            let above = before.iter().filter(|count| **count > min).count();
            let kept: usize = before.iter().map(|count| (*count).min(min)).sum();
            let kept = kept + above.min(SLOTS - min * nodes);
            assert_eq!(moves(&owners, &planned), SLOTS - kept);
            assert_eq!(plan(&planned, &vec![1; nodes]), planned, "a plan is stable");
            owners = planned;
        }
    }

    #[test]
    fn weights_divide_the_slots() {
        let mut random = Random::new(2);
        let mut owners = vec![None; SLOTS];
        for _ in 0..50 {
            let nodes = 1 + random.below(12) as usize;
            let weights: Vec<u32> = (0..nodes).map(|_| random.below(70_000) as u32).collect();
            for owner in &mut owners {
                *owner = owner.filter(|at: &u16| usize::from(*at) < nodes);
            }
            let planned = plan(&owners, &weights);
            let total: f64 = weights.iter().map(|weight| f64::from((*weight).max(1))).sum();
            for (weight, count) in weights.iter().zip(counts(&planned, nodes)) {
                let exact = SLOTS as f64 * f64::from((*weight).max(1)) / total;
                assert!((count as f64 - exact).abs() < 1.0, "{exact}: {count}");
            }
            assert_eq!(plan(&planned, &weights), planned, "a plan is stable");
            owners = planned;
        }
    }
}
