//! The state of a follower's folder: which generation it has.

use crate::manifest::Generation;
use serde::{Deserialize, Serialize};

/// The generation in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// The serial number of the last manifest that had it as the current generation.
    pub(super) serial: u64,
    pub(super) generation: Generation,
}
