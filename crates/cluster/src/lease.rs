//! The rule of safety: until when a node may serve the slots that it owns.
//!
//! A node may serve until `sent + ttl - margin`: `sent` is the time by its own clock at which it
//! sent the last request that extended its lease, `ttl` the time to live that etcd has confirmed.
//! etcd counts the same time from the arrival of the request, so the lease exists for `margin`
//! longer than the node serves, whatever the delays. The margin covers different speeds of the two
//! clocks and the time between the check and the end of a batch of requests.
//!
//! A member of etcd that was paused, and does not know yet that another one was elected, responds
//! to a keep-alive without any effect. So a keep-alive counts only after a read of the node's key
//! that was sent later, is linearizable, and reports the same term of Raft: then the member that
//! extended the lease was the leader. A later leader extends all leases when it is elected.

use crate::boot_clock::BootTime;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The time until which a node may serve. Threads that execute requests share it.
///
/// A thread checks it before it executes a batch, and again before it sends the replies: then every
/// reply was computed while the node was permitted to serve, even if the process was stopped or the
/// machine suspended in between.
#[derive(Debug, Default)]
pub struct Permit {
    until: AtomicU64,
    /// The end of the part that a lease covers.
    leased_until: AtomicU64,
    losses: AtomicU64,
}

impl Permit {
    /// Returns whether the node may serve at this time.
    pub fn holds(&self, now: BootTime) -> bool {
        now.nanos() < self.until.load(Ordering::Acquire)
    }

    /// Returns whether a lease covers this time. Without one, the node may still
    /// [serve](Self::holds), and others may serve its slots, too.
    pub fn holds_lease(&self, now: BootTime) -> bool {
        now < self.leased_until()
    }

    /// Returns whether the node may serve at this time, and why.
    pub fn permission(&self, now: BootTime) -> Permission {
        match (self.holds_lease(now), self.holds(now)) {
            (true, _) => Permission::Lease,
            (false, true) => Permission::WithoutLease,
            (false, false) => Permission::None,
        }
    }

    /// Returns the time at which the permission ends; the boot of the machine without one.
    pub fn until(&self) -> BootTime {
        BootTime::from_nanos(self.until.load(Ordering::Acquire))
    }

    /// Returns the time at which the part of the permission ends that a lease covers.
    pub fn leased_until(&self) -> BootTime {
        BootTime::from_nanos(self.leased_until.load(Ordering::Acquire))
    }

    /// Sets the time at which the permission ends; the boot of the machine if the lease is lost.
    pub fn set(&self, until: BootTime) {
        self.until.store(until.nanos(), Ordering::Release);
        let before = self.leased_until.swap(until.nanos(), Ordering::AcqRel);
        if before > 0 && until == BootTime::default() {
            self.losses.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Extends the permission beyond the lease.
    pub fn extend_without_lease(&self, until: BootTime) {
        self.until.fetch_max(until.nanos(), Ordering::AcqRel);
    }

    /// Returns how often the lease was lost. A lease whose end etcd has not reported yet does not
    /// count.
    pub fn losses(&self) -> u64 {
        self.losses.load(Ordering::Relaxed)
    }
}

/// Whether a node may serve its slots at a time, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// It has a lease, so no other node serves them.
    Lease,
    /// It has no lease, and etcd cannot be reached: other nodes may serve them, too.
    WithoutLease,
    /// It may not.
    None,
}

/// The step of a renewal that is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Renewal {
    None,
    /// A keep-alive was sent at this time.
    Sent(BootTime),
    /// A keep-alive that was sent at `sent` has extended the lease, if the member that responded
    /// in `term` was the leader.
    Unconfirmed {
        sent: BootTime,
        ttl: Duration,
        term: u64,
    },
}

/// A lease in etcd, as its owner knows it.
#[derive(Clone, Debug)]
pub struct Lease {
    id: i64,
    ttl: Duration,
    margin: Duration,
    until: BootTime,
    next: BootTime,
    renewal: Renewal,
}

impl Lease {
    /// Creates a lease that was granted for a request sent at `sent`. A grant is committed by a
    /// majority, so it needs no confirmation.
    #[must_use]
    pub fn granted(id: i64, sent: BootTime, ttl: Duration, margin: Duration) -> Self {
        let until = sent.plus(ttl).minus(margin);
        let next = sent.plus(ttl / 4);
        Self { id, ttl, margin, until, next, renewal: Renewal::None }
    }

    /// Returns the identifier.
    #[must_use]
    pub fn id(&self) -> i64 {
        self.id
    }

    /// Returns until when the node may serve.
    #[must_use]
    pub fn until(&self) -> BootTime {
        self.until
    }

    /// Returns when the next keep-alive should be sent.
    #[must_use]
    pub fn next(&self) -> BootTime {
        self.next
    }

    /// Notes that a keep-alive is sent now.
    pub fn send(&mut self, now: BootTime) {
        self.renewal = Renewal::Sent(now);
        self.next = now.plus(self.ttl / 4);
    }

    /// Notes the response to the keep-alive. A read of the node's key has to confirm it.
    pub fn kept_alive(&mut self, ttl: Duration, term: u64) {
        if let Renewal::Sent(sent) = self.renewal {
            self.renewal = Renewal::Unconfirmed { sent, ttl, term };
        }
    }

    /// Notes the response to a linearizable read that was sent after the response to the
    /// keep-alive, and has found the node's key bound to this lease. Returns whether the permission
    /// was extended.
    pub fn confirmed(&mut self, term: u64) -> bool {
        let renewal = std::mem::replace(&mut self.renewal, Renewal::None);
        let Renewal::Unconfirmed { sent, ttl, term: of_renewal } = renewal else { return false };
        let until = sent.plus(ttl).minus(self.margin);
        if of_renewal != term || until <= self.until {
            return false;
        }
        self.until = until;
        true
    }

    /// Notes that a step of the renewal has failed, and has to be repeated at `retry`.
    pub fn failed(&mut self, retry: BootTime) {
        self.renewal = Renewal::None;
        self.next = retry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_testing::random::Random;

    const TTL: Duration = Duration::from_secs(8);
    const MARGIN: Duration = Duration::from_secs(1);

    /// A model of etcd, in which a former leader may believe that it still is the leader.
    struct Model {
        /// When the lease expires by the clock of the leader; `None` after that.
        expires: Option<BootTime>,
        term: u64,
    }

    impl Model {
        fn advance(&mut self, now: BootTime) {
            self.expires = self.expires.filter(|expires| now < *expires);
        }

        /// Extends the lease, as another leader does when it is elected.
        fn elect(&mut self, now: BootTime) {
            self.term += 1;
            self.expires = self.expires.map(|_| now.plus(TTL));
        }
    }

    /// Runs one owner against the model, with delays, lost responses, pauses of the process and
    /// elections. Returns how often the permission was extended.
    fn run(seed: u64, check_term: bool) -> Result<u32, String> {
        let mut random = Random::new(seed);
        let delay = |random: &mut Random| {
            let longest = [1, 20, 500, 5_000][random.below(4) as usize];
            Duration::from_millis(random.below(longest) + 1)
        };
        let mut now = BootTime::from_nanos(1_000_000_000_000);
        let mut model = Model { expires: Some(now.plus(TTL)), term: 3 };
        let mut lease = Lease::granted(1, now, TTL, MARGIN);
        let permit = Permit::default();
        let mut extended = 0;
        for _ in 0..300 {
            permit.set(lease.until());
            lease.send(now);
            now = now.plus(delay(&mut random));
            model.advance(now);
            // A former leader that was paused responds with its own term, and has no effect.
            let is_former = random.below(6) == 0;
            if is_former {
                lease.kept_alive(TTL, model.term - 1);
            } else if model.expires.is_some() {
                model.expires = Some(now.plus(TTL));
                lease.kept_alive(TTL, model.term);
            }
            if random.below(5) == 0 {
                lease.failed(now);
            }
            if random.below(6) == 0 {
                model.elect(now);
            }
            now = now.plus(delay(&mut random));
            model.advance(now);
            let term = if check_term || !is_former { model.term } else { model.term - 1 };
            if model.expires.is_some() && lease.confirmed(term) {
                extended += 1;
            }
            permit.set(lease.until());
            // The process may be stopped at any point, and checks the permit when it continues.
            for _ in 0..4 {
                now = now.plus(delay(&mut random));
                model.advance(now);
                if permit.holds(now) && model.expires.is_none() {
                    return Err(format!("seed {seed}: serves without a lease"));
                }
            }
            if model.expires.is_none() {
                break;
            }
        }
        Ok(extended)
    }

    #[test]
    fn a_node_serves_only_while_its_lease_exists() {
        let extended: u32 = (0..3000).map(|seed| run(seed, true).expect("safe")).sum();
        assert!(extended > 3000, "{extended}");
    }

    /// Checks that the model finds a violation if terms are not compared.
    #[test]
    fn a_former_leader_of_etcd_would_extend_a_lease_that_expires() {
        assert!((0..3000).any(|seed| run(seed, false).is_err()));
    }

    #[test]
    fn a_lost_response_extends_nothing() {
        let start = BootTime::from_nanos(1_000_000_000_000);
        let mut lease = Lease::granted(1, start, TTL, MARGIN);
        let until = start.plus(TTL).minus(MARGIN);
        assert_eq!(lease.until(), until);
        let later = start.plus(Duration::from_secs(2));
        lease.send(later);
        assert!(!lease.confirmed(1), "no response to the keep-alive");
        lease.send(later);
        lease.kept_alive(TTL, 1);
        lease.failed(later);
        assert!(!lease.confirmed(1), "the renewal has failed");
        assert_eq!(lease.until(), until);
        lease.send(later);
        lease.kept_alive(TTL, 1);
        assert!(lease.confirmed(1));
        assert_eq!(lease.until(), later.plus(TTL).minus(MARGIN));
    }
}
