//! `LATENCY`: durations of commands.

use crate::resp::commands::container::{self, part};
use crate::resp::commands::{Call, Command, Failure, Result};
use crate::state::CommandTotals;
use crate::state::histogram::octaves;

pub(crate) const SUBCOMMANDS: &[Command] = &[
    part("latency|histogram", -2, histogram),
    part("latency|latest", 2, latest),
    part("latency|history", 3, history),
    part("latency|reset", -2, reset),
    part("latency|graph", 3, graph),
    part("latency|doctor", 2, doctor),
    part("latency|help", 2, help),
];

const HELP: &[&str] = &[
    "LATENCY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DOCTOR, GRAPH <event>, HISTORY <event>, LATEST, RESET [<event> ...]",
    "    Accepted, but this server records no events.",
    "HISTOGRAM [COMMAND ...]",
    "    Return a cumulative distribution of latencies in the format of a histogram for the \
     specified command names.",
    "    If no commands are specified then all histograms are replied.",
    "HELP",
    "    Prints this help.",
];

fn help(call: &mut Call<'_>) -> Result {
    container::help(call, HELP);
    Ok(())
}

/// `LATENCY HISTOGRAM [command...]`
fn histogram(call: &mut Call<'_>) -> Result {
    let mut commands = call.server.totals_since_reset().commands;
    commands.retain(|_, totals| totals.times.iter().any(|count| *count > 0));
    let chosen: Vec<(&str, CommandTotals)> = if call.args.len() == 2 {
        commands.into_iter().collect()
    } else {
        let mut chosen = Vec::new();
        let catalog = call.server.catalog;
        for (_, command) in call.args.from(2).filter_map(|name| catalog.find(name)) {
            let parts = catalog.parts(command.name);
            let parts = parts.iter().map(|(_, part)| part.name);
            for name in std::iter::once(command.name).chain(parts) {
                chosen.extend(commands.remove_entry(name));
            }
        }
        chosen
    };
    let mut reply = call.reply();
    reply.map(chosen.len());
    for (name, totals) in chosen {
        let octaves = octaves(&totals.times);
        reply.bulk(name.as_bytes());
        reply.map(2);
        reply.bulk(b"calls");
        reply.integer(totals.times.iter().sum::<u64>().cast_signed());
        reply.bulk(b"histogram_usec");
        reply.map(octaves.len());
        for (us, count) in octaves {
            reply.integer(us.cast_signed());
            reply.integer(count.cast_signed());
        }
    }
    Ok(())
}

/// `LATENCY LATEST`
fn latest(call: &mut Call<'_>) -> Result {
    call.reply().array(0);
    Ok(())
}

/// `LATENCY HISTORY event`
fn history(call: &mut Call<'_>) -> Result {
    call.reply().array(0);
    Ok(())
}

/// `LATENCY RESET [event...]`
fn reset(call: &mut Call<'_>) -> Result {
    call.reply().integer(0);
    Ok(())
}

/// `LATENCY GRAPH event`
fn graph(call: &mut Call<'_>) -> Result {
    let event = String::from_utf8_lossy(call.args.get(2));
    Err(Failure::Reply(format!("ERR No samples available for event '{event}'").into()))
}

/// `LATENCY DOCTOR`
fn doctor(call: &mut Call<'_>) -> Result {
    let text =
        "This server records no events. See LATENCY HISTOGRAM and SLOWLOG GET for slow commands.";
    call.reply().verbatim(text.as_bytes());
    Ok(())
}
