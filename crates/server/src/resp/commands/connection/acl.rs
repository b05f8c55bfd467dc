//! `ACL`: the user of a connection and the names of all users. Users are defined in a file.

use crate::resp::commands::container::{self, part};
use crate::resp::commands::{Call, Command, Result};
use crate::state::users;

pub(crate) const SUBCOMMANDS: &[Command] =
    &[part("acl|whoami", 2, whoami), part("acl|users", 2, names), part("acl|help", 2, help)];

const HELP: &[&str] = &[
    "ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "USERS",
    "    List all the registered usernames.",
    "WHOAMI",
    "    Return the current connection username.",
    "HELP",
    "    Prints this help.",
];

fn help(call: &mut Call<'_>) -> Result {
    container::help(call, HELP);
    Ok(())
}

/// `ACL WHOAMI`
fn whoami(call: &mut Call<'_>) -> Result {
    let user = call.client.user.clone();
    call.reply().bulk(user.as_ref().map_or(users::DEFAULT, |user| user.name()).as_bytes());
    Ok(())
}

/// `ACL USERS`
fn names(call: &mut Call<'_>) -> Result {
    let users = call.server.users();
    let names = users.names();
    let mut reply = call.reply();
    reply.array(names.len());
    names.for_each(|name| reply.bulk(name.as_bytes()));
    Ok(())
}
