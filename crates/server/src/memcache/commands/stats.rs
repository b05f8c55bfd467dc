//! `stats`: statistics under the names of memcached. Statistics that are not counted are left out.

use super::Call;
use crate::memcache::Error;
use crate::memcache::reply::{self, Line};
use nuthatch_cache::Stats;

/// The memcached release whose commands are implemented. Clients choose features by it, and some
/// parse exactly three numbers.
pub(crate) const COMPATIBLE_VERSION: &str = "1.6.38";

/// Executes `stats [args]`.
pub(crate) fn stats(call: &mut Call<'_>, args: &[u8]) {
    let words: Vec<_> = args.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        [] => general(call),
        [b"settings"] => settings(call),
        [b"slabs"] => reply_stats(call, &[("active_slabs", 0), ("total_malloced", memory(call))]),
        [b"sizes"] => reply::stat(call.out, "sizes_status", "disabled"),
        [b"reset", ..] => {
            call.shared.reset_counts(call.server.cache.stats());
            return reply::line(call.out, Line::Reset);
        }
        [b"detail", b"on" | b"off"] => return reply::line(call.out, Line::Ok),
        // There are no slab classes and no lists of items.
        [b"items" | b"conns" | b"extstore"] | [b"detail", b"dump"] | [b"cachedump", ..] => {}
        _ => return reply::error(call.out, Error::UnknownCommand),
    }
    reply::line(call.out, Line::End);
}

fn reply_stats(call: &mut Call<'_>, stats: &[(&str, u64)]) {
    for (name, number) in stats {
        reply::stat(call.out, name, itoa::Buffer::new().format(*number));
    }
}

fn memory(call: &Call<'_>) -> u64 {
    call.server.cache.stats().memory
}

/// Returns the statistics since they were reset.
fn counted(call: &Call<'_>) -> Stats {
    let (mut stats, before) = (call.server.cache.stats(), call.shared.before());
    for (count, earlier) in [
        (&mut stats.hits, before.hits),
        (&mut stats.misses_absent, before.misses_absent),
        (&mut stats.misses_expired, before.misses_expired),
        (&mut stats.misses_evicted, before.misses_evicted),
        (&mut stats.stored, before.stored),
        (&mut stats.removed, before.removed),
        (&mut stats.expired, before.expired),
        (&mut stats.evicted, before.evicted),
    ] {
        *count = count.saturating_sub(earlier);
    }
    stats
}

fn general(call: &mut Call<'_>) {
    let (server, shared) = (call.server, call.shared);
    let (stats, totals) = (counted(call), server.totals());
    let misses = stats.misses_absent + stats.misses_expired + stats.misses_evicted;
    reply_stats(
        call,
        &[
            ("pid", u64::from(std::process::id())),
            ("uptime", shared.started.elapsed().as_secs()),
            ("time", call.guard.now_ms() / 1000),
        ],
    );
    reply::stat(call.out, "version", COMPATIBLE_VERSION);
    reply::stat(call.out, "nuthatch_version", env!("CARGO_PKG_VERSION"));
    reply_stats(
        call,
        &[
            ("pointer_size", u64::from(usize::BITS)),
            ("max_connections", server.settings.max_clients()),
            ("curr_connections", server.clients.len() as u64),
            ("total_connections", totals.connections),
            ("rejected_connections", server.clients.refused()),
            ("cmd_get", stats.hits + misses),
            ("cmd_set", stats.stored),
            ("get_hits", stats.hits),
            ("get_misses", misses),
            ("get_expired", stats.misses_expired),
            ("delete_hits", stats.removed),
            ("bytes_read", totals.received),
            ("bytes_written", totals.sent),
            ("limit_maxbytes", stats.memory_limit),
            ("accepting_conns", 1),
            ("threads", shared.threads as u64),
            ("bytes", stats.memory),
            ("curr_items", stats.items),
            ("total_items", stats.stored),
            ("reclaimed", stats.expired),
            ("evictions", stats.evicted),
        ],
    );
}

fn settings(call: &mut Call<'_>) {
    let server = call.server;
    let on = |is: bool| if is { "on" } else { "off" };
    reply_stats(
        call,
        &[
            ("maxbytes", server.cache.memory()),
            ("maxconns", server.settings.max_clients()),
            ("num_threads", call.shared.threads as u64),
            ("item_size_max", server.cache.max_value_len() as u64),
        ],
    );
    for (name, value) in [
        ("evictions", on(server.evicts)),
        ("cas_enabled", "yes"),
        ("flush_enabled", "yes"),
        ("binding_protocol", "ascii"),
        ("detail_enabled", "no"),
    ] {
        reply::stat(call.out, name, value);
    }
}
