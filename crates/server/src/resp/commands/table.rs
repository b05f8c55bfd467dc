//! All commands, by name and by number.

use super::connection::{acl, client, hello, transactions};
use super::container::container;
use super::data::{
    bitfield, bits, compressed, expiry, keys, lcs, lists, multi_key, numbers, object, ranges, scan,
    strings,
};
use super::name_index::Index;
use super::server::{cluster, command, config, debug, keyspace, latency, memory, slowlog};
use super::{Command, Found};
use crate::state::{Catalog, CommandInfo, RESP_COMMANDS, Server, Users, UsersError};
use nuthatch_cache::Cache;
use std::sync::{Arc, LazyLock};

/// The tables of all files.
const TABLES: &[&[Command]] = &[
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
    lists::COMMANDS,
    compressed::COMMANDS,
    hello::COMMANDS,
    transactions::COMMANDS,
    keyspace::COMMANDS,
    cluster::COMMANDS,
    debug::COMMANDS,
    CONTAINERS,
];

/// Commands whose first argument selects a subcommand.
const CONTAINERS: &[Command] = &[
    container("acl", -2),
    container("client", -2),
    container("cluster", -2),
    Command { run: command::command, ..container("command", -1) },
    container("config", -2),
    container("latency", -2),
    container("memory", -2),
    container("slowlog", -2),
];

/// The subcommands of these containers, in the same order, with full names such as `client|list`.
const GROUPS: &[&[Command]] = &[
    acl::SUBCOMMANDS,
    client::SUBCOMMANDS,
    cluster::SUBCOMMANDS,
    command::SUBCOMMANDS,
    config::SUBCOMMANDS,
    latency::SUBCOMMANDS,
    memory::SUBCOMMANDS,
    slowlog::SUBCOMMANDS,
];

static INDEX: Index = Index::new(TABLES);

/// Returns the command with this name, in any case.
#[inline]
pub fn find(name: &[u8]) -> Option<&'static Command> {
    lookup(name).map(|found| found.command)
}

/// Finds a command like [`find`], for [`execute_found`](super::execute_found).
#[inline]
pub fn lookup(name: &[u8]) -> Option<Found> {
    INDEX.find(name)
}

/// Returns whether the command with this name writes.
pub(crate) fn writes(name: &str) -> bool {
    find(name.as_bytes()).is_none_or(|command| command.flags.writes)
}

/// Returns all commands without subcommands.
pub fn all() -> impl Iterator<Item = &'static Command> {
    TABLES.iter().flat_map(|commands| commands.iter())
}

/// Returns the subcommands of a container; none for other commands.
fn parts(container: &Command) -> impl ExactSizeIterator<Item = Found> + use<> {
    let group = CONTAINERS.iter().position(|command| command.name == container.name);
    let mut first: usize = TABLES.iter().map(|table| table.len()).sum();
    first += GROUPS[..group.unwrap_or_default()].iter().map(|parts| parts.len()).sum::<usize>();
    let parts = group.map_or(&[][..], |group| GROUPS[group]);
    parts.iter().enumerate().map(move |(at, command)| Found { command, number: first + at })
}

/// Returns the subcommand of `container` with this name, in any case.
pub(crate) fn find_part(container: &Command, name: &[u8]) -> Option<Found> {
    parts(container).find(|found| last_name(found.command).eq_ignore_ascii_case(name))
}

/// Returns the last part of a name, such as `list` of `client|list`.
fn last_name(command: &Command) -> &'static [u8] {
    let name = command.name;
    name.split_once('|').map_or(name, |(_, last)| last).as_bytes()
}

/// Returns all commands in the order of their numbers.
fn everything() -> impl Iterator<Item = &'static Command> {
    TABLES.iter().chain(GROUPS).flat_map(|table| table.iter())
}

/// Returns the number of commands.
const fn count() -> usize {
    const fn len(tables: &[&[Command]]) -> usize {
        let (mut table, mut len) = (0, 0);
        while table < tables.len() {
            len += tables[table].len();
            table += 1;
        }
        len
    }
    len(TABLES) + len(GROUPS)
}

const _: () = assert!(count() == RESP_COMMANDS, "RESP_COMMANDS is the number of commands");

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
    Catalog::new(everything().map(|&Command { name, arity, keys, flags, .. }| CommandInfo {
        name,
        arity,
        keys,
        flags,
    }))
});

impl Server {
    /// Creates a server for this cache.
    pub fn new(cache: Arc<Cache>) -> Self {
        Self::with_catalog(cache, &CATALOG)
    }
}

impl Users {
    /// Parses the users of a text: see [`Users`].
    ///
    /// # Errors
    ///
    /// Names the line and word that is invalid.
    pub fn parse(text: &str) -> std::result::Result<Self, UsersError> {
        Self::parse_with(text, &CATALOG)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_at_its_index() {
        for (number, command) in everything().enumerate() {
            let name = command.name;
            let found = CATALOG.find(name.to_uppercase().as_bytes()).expect(name);
            assert_eq!((found.0, found.1.name), (number, name));
        }
        assert_eq!(everything().count(), count());
    }

    #[test]
    fn subcommands_are_named_after_their_container() {
        for command in all() {
            assert_eq!(command.flags.container, parts(command).len() > 0, "{}", command.name);
            for part in parts(command) {
                let (container, _) = part.command.name.split_once('|').expect("a bar");
                assert_eq!(container, command.name);
            }
        }
    }
}
