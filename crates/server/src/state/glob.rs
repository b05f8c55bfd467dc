//! Glob patterns of Redis.

/// A pattern: `*` matches any bytes, `?` any byte, `[a-z]` a byte of a class, `[^a-z]` a byte
/// outside of it, and `\` escapes the next byte.
pub(crate) struct Glob<'a>(&'a [u8]);

impl<'a> Glob<'a> {
    /// Creates a pattern; `None` if every key matches.
    pub(crate) fn new(pattern: &'a [u8]) -> Option<Self> {
        (pattern != b"*").then_some(Self(pattern))
    }

    /// Returns whether a key matches. Takes time proportional to the product of both lengths: only
    /// the last star needs backtracking.
    pub(crate) fn matches(&self, key: &[u8]) -> bool {
        let (mut pattern, mut rest) = (self.0, key);
        let mut star = None;
        if rest.is_empty() {
            // A star does not match an empty key, except as the whole pattern.
            return pattern.is_empty();
        }
        while !rest.is_empty() {
            if let [b'*', after @ ..] = pattern {
                pattern = after;
                star = Some((after, rest));
                if after.is_empty() {
                    return true;
                }
                continue;
            }
            if let Some(after) = step(pattern, rest[0]) {
                (pattern, rest) = (after, &rest[1..]);
                continue;
            }
            // The last star matches one more byte.
            let Some((after, from)) = star else { return false };
            (pattern, rest) = (after, &from[1..]);
            star = Some((pattern, rest));
        }
        pattern.iter().all(|byte| *byte == b'*')
    }
}

/// Returns the rest of the pattern if its next element, which is no star, matches the byte.
fn step(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (matches, after) = match pattern {
        [] => return None,
        [b'?', after @ ..] => (true, after),
        [b'[', b'^', after @ ..] => {
            let (matches, after) = class(after, byte);
            (!matches, after)
        }
        [b'[', after @ ..] => class(after, byte),
        [b'\\', literal, after @ ..] | [literal, after @ ..] => (*literal == byte, after),
    };
    matches.then_some(after)
}

/// Returns whether the class at the start contains the byte, and the rest of the pattern. An
/// unterminated class extends to the end.
fn class(mut rest: &[u8], byte: u8) -> (bool, &[u8]) {
    let mut matches = false;
    loop {
        rest = match rest {
            [] => return (matches, rest),
            [b'\\', literal, after @ ..] => {
                matches |= *literal == byte;
                after
            }
            [b']', after @ ..] => return (matches, after),
            [start, b'-', end, after @ ..] => {
                // As in Redis, bytes are signed, and the ends of a range may be swapped.
                let [start, end, byte] = [*start, *end, byte].map(u8::cast_signed);
                matches |= (start.min(end)..=start.max(end)).contains(&byte);
                after
            }
            [literal, after @ ..] => {
                matches |= *literal == byte;
                after
            }
        }
    }
}
