//! `COMMAND`: information on commands.

use crate::resp::Reply;
use crate::resp::commands::container::{self, part};
use crate::resp::commands::failure::{REPLY_TOO_LONG, SYNTAX};
use crate::resp::commands::run::takes;
use crate::resp::commands::{Args, Call, Command, Failure, Result};
use crate::state::glob::Glob;
use crate::state::permissions::is_in;
use crate::state::{Catalog, CommandInfo, Keys};

pub(crate) const SUBCOMMANDS: &[Command] = &[
    part("command|count", 2, count),
    part("command|docs", -2, docs),
    part("command|info", -2, info),
    part("command|list", -2, list),
    part("command|getkeys", -4, get_keys),
    part("command|help", 2, help),
];

const HELP: &[&str] = &[
    "COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "(no subcommand)",
    "    Return details about all commands.",
    "COUNT",
    "    Return the total number of commands in this server.",
    "LIST [FILTERBY (PATTERN|ACLCAT|MODULE) <value>]",
    "    Return a list of all commands in this server.",
    "INFO [<command-name> ...]",
    "    Return details about multiple commands.",
    "DOCS [<command-name> ...]",
    "    Return the groups of multiple commands.",
    "GETKEYS <full-command>",
    "    Return the keys from a full command.",
    "HELP",
    "    Prints this help.",
];

fn help(call: &mut Call<'_>) -> Result {
    container::help(call, HELP);
    Ok(())
}

/// `COMMAND`
pub(crate) fn command(call: &mut Call<'_>) -> Result {
    let catalog = call.server.catalog;
    let mut reply = call.reply();
    reply.array(catalog.top_level().count());
    catalog.top_level().for_each(|command| reply_command(&mut reply, catalog, command));
    Ok(())
}

/// `COMMAND COUNT`
fn count(call: &mut Call<'_>) -> Result {
    let count = call.server.catalog.top_level().count();
    call.reply().integer(count.cast_signed() as i64);
    Ok(())
}

/// `COMMAND INFO [name...]`
fn info(call: &mut Call<'_>) -> Result {
    if call.args.len() == 2 {
        return command(call);
    }
    let catalog = call.server.catalog;
    let count = call.args.len() - 2;
    let max = call.max_out_len();
    call.reply().array(count);
    for name in call.args.from(2) {
        match catalog.find(name) {
            Some((_, command)) => reply_command(&mut call.reply(), catalog, command),
            None => call.reply().null(),
        }
        if call.out.len() > max {
            return Err(REPLY_TOO_LONG);
        }
    }
    Ok(())
}

/// Replies with name, arity, flags, keys and subcommands of a command.
fn reply_command(reply: &mut Reply<'_>, catalog: &Catalog, command: &CommandInfo) {
    let Keys { first, last, step } = command.keys;
    let groups = ["read", "write", "connection", "dangerous"];
    let groups: Vec<_> = groups.into_iter().filter(|group| is_in(command, group)).collect();
    let mut flags = Vec::new();
    for (set, flag) in [
        (is_in(command, "read"), "readonly"),
        (command.flags.writes, "write"),
        (is_in(command, "dangerous") && !command.flags.writes, "admin"),
        (command.keys == Keys::ONE, "fast"),
        (command.flags.before_auth, "no_auth"),
    ] {
        flags.extend(set.then_some(flag));
    }
    reply.array(10);
    reply.bulk(command.name.as_bytes());
    reply.integer(command.arity.into());
    reply.set(flags.len());
    for flag in flags {
        reply.simple(flag.as_bytes());
    }
    reply.integer(first.cast_signed() as i64);
    reply.integer(last.into());
    reply.integer(step.cast_signed() as i64);
    reply.set(groups.len());
    for group in groups {
        reply.simple(format!("@{group}").as_bytes());
    }
    reply.array(0);
    reply.array(0);
    let parts = catalog.parts(command.name);
    reply.array(parts.len());
    for (_, part) in parts {
        reply_command(reply, catalog, part);
    }
}

/// `COMMAND DOCS [name...]`: the group of each command, without texts.
fn docs(call: &mut Call<'_>) -> Result {
    let catalog = call.server.catalog;
    let commands: Vec<_> = if call.args.len() == 2 {
        catalog.top_level().collect()
    } else {
        let found = call.args.from(2).filter_map(|name| catalog.find(name));
        found.map(|(_, command)| command).collect()
    };
    let max = call.max_out_len();
    call.reply().map(commands.len());
    for command in commands {
        if call.out.len() > max {
            return Err(REPLY_TOO_LONG);
        }
        let mut reply = call.reply();
        let group = match () {
            () if command.keys != Keys::NONE => "string",
            () if is_in(command, "read") => "generic",
            () if is_in(command, "connection") => "connection",
            () => "server",
        };
        reply.bulk(command.name.as_bytes());
        reply.map(1);
        reply.bulk(b"group");
        reply.bulk(group.as_bytes());
    }
    Ok(())
}

/// `COMMAND LIST [FILTERBY PATTERN pattern | ACLCAT group | MODULE name]`
fn list(call: &mut Call<'_>) -> Result {
    let catalog = call.server.catalog;
    let names: Vec<_> = match call.args.len() {
        2 => catalog.all().iter().map(|command| command.name).collect(),
        5 if call.args.get(2).eq_ignore_ascii_case(b"filterby") => {
            let value = call.args.get(4).to_ascii_lowercase();
            let group = String::from_utf8_lossy(&value).into_owned();
            let glob = Glob::new(&value);
            let is_wanted = |command: &CommandInfo| match () {
                () if call.args.get(3).eq_ignore_ascii_case(b"pattern") => {
                    let matches = |glob: &Glob<'_>| glob.matches(command.name.as_bytes());
                    Ok(glob.as_ref().is_none_or(matches))
                }
                () if call.args.get(3).eq_ignore_ascii_case(b"aclcat") => {
                    Ok(group != "all" && is_in(command, &group))
                }
                () if call.args.get(3).eq_ignore_ascii_case(b"module") => Ok(false),
                () => Err(SYNTAX),
            };
            let mut names = Vec::new();
            for command in catalog.all() {
                names.extend(is_wanted(command)?.then_some(command.name));
            }
            names
        }
        _ => return Err(SYNTAX),
    };
    let mut reply = call.reply();
    reply.array(names.len());
    for name in names {
        reply.bulk(name.as_bytes());
    }
    Ok(())
}

/// `COMMAND GETKEYS name [argument...]`
fn get_keys(call: &mut Call<'_>) -> Result {
    let command = find(call.server.catalog, call.args);
    let command = command.ok_or(Failure::reply("ERR Invalid command specified"))?;
    let keys = command.keys;
    if keys == Keys::NONE {
        return Err(Failure::reply("ERR The command has no key arguments"));
    }
    if !takes(command.arity, call.args.len() - 2) {
        let text = "ERR Invalid number of arguments specified for command";
        return Err(Failure::reply(text));
    }
    let keys: Vec<_> = call.args.starting_at(2).keys(keys).collect();
    let mut reply = call.reply();
    reply.array(keys.len());
    for key in keys {
        reply.bulk(key);
    }
    Ok(())
}

/// Returns the command of the request that follows `COMMAND GETKEYS`.
fn find<'c>(catalog: &'c Catalog, args: Args<'_>) -> Option<&'c CommandInfo> {
    let name = args.get(2);
    let (_, command) = catalog.find(name).filter(|_| !name.contains(&b'|'))?;
    if command.flags.container && args.len() > 3 {
        let full_name = [name, b"|", args.get(3)].concat();
        return catalog.find(&full_name).map(|(_, command)| command);
    }
    Some(command)
}
