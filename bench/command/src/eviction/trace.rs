//! A trace: a sequence of requests for items.

use std::collections::HashMap;

/// A sequence of requests, each the number of an item. It is kept in memory, since the optimum
/// needs future requests.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) name: String,
    pub(crate) requests: Vec<u32>,
    pub(crate) items: Items,
}

/// The keys and value sizes of items. Items are numbered from 0 in the order of their first
/// requests.
#[derive(Debug, Default)]
pub(crate) struct Items {
    keys: Vec<u8>,
    /// The end offset of each key.
    ends: Vec<u32>,
    values: Vec<u32>,
}

impl Items {
    /// Maximum total length of all keys, in bytes.
    pub(crate) const MAX_KEYS_BYTES: usize = u32::MAX as usize;

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn key(&self, item: u32) -> &[u8] {
        let at = item as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.keys[start..self.ends[at] as usize]
    }

    /// Returns the length of an item's value, in bytes.
    pub(crate) fn value_bytes(&self, item: u32) -> usize {
        self.values[item as usize] as usize
    }

    /// Returns the length of an item's key and value, in bytes.
    pub(crate) fn bytes(&self, item: u32) -> u64 {
        (self.key(item).len() + self.value_bytes(item)) as u64
    }

    /// Returns the length of the longest value, in bytes.
    pub(crate) fn max_value_bytes(&self) -> usize {
        self.values.iter().copied().max().unwrap_or(0) as usize
    }

    /// Returns whether all items have the same size.
    pub(crate) fn are_alike(&self) -> bool {
        let first = (self.len() > 0).then(|| self.bytes(0));
        (0..self.len() as u32).all(|item| Some(self.bytes(item)) == first)
    }

    /// Adds an item and returns its number. Returns `None` if the keys would exceed the maximum
    /// length.
    fn push(&mut self, key: &[u8], value_bytes: u32) -> Option<u32> {
        if self.keys.len() + key.len() > Self::MAX_KEYS_BYTES {
            return None;
        }
        self.keys.extend_from_slice(key);
        self.ends.push(self.keys.len() as u32);
        self.values.push(value_bytes);
        Some(self.len() as u32 - 1)
    }
}

/// Builds a trace, one request at a time.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    requests: Vec<u32>,
    items: Items,
    numbers: HashMap<Box<[u8]>, u32>,
}

impl Recorder {
    /// Adds a request. The first request for a key determines the size of its value. Returns false
    /// if the keys would exceed [`Items::MAX_KEYS_BYTES`] bytes.
    pub(crate) fn push(&mut self, key: &[u8], value_bytes: u32) -> bool {
        let number = if let Some(number) = self.numbers.get(key) {
            *number
        } else {
            let Some(number) = self.items.push(key, value_bytes) else { return false };
            self.numbers.insert(key.into(), number);
            number
        };
        self.requests.push(number);
        true
    }

    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn finish(self, name: String) -> Trace {
        Trace { name, requests: self.requests, items: self.items }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_numbered_in_the_order_of_their_requests() {
        let mut recorder = Recorder::default();
        for (key, bytes) in [("b", 10), ("a", 20), ("b", 99), ("", 0)] {
            assert!(recorder.push(key.as_bytes(), bytes));
        }
        let Trace { name, requests, items } = recorder.finish("t".to_owned());
        assert_eq!((&name[..], requests), ("t", vec![0, 1, 0, 2]));
        let all: Vec<_> = (0..3).map(|item| (items.key(item), items.bytes(item))).collect();
        assert_eq!(all, [(&b"b"[..], 11), (b"a", 21), (b"", 0)]);
        assert_eq!((items.len(), items.max_value_bytes(), items.are_alike()), (3, 20, false));
    }
}
