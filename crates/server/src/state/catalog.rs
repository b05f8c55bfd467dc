//! The names and properties of all RESP commands, without the functions that execute them.
//!
//! Permissions, metrics and `COMMAND` use this catalog. `resp/commands/table.rs` creates it from
//! its tables, which have the functions, too. A command is identified by its number: its position
//! in the catalog.

/// Which arguments of a command are keys. The name of the command has index 0, as in the reply to
/// `COMMAND`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// The index of the first key, or 0 if there is none.
    pub first: usize,
    /// The index of the last key. Negative numbers count from the end: -1 is the last argument.
    pub last: i32,
    /// The distance between the indexes of keys; 2 if each key is followed by a value.
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

/// Properties of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Flags {
    /// It changes stored data.
    pub writes: bool,
    /// It runs while no other thread holds an epoch guard, so that other clients see all of its
    /// effects or none.
    pub exclusive: bool,
    /// It is allowed before login.
    pub before_auth: bool,
    /// It runs at once inside `MULTI` instead of being queued.
    pub never_queued: bool,
    /// Its first argument selects a subcommand, such as `list` of `client list`.
    pub container: bool,
    /// It reads its keys in snapshots, too. Without this flag, a command with a key of a snapshot
    /// is refused.
    pub reads_snapshots: bool,
}

impl Flags {
    /// A command that reads.
    pub const READS: Self = Self {
        writes: false,
        exclusive: false,
        before_auth: false,
        never_queued: false,
        container: false,
        reads_snapshots: false,
    };
    /// A command that reads keys of the cache and of snapshots.
    pub const LOOKS_UP: Self = Self { reads_snapshots: true, ..Self::READS };
    /// A command that writes.
    pub const WRITES: Self = Self { writes: true, ..Self::READS };
    /// A command that writes several keys atomically.
    pub const WRITES_TOGETHER: Self = Self { exclusive: true, ..Self::WRITES };
    /// A container of subcommands.
    pub(crate) const CONTAINER: Self = Self { container: true, ..Self::READS };
}

/// The number of RESP commands, with those such as `client|list`. `resp/commands/table.rs` compares
/// it with its tables at compile time.
pub(crate) const RESP_COMMANDS: usize = 143;

/// The properties of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandInfo {
    /// The name in lower case, such as `get` or `client|list`.
    pub(crate) name: &'static str,
    /// The number of arguments, the name included; if negative, the negated minimum.
    pub(crate) arity: i32,
    pub(crate) keys: Keys,
    pub(crate) flags: Flags,
}

/// All commands of RESP, in the order of their numbers.
#[derive(Debug)]
pub(crate) struct Catalog(Vec<CommandInfo>);

impl Catalog {
    pub(crate) fn new(commands: impl Iterator<Item = CommandInfo>) -> Self {
        Self(commands.collect())
    }

    /// Returns all commands, in the order of their numbers.
    pub(crate) fn all(&self) -> &[CommandInfo] {
        &self.0
    }

    /// Returns the commands that are not subcommands.
    pub(crate) fn top_level(&self) -> impl Iterator<Item = &CommandInfo> {
        self.0.iter().filter(|command| !command.name.contains('|'))
    }

    /// Returns the command with this full name, in any case, and its number.
    pub(crate) fn find(&self, name: &[u8]) -> Option<(usize, &CommandInfo)> {
        let mut commands = self.0.iter().enumerate();
        commands.find(|(_, command)| command.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Returns the subcommands of a container, with their numbers; none for other commands.
    pub(crate) fn parts(&self, container: &str) -> Vec<(usize, &CommandInfo)> {
        let is_part = |command: &CommandInfo| {
            command.name.split_once('|').is_some_and(|(first, _)| first == container)
        };
        self.0.iter().enumerate().filter(|(_, command)| is_part(command)).collect()
    }
}
