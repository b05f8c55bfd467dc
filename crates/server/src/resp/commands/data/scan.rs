//! Commands over all keys.

use crate::resp::commands::failure::{REPLY_TOO_LONG, SYNTAX};
use crate::resp::commands::{Call, Command, Failure, Result};
use crate::resp::{Reply, Version};
use crate::state::glob::Glob;
use crate::state::{Flags, Keys, Server, Snapshots, is_snapshot_cursor};

pub(crate) const COMMANDS: &[Command] = &[
    Command { name: "scan", arity: -2, keys: Keys::NONE, flags: Flags::READS, run: scan },
    Command { name: "keys", arity: 2, keys: Keys::NONE, flags: Flags::READS, run: keys },
    Command { name: "randomkey", arity: 1, keys: Keys::NONE, flags: Flags::READS, run: randomkey },
];

/// Keys that one `SCAN` examines by default, as in Redis.
const DEFAULT_COUNT: usize = 10;
/// Maximum keys that one `SCAN` examines: the other clients of the thread wait meanwhile.
const MAX_COUNT: usize = 4096;
/// Bytes of the reply after which `SCAN` returns early.
const ENOUGH_REPLY_BYTES: usize = 64 << 10;
/// Maximum items that one `SCAN` reads from disk.
const MAX_READS: usize = 256;
/// Keys that `SCAN` examines between checks of the length of its reply.
const STEP: usize = 16;
/// The same in snapshots, whose steps each read a line of every shard.
const SNAPSHOT_STEP: usize = 256;
/// The same for `KEYS`.
const KEYS_STEP: usize = 4096;

/// The keys that a scan returns.
struct Filter<'a> {
    pattern: Option<Glob<'a>>,
    /// Whether keys with strings, and with lists, match: both unless a type was requested.
    strings: bool,
    lists: bool,
}

impl<'a> Filter<'a> {
    fn new(pattern: Option<Glob<'a>>) -> Self {
        Self { pattern, strings: true, lists: true }
    }

    fn matches(&self, key: &[u8], is_list: bool) -> bool {
        let has_type = if is_list { self.lists } else { self.strings };
        has_type && self.pattern.as_ref().is_none_or(|pattern| pattern.matches(key))
    }
}

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`
fn scan(call: &mut Call<'_>) -> Result {
    let args = call.args;
    let cursor = cursor(args.get(1))?;
    let mut filter = Filter::new(None);
    let mut count = DEFAULT_COUNT;
    for at in (2..args.len()).step_by(2) {
        if at + 1 == args.len() {
            return Err(SYNTAX);
        }
        if args.is(at, "count") {
            let requested = args.integer(at + 1)?;
            count = usize::try_from(requested).ok().filter(|count| *count > 0).ok_or(SYNTAX)?;
        } else if args.is(at, "match") {
            filter.pattern = Glob::new(args.get(at + 1));
        } else if args.is(at, "type") {
            (filter.strings, filter.lists) = (args.is(at + 1, "string"), args.is(at + 1, "list"));
        } else {
            return Err(SYNTAX);
        }
    }
    let mut found = Found::new(usize::MAX);
    let first = cursor;
    let (mut cursor, mut left) = (cursor, count.min(MAX_COUNT));
    loop {
        let (step, mut met, before) = (left.min(STEP), 0, cursor);
        if is_snapshot_cursor(cursor) {
            cursor = scan_snapshots(call.server, (cursor, left), &mut met, |key, is_list| {
                found.add(&filter, key, is_list);
            });
        } else {
            cursor = call.guard.scan(cursor, step, |item| {
                met += 1;
                found.add_item(call.server, &filter, item.key());
            });
            if cursor == 0 && !call.guard.needs_disk() {
                cursor = call.server.snapshots.as_ref().map_or(0, Snapshots::first_cursor);
            }
        }
        if call.guard.needs_disk() {
            if before == first {
                return need_items(call, cursor, left);
            }
            // The keys that were found are enough. The next `SCAN` reads from disk.
            call.guard.take_on_disk();
            cursor = before;
            break;
        }
        // Index lines without a key count, too.
        left = left.saturating_sub(step.max(met));
        if cursor == 0 || left == 0 || found.replies.len() >= ENOUGH_REPLY_BYTES {
            break;
        }
    }
    let mut reply = call.reply();
    reply.array(2);
    reply.bulk(cursor.to_string().as_bytes());
    found.reply(reply)
}

/// Calls `each` with the next keys of snapshots from a cursor on, about as many as the second
/// number, counts them in `met`, and returns the next cursor.
fn scan_snapshots(
    server: &Server,
    (cursor, count): (u64, usize),
    met: &mut usize,
    each: impl FnMut(&[u8], bool),
) -> u64 {
    let Some(snapshots) = &server.snapshots else { return 0 };
    let (next, examined) = snapshots.scan(cursor, count.min(SNAPSHOT_STEP), each);
    *met += examined;
    next
}

/// Notes that the items on disk behind a cursor are needed, too, so that they are read at the same
/// time. The command is executed again then.
#[cold]
fn need_items(call: &Call<'_>, mut cursor: u64, count: usize) -> Result {
    let max = count.min(MAX_READS);
    while cursor != 0 && call.guard.needed_from_disk() < max {
        cursor = call.guard.scan(cursor, STEP, |_| {});
    }
    Err(Failure::Full)
}

fn cursor(text: &[u8]) -> Result<u64> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or(Failure::reply("ERR invalid cursor"))
}

/// Keys that a scan has found, encoded. They are collected here, since their number comes first in
/// the reply.
struct Found {
    count: usize,
    replies: Vec<u8>,
    /// Maximum bytes of the encoded keys.
    max_len: usize,
}

impl Found {
    fn new(max_len: usize) -> Self {
        Self { count: 0, replies: Vec::new(), max_len }
    }

    /// Adds the key of an item, unless it has the prefix of a snapshot: requests do not find such
    /// an item, which an earlier server without the snapshot has left.
    #[inline]
    fn add_item(&mut self, server: &Server, filter: &Filter<'_>, key: &[u8]) {
        if server.snapshot_key(key).is_none() {
            self.add(filter, key, false);
        }
    }

    #[inline]
    fn add(&mut self, filter: &Filter<'_>, key: &[u8], is_list: bool) {
        if self.replies.len() <= self.max_len && filter.matches(key, is_list) {
            self.count += 1;
            Reply::new(&mut self.replies, Version::default()).bulk(key);
        }
    }

    fn is_too_long(&self) -> bool {
        self.replies.len() > self.max_len
    }

    fn reply(&self, mut reply: Reply<'_>) -> Result {
        if self.is_too_long() {
            return Err(REPLY_TOO_LONG);
        }
        reply.array(self.count);
        reply.append(&self.replies);
        Ok(())
    }
}

/// The error of `KEYS` with items on disk, all of which it would read.
const KEYS_ON_DISK: Failure =
    Failure::reply("ERR KEYS would read all items from disk at once. Use SCAN.");

/// Maximum entries of all snapshots together that `KEYS` examines: the other clients of the thread
/// wait meanwhile.
const MAX_KEYS_ENTRIES: u64 = 1 << 17;

const KEYS_OF_LONG_SNAPSHOTS: Failure =
    Failure::reply("ERR KEYS would examine more than 131072 entries of snapshots. Use SCAN.");

/// `KEYS pattern`
fn keys(call: &mut Call<'_>) -> Result {
    let filter = Filter::new(Glob::new(call.args.get(1)));
    // Keys are copied once, so both copies exist for a moment.
    let mut found = Found::new(call.server.max_reply_len() / 2);
    if call.server.cache.items_on_disk() > 0 {
        return Err(KEYS_ON_DISK);
    }
    let mut cursor = 0;
    loop {
        cursor = call.guard.scan(cursor, KEYS_STEP, |item| {
            found.add_item(call.server, &filter, item.key());
        });
        if cursor == 0 || found.is_too_long() {
            break;
        }
    }
    if let Some(snapshots) = &call.server.snapshots {
        if snapshots.entries() > MAX_KEYS_ENTRIES {
            return Err(KEYS_OF_LONG_SNAPSHOTS);
        }
        let mut cursor = snapshots.first_cursor();
        while cursor != 0 && !found.is_too_long() {
            let add = |key: &[u8], is_list| found.add(&filter, key, is_list);
            cursor = snapshots.scan(cursor, KEYS_STEP, add).0;
        }
    }
    found.reply(call.reply())
}

/// `RANDOMKEY`
fn randomkey(call: &mut Call<'_>) -> Result {
    // A new CAS number was never used before. Its bits are mixed.
    let seed = mix(call.guard.new_cas() ^ call.guard.now_ms() << 24);
    if let Some(snapshots) = &call.server.snapshots {
        // Each key is about as likely as any other.
        let (of_snapshots, all) = (snapshots.entries(), call.server.keys());
        if mix(seed).checked_rem(all).is_some_and(|number| number < of_snapshots)
            && let Some(key) = snapshots.random_key(seed)
        {
            call.reply().bulk(&key);
            return Ok(());
        }
    }
    let item = call.guard.random(seed);
    match item.filter(|item| call.server.snapshot_key(item.key()).is_none()) {
        Some(item) => call.reply().bulk(item.key()),
        None => call.reply().null(),
    }
    Ok(())
}

/// Applies the finalizer of `SplitMix64` (Steele and others, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}
