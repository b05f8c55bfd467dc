//! Following: keeps a folder at the current generation of a destination.
//!
//! A [`Follower`] has one folder, and a [`Group`] several that are swapped together. Modules import
//! in one direction: `group`, `follower`, `files`, `deltas`, `fetch`, `bandwidth` and `folder`.

mod bandwidth;
mod deltas;
mod fetch;
mod files;
mod folder;
mod folder_name;
mod follower;
mod group;
mod options;
mod state;
mod swapped;

use std::time::Duration;

pub use bandwidth::Bandwidth;
pub use deltas::DeltaOptions;
pub use follower::Follower;
pub use group::{Group, GroupChecked};
pub use options::FollowOptions;
pub use swapped::{Fetched, Swapped};

/// Returns the delay before the next check: the interval, shortened or lengthened by up to a tenth,
/// so that many followers do not ask at the same time. After each further failure in a row it
/// doubles, up to 16 times the interval; an interval below a second then counts as one. `random` is
/// a random number from 0 to 1.
pub fn delay_before_check(interval: Duration, failures: u32, random: f64) -> Duration {
    let base = if failures > 0 { interval.max(Duration::from_secs(1)) } else { interval };
    let doublings = failures.saturating_sub(1).min(4);
    base.mul_f64(f64::from(1_u32 << doublings) * (0.9 + 0.2 * random.clamp(0.0, 1.0)))
}
