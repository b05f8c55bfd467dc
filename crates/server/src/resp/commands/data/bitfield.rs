//! `BITFIELD`: integers of any width at any bit of a value.

use super::bits::offset;
use crate::resp::commands::failure::SYNTAX;
use crate::resp::commands::modify::{check_len, in_place_of};
use crate::resp::commands::{Args, Call, Command, Failure, OUT_OF_MEMORY, Result};
use crate::resp::{Reply, integer};
use crate::state::{Flags, update};

pub(crate) const COMMANDS: &[Command] = &[
    Command::of_key("bitfield", -2, Flags::WRITES, bitfield),
    Command::of_key("bitfield_ro", -2, Flags::LOOKS_UP, bitfield_ro),
];

const NOT_A_TYPE: Failure = Failure::reply(
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 \
     is.",
);

/// What happens to a number that exceeds its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overflow {
    /// It loses its highest bits.
    Wrap,
    /// It becomes the maximum or minimum of the field.
    Saturate,
    /// The field does not change.
    Fail,
}

/// An integer in a value.
#[derive(Clone, Copy, Debug)]
struct Field {
    signed: bool,
    /// The width in bits: up to 64 with sign, up to 63 without.
    width: u32,
    offset: u64,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Get,
    Set(i64, Overflow),
    Increment(i64, Overflow),
}

impl Field {
    fn parse(kind: &[u8], at: &[u8]) -> Result<Self> {
        let (signed, max, width) = match kind {
            [b'i', width @ ..] => (true, 64, width),
            [b'u', width @ ..] => (false, 63, width),
            _ => return Err(NOT_A_TYPE),
        };
        let width = integer(width).and_then(|width| u32::try_from(width).ok());
        let width = width.filter(|width| (1..=max).contains(width)).ok_or(NOT_A_TYPE)?;
        Ok(Self { signed, width, offset: offset(at, Some(width))? })
    }

    /// Returns the minimum length of a value that contains the field.
    fn end(self) -> usize {
        (self.offset + u64::from(self.width)).div_ceil(8) as usize
    }

    /// Returns the number. Bits after the end of the value are zero.
    fn get(self, value: &[u8]) -> i128 {
        let start = (self.offset / 8) as usize;
        let mut window = 0u128;
        for at in start..start + 9 {
            window = window << 8 | u128::from(value.get(at).copied().unwrap_or(0));
        }
        self.fit(window >> (72 - (self.offset % 8) as u32 - self.width))
    }

    /// Returns the number that the lowest bits represent.
    fn fit(self, bits: u128) -> i128 {
        let above = 128 - self.width;
        let top = bits << above;
        if self.signed { top.cast_signed() >> above } else { (top >> above).cast_signed() }
    }

    fn set(self, value: &mut [u8], number: i128) {
        for bit in 0..self.width {
            let at = self.offset + u64::from(bit);
            let mask = 0x80 >> (at % 8);
            let byte = &mut value[(at / 8) as usize];
            let set = number >> (self.width - 1 - bit) & 1 == 1;
            *byte = *byte & !mask | if set { mask } else { 0 };
        }
    }

    /// Returns the number to store for one that may exceed the field; `None` to store nothing.
    fn hold(self, number: i128, overflow: Overflow) -> Option<i128> {
        let values = 1i128 << self.width;
        let (min, max) = if self.signed { (-values / 2, values / 2 - 1) } else { (0, values - 1) };
        match overflow {
            _ if (min..=max).contains(&number) => Some(number),
            Overflow::Wrap => Some(self.fit(number.cast_unsigned())),
            Overflow::Saturate => Some(number.clamp(min, max)),
            Overflow::Fail => None,
        }
    }

    /// Performs an operation on a value that contains the field, and returns its reply.
    fn apply(self, operation: Operation, value: &mut [u8]) -> Option<i128> {
        let old = self.get(value);
        match operation {
            Operation::Get => Some(old),
            Operation::Set(number, overflow) => {
                // For a field without sign, a negative number is a large one.
                let number = if self.signed {
                    i128::from(number)
                } else {
                    i128::from(number.cast_unsigned())
                };
                self.set(value, self.hold(number, overflow)?);
                Some(old)
            }
            Operation::Increment(by, overflow) => {
                let new = self.hold(old + i128::from(by), overflow)?;
                self.set(value, new);
                Some(new)
            }
        }
    }
}

/// Parses all arguments after the key.
fn parse(args: Args<'_>) -> Result<Vec<(Field, Operation)>> {
    let mut operations = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut at = 2;
    while at < args.len() {
        let left = args.len() - at - 1;
        if args.is(at, "overflow") && left >= 1 {
            overflow = match args.get(at + 1).to_ascii_lowercase().as_slice() {
                b"wrap" => Overflow::Wrap,
                b"sat" => Overflow::Saturate,
                b"fail" => Overflow::Fail,
                _ => return Err(Failure::reply("ERR Invalid OVERFLOW type specified")),
            };
            at += 2;
            continue;
        }
        let operation: Option<fn(i64, Overflow) -> Operation> = match args.get(at) {
            word if word.eq_ignore_ascii_case(b"get") && left >= 2 => None,
            word if word.eq_ignore_ascii_case(b"set") && left >= 3 => Some(Operation::Set),
            word if word.eq_ignore_ascii_case(b"incrby") && left >= 3 => Some(Operation::Increment),
            _ => return Err(SYNTAX),
        };
        let field = Field::parse(args.get(at + 1), args.get(at + 2))?;
        operations.push((
            field,
            match operation {
                None => Operation::Get,
                Some(operation) => operation(args.integer(at + 3)?, overflow),
            },
        ));
        at += if operation.is_some() { 4 } else { 3 };
    }
    Ok(operations)
}

/// `BITFIELD key [GET type offset | [OVERFLOW WRAP | SAT | FAIL]
/// SET type offset value | INCRBY type offset increment]...`
fn bitfield(call: &mut Call<'_>) -> Result {
    let operations = parse(call.args)?;
    match writes_to(&operations) {
        Some(end) => change(call, &operations, end),
        None => read(call, &operations),
    }
}

/// `BITFIELD_RO key [GET type offset]...`
fn bitfield_ro(call: &mut Call<'_>) -> Result {
    let operations = parse(call.args)?;
    match writes_to(&operations) {
        Some(_) => Err(Failure::reply("ERR BITFIELD_RO only supports the GET subcommand")),
        None => read(call, &operations),
    }
}

/// Returns the end of the last field that is written, if there is one.
fn writes_to(operations: &[(Field, Operation)]) -> Option<usize> {
    let writes = operations.iter().filter(|(_, operation)| !matches!(operation, Operation::Get));
    writes.map(|(field, _)| field.end()).max()
}

fn read(call: &mut Call<'_>, operations: &[(Field, Operation)]) -> Result {
    let mut buffer = Vec::new();
    let value = call.find_value(call.args.get(1), &mut buffer)?.unwrap_or_default();
    call.reply().array(operations.len());
    for (field, _) in operations {
        call.reply().integer(field.get(value) as i64);
    }
    Ok(())
}

fn change(call: &mut Call<'_>, operations: &[(Field, Operation)], end: usize) -> Result {
    check_len(call, end)?;
    let start = call.out.len();
    let (place, key) = (call.place(), call.args.get(1));
    let (out, version) = (&mut *call.out, call.client.version);
    let made = update(
        place,
        key,
        |old| old.max(end),
        |item, value| {
            // Removes the reply of an earlier attempt, which is about another item.
            out.truncate(start);
            let mut reply = Reply::new(out, version);
            reply.array(operations.len());
            value.reserve_exact(item.map_or(0, |item| item.value().len()).max(end));
            value.extend_from_slice(item.map_or(&[], |item| item.value()));
            // As in Redis, even if nothing is written.
            value.resize(value.len().max(end), 0);
            for (field, operation) in operations {
                match field.apply(*operation, value) {
                    Some(number) => reply.integer(number as i64),
                    None => reply.null(),
                }
            }
            (Some(in_place_of(item)), ())
        },
    )?;
    made.ok_or(OUT_OF_MEMORY)
}
