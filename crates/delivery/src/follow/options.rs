//! Options for following.

use super::bandwidth::Bandwidth;
use super::deltas::DeltaOptions;
use crate::signature::TrustedKey;

/// Options for following.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// The keys of which one must have signed the manifest. With none, the default, signatures are
    /// not checked.
    pub trusted_keys: Vec<TrustedKey>,
    /// The limit of bytes that are fetched in a second, which followers can share. `None`, the
    /// default, is for no limit.
    pub bandwidth: Option<Bandwidth>,
    /// Number of generations before the current one that stay in the folder; 1 by default.
    pub previous: usize,
    /// How files are built from deltas.
    pub deltas: DeltaOptions,
    /// Whether the caller confirms each swap, for example when it has started a command that a swap
    /// needs. A swap that was not confirmed before the follower ended is returned again by
    /// [`Group::take_completed`](super::Group::take_completed) of the next one. `false` by default.
    pub confirms_swaps: bool,
}

impl Default for FollowOptions {
    fn default() -> Self {
        let deltas = DeltaOptions::default();
        Self {
            trusted_keys: Vec::new(),
            bandwidth: None,
            previous: 1,
            deltas,
            confirms_swaps: false,
        }
    }
}
