//! The permit to serve, checked around each batch of requests.

use super::Cluster;
use nuthatch_cluster::boot_clock::BootTime;

/// The permit of the node at the beginning of a batch.
///
/// A batch may be interrupted for any time, by `SIGSTOP` or a suspended machine, while another node
/// takes the slots. So the replies of a batch leave only if the same permit held until the last of
/// its requests was executed. Replies that leave later are valid: their requests were executed in
/// time.
#[derive(Clone, Copy)]
pub(crate) struct BatchPermit<'a> {
    /// The cluster; `None` for a server without one.
    cluster: Option<&'a Cluster>,
    /// When the permit ends; the boot of the machine if it had ended before the batch.
    until: BootTime,
}

impl<'a> BatchPermit<'a> {
    /// Begins a batch.
    #[inline]
    pub(crate) fn begin(cluster: Option<&'a Cluster>) -> Self {
        match cluster {
            None => Self { cluster, until: BootTime::default() },
            Some(cluster) => Self::begin_in(cluster),
        }
    }

    fn begin_in(cluster: &'a Cluster) -> Self {
        let until = cluster.permit.until();
        let is_held = cluster.clock.now() < until;
        Self { cluster: Some(cluster), until: if is_held { until } else { BootTime::default() } }
    }

    /// Returns whether the node was permitted to serve its slots when the batch began.
    #[inline]
    pub(crate) fn is_held(self) -> bool {
        self.cluster.is_none() || self.until > BootTime::default()
    }

    /// Returns whether replies of the batch may leave: the permit has held since the batch began,
    /// or there was none, so that requests with keys were refused.
    ///
    /// A permit that was ended early has an earlier end. One that was extended meanwhile may be of
    /// another lease, so it is not considered.
    #[inline]
    pub(crate) fn has_held(self) -> bool {
        match self.cluster {
            None => true,
            Some(_) if !self.is_held() => true,
            Some(cluster) => {
                cluster.clock.now() < self.until && cluster.permit.until() >= self.until
            }
        }
    }
}
