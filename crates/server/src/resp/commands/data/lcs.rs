//! `LCS`: the longest common subsequence of two values.

use crate::resp::commands::failure::SYNTAX;
use crate::resp::commands::modify::signed;
use crate::resp::commands::{Args, Call, Command, Failure, Result};
use crate::state::{Flags, Keys};

pub(crate) const COMMANDS: &[Command] =
    &[Command { name: "lcs", arity: -3, keys: Keys::TWO, flags: Flags::LOOKS_UP, run: lcs }];

/// Maximum steps of a request. Redis uses four bytes for each, and refuses requests that exceed
/// this memory.
const MAX_STEPS: usize = 512 << 20 >> 2;

const TOO_MANY_STEPS: Failure =
    Failure::reply("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
const LEN_AND_IDX: Failure =
    Failure::reply("ERR If you want both the length and indexes, please just use IDX.");

#[derive(Default)]
struct Options {
    len: bool,
    indexes: bool,
    with_lengths: bool,
    /// Minimum length of a reported match.
    min: usize,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Self> {
        let mut options = Self::default();
        let mut at = 3;
        while at < args.len() {
            match args.get(at).to_ascii_lowercase().as_slice() {
                b"idx" => options.indexes = true,
                b"len" => options.len = true,
                b"withmatchlen" => options.with_lengths = true,
                b"minmatchlen" if at + 1 < args.len() => {
                    at += 1;
                    options.min = usize::try_from(args.integer(at)?).unwrap_or(0);
                }
                _ => return Err(SYNTAX),
            }
            at += 1;
        }
        if options.len && options.indexes { Err(LEN_AND_IDX) } else { Ok(options) }
    }
}

/// `LCS key1 key2 [LEN] [IDX] [MINMATCHLEN len] [WITHMATCHLEN]`
fn lcs(call: &mut Call<'_>) -> Result {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let a = call.find_value(call.args.get(1), &mut a)?.unwrap_or_default();
    let b = call.find_value(call.args.get(2), &mut b)?.unwrap_or_default();
    let options = Options::parse(call.args)?;
    if (a.len() + 1).saturating_mul(b.len() + 1) > MAX_STEPS {
        return Err(TOO_MANY_STEPS);
    }
    let table = Table::new(a, b);
    if options.len {
        call.reply().integer(i64::from(table.len));
        return Ok(());
    }
    let matches = table.matches();
    let mut reply = call.reply();
    if !options.indexes {
        reply.bulk_header(table.len as usize);
        matches.iter().rev().for_each(|part| reply.append(&a[part.a..part.a + part.len]));
        reply.bulk_end();
        return Ok(());
    }
    let reported: Vec<_> = matches.iter().filter(|part| part.len >= options.min).collect();
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(reported.len());
    for part in reported {
        reply.array(if options.with_lengths { 3 } else { 2 });
        for start in [part.a, part.b] {
            reply.array(2);
            reply.integer(signed(start));
            reply.integer(signed(start + part.len - 1));
        }
        if options.with_lengths {
            reply.integer(signed(part.len));
        }
    }
    reply.bulk(b"len");
    reply.integer(i64::from(table.len));
    Ok(())
}

/// Consecutive bytes that both values contain.
struct Match {
    a: usize,
    b: usize,
    len: usize,
}

/// The direction in which the longest subsequence continues, for each pair of indexes.
struct Table<'t> {
    a: &'t [u8],
    b: &'t [u8],
    len: u32,
    /// One bit for each pair: set if the subsequence without the last byte of `a` is longer than
    /// without that of `b`.
    ways: Vec<u64>,
}

impl<'t> Table<'t> {
    fn new(a: &'t [u8], b: &'t [u8]) -> Self {
        let words = b.len().div_ceil(64);
        let mut ways = vec![0u64; a.len() * words];
        // The lengths for all prefixes of `b`, and one prefix of `a` after the other.
        let mut row = vec![0u32; b.len() + 1];
        for (i, byte) in a.iter().enumerate() {
            let ways = &mut ways[i * words..(i + 1) * words];
            let (mut diagonal, mut left) = (0, 0);
            for (j, other) in b.iter().enumerate() {
                let up = row[j + 1];
                let here = if byte == other { diagonal + 1 } else { up.max(left) };
                ways[j / 64] |= u64::from(up > left) << (j % 64);
                (diagonal, left, row[j + 1]) = (up, here, here);
            }
        }
        Self { a, b, len: row[b.len()], ways }
    }

    /// Returns the parts of the subsequence, the last one first.
    fn matches(&self) -> Vec<Match> {
        let words = self.b.len().div_ceil(64);
        let mut matches: Vec<Match> = Vec::new();
        let (mut i, mut j) = (self.a.len(), self.b.len());
        while i > 0 && j > 0 {
            if self.a[i - 1] == self.b[j - 1] {
                (i, j) = (i - 1, j - 1);
                match matches.last_mut() {
                    Some(last) if (last.a, last.b) == (i + 1, j + 1) => {
                        *last = Match { a: i, b: j, len: last.len + 1 };
                    }
                    _ => matches.push(Match { a: i, b: j, len: 1 }),
                }
            } else if self.ways[(i - 1) * words + (j - 1) / 64] >> ((j - 1) % 64) & 1 == 1 {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        matches
    }
}
