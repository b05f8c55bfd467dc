//! All commands, by name.

use super::connection::{hello, transactions};
use super::data::{
    bitfield, bits, expiry, keys, lcs, multi_key, numbers, object, ranges, scan, strings,
};
use super::name_index::Index;
use super::server::{debug, keyspace};
use super::subcommands;
use super::{Call, Result};

/// One command.
#[derive(Debug)]
pub struct Command {
    /// Its name, in lower case.
    pub name: &'static str,
    /// How many arguments it takes, its name among them; at least so many where it is negative.
    pub arity: i32,
    /// Where its keys are.
    pub keys: Keys,
    /// What else is known of it.
    pub flags: Flags,
    /// What it does.
    pub run: fn(&mut Call<'_>) -> Result,
}

impl Command {
    /// A command whose only key is its first argument.
    pub(crate) const fn of_key(
        name: &'static str,
        arity: i32,
        flags: Flags,
        run: fn(&mut Call<'_>) -> Result,
    ) -> Self {
        Self { name, arity, keys: Keys::ONE, flags, run }
    }
}

/// Where the keys of a command are among its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// The first key, or 0 where there is none.
    pub first: usize,
    /// The last one; negative numbers count from the end, -1 being the last argument.
    pub last: i32,
    /// From one key to the next.
    pub step: usize,
}

impl Keys {
    /// No keys.
    pub const NONE: Self = Self { first: 0, last: 0, step: 0 };
    /// The first argument.
    pub const ONE: Self = Self { first: 1, last: 1, step: 1 };
    /// The first two arguments.
    pub const TWO: Self = Self { first: 1, last: 2, step: 1 };
    /// All arguments.
    pub const ALL: Self = Self { first: 1, last: -1, step: 1 };
    /// Every other argument, from the first on.
    pub const PAIRS: Self = Self { first: 1, last: -1, step: 2 };
}

/// What is known of a command besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Flags {
    /// It changes what is stored.
    pub writes: bool,
    /// It runs while no other thread is in a turn, since it must be seen whole or not at all.
    pub exclusive: bool,
    /// A client may use it before it has proved who it is.
    pub before_auth: bool,
    /// It is executed at once within `MULTI` instead of being queued.
    pub never_queued: bool,
    /// Its first argument names a command of its own, such as `list` in `client list`.
    pub container: bool,
}

impl Flags {
    /// It reads.
    pub const READS: Self = Self {
        writes: false,
        exclusive: false,
        before_auth: false,
        never_queued: false,
        container: false,
    };
    /// It writes.
    pub const WRITES: Self = Self { writes: true, ..Self::READS };
    /// It writes several keys at once.
    pub const WRITES_TOGETHER: Self = Self { exclusive: true, ..Self::WRITES };
    /// Its first argument names a command of its own.
    pub(crate) const CONTAINER: Self = Self { container: true, ..Self::READS };
}

/// The commands of each file.
pub(crate) const TABLES: &[&[Command]] = &[
    strings::COMMANDS,
    multi_key::COMMANDS,
    ranges::COMMANDS,
    numbers::COMMANDS,
    keys::COMMANDS,
    object::COMMANDS,
    expiry::COMMANDS,
    scan::COMMANDS,
    bits::COMMANDS,
    bitfield::COMMANDS,
    lcs::COMMANDS,
    hello::COMMANDS,
    transactions::COMMANDS,
    keyspace::COMMANDS,
    debug::COMMANDS,
    subcommands::COMMANDS,
];

static INDEX: Index = Index::new(TABLES);

/// The command of this name, in any case.
#[inline]
pub fn find(name: &[u8]) -> Option<&'static Command> {
    lookup(name).map(|found| found.command)
}

/// A command that was found, and the number under which it is counted.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The command.
    pub command: &'static Command,
    pub(crate) number: usize,
}

/// As [`find`], for [`execute_found`](super::execute_found).
#[inline]
pub fn lookup(name: &[u8]) -> Option<Found> {
    INDEX.find(name)
}

/// All commands.
pub fn all() -> impl Iterator<Item = &'static Command> {
    TABLES.iter().flat_map(|commands| commands.iter())
}
