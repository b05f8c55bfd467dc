//! Patterns of keys, as Redis reads them.

/// A pattern: `*` stands for any bytes, `?` for any byte, `[a-z]` for one of a class and `[^a-z]`
/// for one outside it, and `\` takes the next byte as it is.
pub(crate) struct Glob<'a>(&'a [u8]);

impl<'a> Glob<'a> {
    /// A pattern; nothing if every key matches it.
    pub(crate) fn new(pattern: &'a [u8]) -> Option<Self> {
        (pattern != b"*").then_some(Self(pattern))
    }

    /// Whether a key matches. Takes time in proportion to both lengths, multiplied: a star that
    /// comes later makes it useless to try another length for an earlier one.
    pub(crate) fn matches(&self, key: &[u8]) -> bool {
        let (mut pattern, mut rest) = (self.0, key);
        let mut star = None;
        if rest.is_empty() {
            // Not even a star matches what is not there, unless it is all of the pattern.
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
            // The last star takes one byte more.
            let Some((after, from)) = star else { return false };
            (pattern, rest) = (after, &from[1..]);
            star = Some((pattern, rest));
        }
        pattern.iter().all(|byte| *byte == b'*')
    }
}

/// What follows in the pattern if its next part, which is no star, matches the byte.
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

/// Whether the class that begins here has the byte, and what follows its end. One that does not
/// end reaches to the end of the pattern.
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
                // Bytes have a sign in Redis, and ranges no direction.
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
