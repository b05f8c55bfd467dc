//! Lists of strings. Stored form: `u32` count, then for each string the `u32` offset of its end in
//! the text, then the text.

use std::fmt;

/// A list of strings, borrowed from a file or from a [`StringListBuf`].
#[derive(Clone, Copy, Default)]
pub struct StringList<'a> {
    /// The validated stored form; empty for a list without elements.
    bytes: &'a [u8],
}

impl<'a> StringList<'a> {
    /// Validates a stored list: at least one string, ends in ascending order and within the text,
    /// every string UTF-8, no bytes left over. Returns `None` if one of these does not hold.
    pub(crate) fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first_chunk::<4>()?;
        let count = usize::try_from(u32::from_le_bytes(*count)).ok().filter(|&n| n > 0)?;
        let (ends, text) = rest.split_at_checked(count.checked_mul(4)?)?;
        let text = std::str::from_utf8(text).ok()?;
        let mut last = 0;
        for end in ends.as_chunks::<4>().0 {
            let end = u32::from_le_bytes(*end) as usize;
            if end < last || !text.is_char_boundary(end) {
                return None;
            }
            last = end;
        }
        (last == text.len()).then_some(Self { bytes })
    }

    /// Returns the list for a stored form that [`from_bytes`](Self::from_bytes) accepted before.
    pub(crate) fn from_checked(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Returns the stored form: the number of strings as a little-endian `u32`, for each string the
    /// offset of its end in the text as a `u32`, and the text. Empty for a list without elements.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        self.bytes.first_chunk::<4>().map_or(0, |count| u32::from_le_bytes(*count) as usize)
    }

    /// Returns whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the string at this index, or `None` past the end.
    pub fn get(&self, index: usize) -> Option<&'a str> {
        let count = self.len();
        if index >= count {
            return None;
        }
        let end = |i: usize| {
            let at = 4 + 4 * i;
            self.bytes[at..].first_chunk::<4>().map_or(0, |end| u32::from_le_bytes(*end) as usize)
        };
        let start = if index == 0 { 0 } else { end(index - 1) };
        let text = &self.bytes[4 + 4 * count..];
        std::str::from_utf8(&text[start..end(index)]).ok()
    }

    /// Returns an iterator over the strings, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a str> + use<'a> {
        let list = *self;
        (0..list.len()).map(move |i| list.get(i).unwrap_or_default())
    }
}

impl PartialEq for StringList<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl fmt::Debug for StringList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A growable list of strings, for building the input of a writer.
#[derive(Clone, Debug, Default)]
pub struct StringListBuf {
    ends: Vec<u32>,
    text: String,
    bytes: Vec<u8>,
}

impl StringListBuf {
    /// Returns an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all strings. Keeps the allocated memory.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.text.clear();
    }

    /// Appends a string.
    ///
    /// # Panics
    /// Panics if the text of the list would reach 4 GiB.
    pub fn push(&mut self, string: &str) {
        self.text.push_str(string);
        self.ends.push(u32::try_from(self.text.len()).expect("a string list holds below 4 GiB"));
    }

    /// Encodes the list and returns it for [`Value::StringList`](super::value::Value::StringList).
    pub fn as_list(&mut self) -> StringList<'_> {
        self.bytes.clear();
        if !self.ends.is_empty() {
            self.bytes.extend_from_slice(&(self.ends.len() as u32).to_le_bytes());
            for end in &self.ends {
                self.bytes.extend_from_slice(&end.to_le_bytes());
            }
            self.bytes.extend_from_slice(self.text.as_bytes());
        }
        StringList { bytes: &self.bytes }
    }
}

impl<S: AsRef<str>> FromIterator<S> for StringListBuf {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Self {
        let mut list = Self::new();
        for string in strings {
            list.push(string.as_ref());
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_round_trip_in_order_including_empty_ones() {
        let mut buffer = StringListBuf::from_iter(["", "nut", "", "hätch"]);
        let list = buffer.as_list();
        let decoded = StringList::from_bytes(list.as_bytes()).expect("a stored list");
        assert_eq!(decoded.iter().collect::<Vec<_>>(), ["", "nut", "", "hätch"]);
        assert_eq!(decoded.get(4), None);
        assert!(StringListBuf::new().as_list().is_empty());
    }

    #[test]
    fn invalid_lists_are_rejected() {
        let mut buffer = StringListBuf::from_iter(["ab", "é"]);
        let good = buffer.as_list().as_bytes().to_vec();
        for len in 0..good.len() {
            assert!(StringList::from_bytes(&good[..len]).is_none(), "cut to {len} bytes");
        }
        let is_rejected = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            StringList::from_bytes(&bytes).is_none()
        };
        assert!(is_rejected(0, 0), "no elements");
        assert!(is_rejected(3, 0xff), "more elements than bytes");
        assert!(is_rejected(4, 5), "an end past the next end");
        assert!(is_rejected(4, 3), "an end within a character");
        assert!(is_rejected(12, 0xff), "text that is not UTF-8");
    }
}
