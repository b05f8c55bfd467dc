//! Lists of strings: `u32` count, `u32` end of each string within the text, then the text.

use std::fmt;

/// A list of strings, borrowed from a file or from a [`StringListBuf`].
#[derive(Clone, Copy, Default)]
pub struct StringList<'a> {
    /// Empty for the list without elements, else the stored form, checked.
    bytes: &'a [u8],
}

impl<'a> StringList<'a> {
    /// Checks that the bytes are a stored list: every end in order and within the text, every
    /// string UTF-8, nothing left over.
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

    /// Returns the list with a stored form that was checked before.
    pub(crate) fn from_checked(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The stored form; empty for the list without elements.
    pub(crate) fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.bytes.first_chunk::<4>().map_or(0, |count| u32::from_le_bytes(*count) as usize)
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The string at this place, or `None` past the end.
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

    /// The strings in order.
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

/// A list of strings being made, to give to a writer.
#[derive(Clone, Debug, Default)]
pub struct StringListBuf {
    ends: Vec<u32>,
    text: String,
    bytes: Vec<u8>,
}

impl StringListBuf {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all strings and keeps the memory.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.text.clear();
    }

    /// Adds a string at the end.
    ///
    /// # Panics
    /// When the text of the list grows beyond 4 GiB.
    pub fn push(&mut self, string: &str) {
        self.text.push_str(string);
        self.ends.push(u32::try_from(self.text.len()).expect("a string list holds below 4 GiB"));
    }

    /// The list, ready to be given to a writer.
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
    fn strings_come_back_in_order_with_empty_ones_kept() {
        let mut made = StringListBuf::from_iter(["", "nut", "", "hätch"]);
        let list = made.as_list();
        let again = StringList::from_bytes(list.as_bytes()).expect("a stored list");
        assert_eq!(again.iter().collect::<Vec<_>>(), ["", "nut", "", "hätch"]);
        assert_eq!(again.get(4), None);
        assert!(StringListBuf::new().as_list().is_empty());
    }

    #[test]
    fn broken_lists_are_refused() {
        let mut made = StringListBuf::from_iter(["ab", "é"]);
        let good = made.as_list().as_bytes().to_vec();
        for len in 0..good.len() {
            assert!(StringList::from_bytes(&good[..len]).is_none(), "cut to {len} bytes");
        }
        let broken = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            StringList::from_bytes(&bytes).is_none()
        };
        assert!(broken(0, 0), "no elements");
        assert!(broken(3, 0xff), "more elements than bytes");
        assert!(broken(4, 5), "an end past the next end");
        assert!(broken(4, 3), "an end within a character");
        assert!(broken(12, 0xff), "text that is not UTF-8");
    }
}
