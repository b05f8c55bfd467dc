//! Commands whose first argument names what they do, such as `CLIENT LIST`.

use super::{Call, Command, Failure, Result};
use crate::state::{Flags, Keys};

pub(crate) const fn container(name: &'static str, arity: i32) -> Command {
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
