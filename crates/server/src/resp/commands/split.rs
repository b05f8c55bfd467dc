//! Commands whose requests are split if their keys are in slots of several nodes of a cluster.

use super::{Args, Command};

/// How the replies for keys in different slots are joined.
#[derive(Clone, Copy)]
pub(super) enum Joined {
    /// An array with a value for each key.
    Values,
    /// `OK`.
    Status,
    /// The sum of numbers.
    Sum,
}

impl Joined {
    /// Returns that of a command whose keys may belong to different slots.
    pub(super) fn of(command: &Command) -> Option<Self> {
        match command.name {
            "mget" => Some(Self::Values),
            "mset" => Some(Self::Status),
            "del" | "unlink" | "exists" | "touch" => Some(Self::Sum),
            _ => None,
        }
    }

    /// Returns the number of arguments for each key.
    pub(super) fn step(self) -> usize {
        if let Self::Status = self { 2 } else { 1 }
    }
}

/// Returns whether requests with keys in different slots can be split.
pub(super) fn can_split(command: &Command) -> bool {
    Joined::of(command).is_some()
}

/// Returns whether a request that can be split has all arguments for each key.
pub(super) fn is_whole(command: &Command, args: Args<'_>) -> bool {
    Joined::of(command).is_none_or(|joined| (args.len() - 1).is_multiple_of(joined.step()))
}
