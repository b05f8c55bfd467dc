//! Commands over bits of values. Bit 0 is the highest bit of the first byte.

use crate::resp::commands::failure::SYNTAX;
use crate::resp::commands::modify::{check_len, clamp, in_place_of};
use crate::resp::commands::{Args, Call, Command, Failure, OUT_OF_MEMORY, Result};
use crate::resp::integer;
use crate::state::new_value::ValueMemory;
use crate::state::{Flags, Keys, update, values};
use nuthatch_cache::Write;

/// `BITOP operation destination source...`: the keys begin at the second argument.
const BITOP_KEYS: Keys = Keys { first: 2, last: -1, step: 1 };

pub(crate) const COMMANDS: &[Command] = &[
    Command::of_key("setbit", 4, Flags::WRITES, setbit),
    Command::of_key("getbit", 3, Flags::LOOKS_UP, getbit),
    Command::of_key("bitcount", -2, Flags::LOOKS_UP, bitcount),
    Command::of_key("bitpos", -3, Flags::LOOKS_UP, bitpos),
    Command {
        name: "bitop",
        arity: -4,
        keys: BITOP_KEYS,
        flags: Flags::WRITES_TOGETHER,
        run: bitop,
    },
];

const NOT_AN_OFFSET: Failure = Failure::reply("ERR bit offset is not an integer or out of range");
const NOT_A_BIT: Failure = Failure::reply("ERR bit is not an integer or out of range");

/// The number of bits of the longest string of Redis.
const OFFSETS: i64 = 512 << 20 << 3;

/// Parses the offset of a bit. With `width`, `#N` is the first bit of field N of that width.
pub(crate) fn offset(text: &[u8], width: Option<u32>) -> Result<u64> {
    let number = match (text, width) {
        ([b'#', rest @ ..], Some(width)) => {
            integer(rest).and_then(|number| number.checked_mul(i64::from(width)))
        }
        _ => integer(text),
    };
    match number {
        Some(number @ 0..OFFSETS) => Ok(number.cast_unsigned()),
        _ => Err(NOT_AN_OFFSET),
    }
}

/// `SETBIT key offset bit`
fn setbit(call: &mut Call<'_>) -> Result {
    let offset = offset(call.args.get(2), None)?;
    let set = match integer(call.args.get(3)) {
        Some(bit @ (0 | 1)) => bit == 1,
        _ => return Err(NOT_A_BIT),
    };
    let (byte, mask) = ((offset / 8) as usize, 0x80 >> (offset % 8));
    check_len(call, byte + 1)?;
    let (place, key) = (call.place(), call.args.get(1));
    let was_set = update(
        place,
        key,
        |old| old.max(byte + 1),
        |item, value| {
            value.reserve_exact(item.map_or(0, |item| item.value().len()).max(byte + 1));
            value.extend_from_slice(item.map_or(&[], |item| item.value()));
            let fits = byte < value.len();
            value.resize(value.len().max(byte + 1), 0);
            let was_set = value[byte] & mask != 0;
            value[byte] = value[byte] & !mask | if set { mask } else { 0 };
            let changes = !fits || was_set != set;
            (changes.then(|| in_place_of(item)), was_set)
        },
    )?;
    call.reply().integer(i64::from(was_set.ok_or(OUT_OF_MEMORY)?));
    Ok(())
}

/// `GETBIT key offset`
fn getbit(call: &mut Call<'_>) -> Result {
    let offset = offset(call.args.get(2), None)?;
    let mut buffer = Vec::new();
    let value = call.find_value(call.args.get(1), &mut buffer)?.unwrap_or_default();
    let byte = value.get((offset / 8) as usize).copied().unwrap_or(0);
    call.reply().integer(i64::from(byte >> (7 - offset % 8) & 1));
    Ok(())
}

/// Returns whether a range is in bits, by the optional argument at this index.
fn in_bits(args: Args<'_>, at: usize) -> Result<bool> {
    match args.len() {
        len if len <= at => Ok(false),
        _ if args.is(at, "bit") => Ok(true),
        _ if args.is(at, "byte") => Ok(false),
        _ => Err(SYNTAX),
    }
}

/// Returns the first and the last bit of a range of a value of `len` bytes.
fn bit_range(start: i64, end: i64, len: usize, in_bits: bool) -> Option<(usize, usize)> {
    if in_bits {
        return clamp(start, end, len * 8);
    }
    clamp(start, end, len).map(|(start, end)| (start * 8, end * 8 + 7))
}

/// Returns the byte at index `at` of a value, without the bits before `first` and after `last`,
/// which are offsets from the start of the value.
fn cut(byte: u8, at: usize, first: usize, last: usize) -> u8 {
    let from = if at == first / 8 { 0xff >> (first % 8) } else { 0xff };
    let to = if at == last / 8 { !(0x7f >> (last % 8)) } else { 0xff };
    byte & from & to
}

/// `BITCOUNT key [start end [BYTE | BIT]]`
fn bitcount(call: &mut Call<'_>) -> Result {
    let args = call.args;
    // As in Redis 7.0, the range is checked only if there is a value.
    let mut buffer = Vec::new();
    let Some(value) = call.find_value(args.get(1), &mut buffer)? else {
        call.reply().integer(0);
        return Ok(());
    };
    let range = match args.len() {
        2 => bit_range(0, -1, value.len(), false),
        4 | 5 => {
            let (start, end) = (args.integer(2)?, args.integer(3)?);
            if start < 0 && end < 0 && start > end {
                None
            } else {
                bit_range(start, end, value.len(), in_bits(args, 4)?)
            }
        }
        _ => return Err(SYNTAX),
    };
    call.reply_count(range.map_or(0, |(first, last)| ones(value, first, last)));
    Ok(())
}

/// Returns the number of set bits from `first` to `last`.
fn ones(value: &[u8], first: usize, last: usize) -> usize {
    let bytes = &value[first / 8..=last / 8];
    let (words, tail) = bytes.as_chunks::<8>();
    let in_words = words.iter().map(|word| u64::from_le_bytes(*word).count_ones() as usize);
    let in_tail = tail.iter().map(|byte| byte.count_ones() as usize);
    let all = in_words.sum::<usize>() + in_tail.sum::<usize>();
    let outside = |at: usize| (value[at] & !cut(0xff, at, first, last)).count_ones() as usize;
    let ends = if first / 8 == last / 8 { 0 } else { outside(last / 8) };
    all - outside(first / 8) - ends
}

/// `BITPOS key bit [start [end [BYTE | BIT]]]`
fn bitpos(call: &mut Call<'_>) -> Result {
    let args = call.args;
    let set = match args.integer(2)? {
        bit @ (0 | 1) => bit == 1,
        _ => return Err(Failure::reply("ERR The bit argument must be 1 or 0.")),
    };
    let mut buffer = Vec::new();
    let Some(value) = call.find_value(args.get(1), &mut buffer)? else {
        call.reply().integer(if set { -1 } else { 0 });
        return Ok(());
    };
    let range = match args.len() {
        3 => bit_range(0, -1, value.len(), false),
        4..=6 => {
            let start = args.integer(3)?;
            let in_bits = in_bits(args, 5)?;
            let end = if args.len() > 4 { args.integer(4)? } else { -1 };
            bit_range(start, end, value.len(), in_bits)
        }
        _ => return Err(SYNTAX),
    };
    let position = range.map(|(first, last)| position(value, set, first, last));
    match position {
        Some(Some(position)) => call.reply_count(position),
        // Without an explicit end, a value is followed by zero bits.
        Some(None) if !set && args.len() < 5 => call.reply_count(value.len() * 8),
        _ => call.reply().integer(-1),
    }
    Ok(())
}

/// Returns the first bit from `first` to `last` that is set, or not set.
fn position(value: &[u8], set: bool, first: usize, last: usize) -> Option<usize> {
    let flip = if set { 0 } else { 0xff };
    let sought = |at: usize| cut(value[at] ^ flip, at, first, last);
    let in_byte = |at: usize| at * 8 + sought(at).leading_zeros() as usize;
    let (start, end) = (first / 8, last / 8);
    if sought(start) != 0 {
        return Some(in_byte(start));
    }
    let between = value.get(start + 1..end).unwrap_or_default();
    match between.iter().position(|byte| *byte != flip) {
        Some(at) => Some(in_byte(start + 1 + at)),
        None => (sought(end) != 0).then(|| in_byte(end)),
    }
}

/// `BITOP AND | OR | XOR | NOT destination source...`
fn bitop(call: &mut Call<'_>) -> Result {
    let args = call.args;
    let combine: fn(&mut u8, u8) = match args.get(1).to_ascii_lowercase().as_slice() {
        b"and" => |byte, other| *byte &= other,
        b"or" => |byte, other| *byte |= other,
        b"xor" => |byte, other| *byte ^= other,
        b"not" if args.len() == 4 => |byte, other| *byte = !other,
        b"not" => {
            let text = "ERR BITOP NOT must be called with a single source key.";
            return Err(Failure::reply(text));
        }
        _ => return Err(SYNTAX),
    };
    let items: Vec<_> = args.from(3).map(|key| call.guard.get(key)).collect();
    let lens = items.iter().flatten().map(values::raw_len);
    let len = lens.max().unwrap_or(0);
    let mut value_memory = ValueMemory::new(call.server);
    if !value_memory.try_count(0, len) {
        return Err(OUT_OF_MEMORY);
    }
    let mut result = Vec::with_capacity(len);
    let mut buffer = Vec::new();
    for (number, item) in items.into_iter().enumerate() {
        let source = match item {
            Some(item) => values::raw_item(call.server, item, &mut buffer)?.value(),
            None => &[],
        };
        if number == 0 {
            result.extend_from_slice(source);
            result.resize(len, 0);
            // The only source of NOT is copied and combined with itself.
            if !args.is(1, "not") {
                continue;
            }
        }
        let padded = source.iter().copied().chain(std::iter::repeat(0));
        result.iter_mut().zip(padded).for_each(|(byte, other)| combine(byte, other));
    }
    if len == 0 {
        call.guard.remove(args.get(2));
    } else {
        values::set(call.place(), args.get(2), &result, &Write::new()).map(drop)?;
    }
    call.reply_count(len);
    Ok(())
}
