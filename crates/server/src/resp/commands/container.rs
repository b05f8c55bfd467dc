//! Containers: commands whose first argument selects a subcommand, such as `CLIENT LIST`.

use super::{Call, Command, Failure, Result};
use crate::state::{Flags, Keys};

/// Creates a container.
pub(crate) const fn container(name: &'static str, arity: i32) -> Command {
    // The function is never called: without a subcommand the number of arguments is wrong, and with
    // one the function of the subcommand is called.
    Command { name, arity, keys: Keys::NONE, flags: Flags::CONTAINER, run: nothing }
}

fn nothing(_: &mut Call<'_>) -> Result {
    Ok(())
}

/// Creates a subcommand without keys that does not write.
pub(crate) const fn part(
    name: &'static str,
    arity: i32,
    run: fn(&mut Call<'_>) -> Result,
) -> Command {
    Command { name, arity, keys: Keys::NONE, flags: Flags::READS, run }
}

/// Returns the error for an unknown subcommand or a wrong number of arguments.
pub(crate) fn wrong(call: &Call<'_>, container: &str) -> Failure {
    let name = String::from_utf8_lossy(call.args.get(1));
    let text = "ERR unknown subcommand or wrong number of arguments for";
    Failure::Reply(format!("{text} '{name}'. Try {container} HELP.").into())
}

/// Replies with the help of a container.
pub(crate) fn help(call: &mut Call<'_>, lines: &[&str]) {
    call.reply().array(lines.len());
    for line in lines {
        call.reply().simple(line.as_bytes());
    }
}
