//! Commands whose first argument names what they do, and the numbers of all commands.

use super::connection::{acl, client};
use super::server::{command, config, latency, memory, slowlog};
use super::table::{self, TABLES};
use super::{Call, Command, Failure, Flags, Found, Keys, Result};

pub(crate) const COMMANDS: &[Command] = &[
    container("acl", -2),
    container("client", -2),
    Command { run: command::command, ..container("command", -1) },
    container("config", -2),
    container("latency", -2),
    container("memory", -2),
    container("slowlog", -2),
];

/// The commands behind each of those, in the same order. Their names are both, as `client|list`.
static GROUPS: &[&[Command]] = &[
    acl::SUBCOMMANDS,
    client::SUBCOMMANDS,
    command::SUBCOMMANDS,
    config::SUBCOMMANDS,
    latency::SUBCOMMANDS,
    memory::SUBCOMMANDS,
    slowlog::SUBCOMMANDS,
];

const fn container(name: &'static str, arity: i32) -> Command {
    // Never run: without a second name there are too few arguments, and with one it is another.
    Command { name, arity, keys: Keys::NONE, flags: Flags::CONTAINER, run: nothing }
}

fn nothing(_: &mut Call<'_>) -> Result {
    Ok(())
}

/// A command behind a container, over no key, that changes nothing that is stored.
pub(crate) const fn part(
    name: &'static str,
    arity: i32,
    run: fn(&mut Call<'_>) -> Result,
) -> Command {
    Command { name, arity, keys: Keys::NONE, flags: Flags::READS, run }
}

/// The answer to a number of arguments that the command behind a container does not take.
pub(crate) fn wrong(call: &Call<'_>, container: &str) -> Failure {
    let name = String::from_utf8_lossy(call.args.get(1));
    let text = "ERR unknown subcommand or wrong number of arguments for";
    Failure::Answer(format!("{text} '{name}'. Try {container} HELP.").into())
}

/// Answers the lines of a container's help.
pub(crate) fn help(call: &mut Call<'_>, lines: &[&str]) {
    call.reply().array(lines.len());
    for line in lines {
        call.reply().simple(line.as_bytes());
    }
}

/// The commands behind this one; none if it has no such.
pub(crate) fn of(container: &Command) -> impl ExactSizeIterator<Item = Found> + use<> {
    let group = COMMANDS.iter().position(|command| command.name == container.name);
    let mut first: usize = TABLES.iter().map(|table| table.len()).sum();
    first += GROUPS[..group.unwrap_or_default()].iter().map(|parts| parts.len()).sum::<usize>();
    let parts = group.map_or(&[][..], |group| GROUPS[group]);
    parts.iter().enumerate().map(move |(at, command)| Found { command, number: first + at })
}

/// The command behind `container` that `name` names, in any case.
pub(crate) fn find(container: &Command, name: &[u8]) -> Option<Found> {
    of(container).find(|found| last_name(found.command).eq_ignore_ascii_case(name))
}

/// The command of this name, which may be one such as `client|list`.
pub(crate) fn find_full(name: &[u8]) -> Option<Found> {
    match name.iter().position(|byte| *byte == b'|') {
        Some(bar) => find(table::find(&name[..bar])?, &name[bar + 1..]),
        None => table::lookup(name),
    }
}

/// The last part of a name, such as `list` in `client|list`.
fn last_name(command: &Command) -> &'static [u8] {
    let name = command.name;
    name.split_once('|').map_or(name, |(_, last)| last).as_bytes()
}

/// All commands, in the order of their numbers.
pub(crate) fn everything() -> impl Iterator<Item = &'static Command> {
    TABLES.iter().chain(GROUPS).flat_map(|table| table.iter())
}

/// How many numbers there are.
pub(crate) fn count() -> usize {
    TABLES.iter().chain(GROUPS).map(|table| table.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_number_of_its_own_and_is_found() {
        for (number, command) in everything().enumerate() {
            let name = command.name;
            let found = find_full(name.to_uppercase().as_bytes()).expect(name);
            assert_eq!((found.number, found.command.name), (number, name));
        }
        assert_eq!(everything().count(), count());
    }

    #[test]
    fn parts_are_named_after_their_container() {
        for command in table::all() {
            assert_eq!(command.flags.container, of(command).len() > 0, "{}", command.name);
            for part in of(command) {
                let (container, _) = part.command.name.split_once('|').expect("a bar");
                assert_eq!(container, command.name);
            }
        }
    }
}
