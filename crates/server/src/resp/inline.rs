//! Inline requests: one line of arguments, which may be quoted.

use super::{ProtocolError, Span};

/// An inline request. Its arguments have their own bytes, since quoted ones are unescaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inline {
    /// The bytes of all arguments.
    pub bytes: Vec<u8>,
    /// The span of each argument in `bytes`.
    pub args: Vec<Span>,
}

/// Splits a line at white space. In double quotes, the escapes of C are replaced; in single quotes,
/// only `\'`. A quote may begin within an argument, and its end is the end of the argument.
pub(super) fn split(line: &[u8]) -> Result<Inline, ProtocolError> {
    let mut split = Inline::default();
    let mut rest = skip_spaces(line);
    while !rest.is_empty() {
        let start = split.bytes.len();
        rest = argument(rest, &mut split.bytes)?;
        split.args.push(Span::between(start, split.bytes.len()));
        rest = skip_spaces(rest);
    }
    Ok(split)
}

/// Returns whether a byte separates arguments. As in Redis, fewer bytes end an unquoted argument:
/// see [`argument`].
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn skip_spaces(rest: &[u8]) -> &[u8] {
    let spaces = rest.iter().take_while(|byte| is_space(**byte)).count();
    &rest[spaces..]
}

/// Appends one argument to `out`, and returns the rest.
fn argument<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        rest = match rest {
            [] | [b' ' | b'\t' | b'\r' | b'\n', ..] => return Ok(rest),
            [b'"', quoted @ ..] => return double_quoted(quoted, out),
            [b'\'', quoted @ ..] => return single_quoted(quoted, out),
            [byte, next @ ..] => push(out, *byte, next),
        };
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        rest = match rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'"', next @ ..] => return closed(next),
            [b'\\', b'x', high, low, next @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                push(out, nibble(*high) << 4 | nibble(*low), next)
            }
            [b'\\', escaped, next @ ..] => push(out, unescape(*escaped), next),
            [byte, next @ ..] => push(out, *byte, next),
        };
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        rest = match rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'\'', next @ ..] => return closed(next),
            [b'\\', b'\'', next @ ..] => push(out, b'\'', next),
            [byte, next @ ..] => push(out, *byte, next),
        };
    }
}

fn push<'a>(out: &mut Vec<u8>, byte: u8, next: &'a [u8]) -> &'a [u8] {
    out.push(byte);
    next
}

/// Checks that a closing quote is followed by white space or the end of the line.
fn closed(rest: &[u8]) -> Result<&[u8], ProtocolError> {
    match rest.first() {
        Some(byte) if !is_space(*byte) => Err(ProtocolError::UnbalancedQuotes),
        _ => Ok(rest),
    }
}

fn unescape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

/// Returns the value of a hexadecimal digit.
fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
