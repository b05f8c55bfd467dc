//! The state of a follower's folder: which generation it has.

use super::folder_name::folder_name;
use crate::manifest::Generation;
use serde::{Deserialize, Serialize};

/// The generation in a folder, and the one that replaces it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// The serial number of the last manifest that had the generation as the current one; 0 if
    /// there is no generation.
    pub(super) serial: u64,
    /// `None` until the first swap is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) generation: Option<Generation>,
    /// The names of the folders of generations that were here before, the latest one first.
    #[serde(default)]
    pub(super) previous: Vec<String>,
    /// The generation whose link is being made, or was made last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<Next>,
    /// Whether the caller has not yet confirmed the swap to the generation.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) is_unconfirmed: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// A generation that replaces the one in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Next {
    /// The serial number of its manifest.
    pub(super) serial: u64,
    pub(super) generation: Generation,
}

impl State {
    /// Returns the state after a swap to the next generation. At most `max_previous` names of
    /// earlier ones stay. No swap is unconfirmed but an earlier one to the same generation.
    pub(super) fn advance(last: Option<&Self>, next: Next, max_previous: usize) -> Self {
        let Next { serial, generation } = next;
        let name = folder_name(&generation);
        let last_name = last.and_then(|last| last.generation.as_ref()).map(folder_name);
        let is_unconfirmed =
            last.is_some_and(|last| last.is_unconfirmed) && last_name.as_ref() == Some(&name);
        let earlier = last.into_iter().flat_map(|last| last.previous.iter().cloned());
        let mut previous: Vec<String> = Vec::new();
        for earlier in last_name.into_iter().chain(earlier) {
            if earlier != name && !previous.contains(&earlier) {
                previous.push(earlier);
            }
        }
        previous.truncate(max_previous);
        Self { serial, generation: Some(generation), previous, next: None, is_unconfirmed }
    }
}
