//! The data of the systems. Rows are generated from numbers, so they are the same in every run.

use crate::random::{Random, SEED};
use std::sync::OnceLock;

/// Number of floats in the vector of a row.
pub(crate) const VECTOR_LEN: usize = 128;

/// Strings, stored in one allocation.
#[derive(Debug, Default)]
pub struct Texts {
    text: String,
    ends: Vec<usize>,
}

impl Texts {
    /// Returns the texts `{name}_{number}` of these numbers.
    pub fn numbered(name: &str, numbers: impl IntoIterator<Item = u32>) -> Self {
        let mut texts = Self::default();
        for number in numbers {
            texts.push(&[name, "_", &number.to_string()]);
        }
        texts
    }

    /// Appends a text, which is the concatenation of `pieces`.
    pub(crate) fn push(&mut self, pieces: &[&str]) {
        for piece in pieces {
            self.text.push_str(piece);
        }
        self.ends.push(self.text.len());
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no texts.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the text with index `at`.
    pub fn get(&self, at: usize) -> &str {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start..self.ends[at]]
    }

    /// Returns all texts as bytes.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|at| self.get(at).as_bytes())
    }
}

/// The rows that fill every system.
#[derive(Debug)]
pub struct Rows {
    keys: Texts,
    values: Values,
    /// The indexes of the rows in key order, computed at the first use.
    order: OnceLock<Vec<u32>>,
}

#[derive(Debug)]
enum Values {
    Texts(Texts),
    Vectors(Vec<f32>),
}

/// The value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A short string.
    Text(&'a str),
    /// An embedding.
    Vector(&'a [f32]),
}

impl<'a> Value<'a> {
    /// Returns the bytes for a system that stores only bytes. Texts are returned as they are.
    /// Floats are encoded in `scratch`, little-endian.
    pub fn bytes<'s>(self, scratch: &'s mut Vec<u8>) -> &'s [u8]
    where
        'a: 's,
    {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Vector(floats) => {
                scratch.clear();
                scratch.extend(floats.iter().flat_map(|float| float.to_le_bytes()));
                scratch
            }
        }
    }
}

impl Rows {
    /// Returns `count` rows: `key_0` with the value `val_0`, `key_1` with `val_1`, and so on.
    pub fn of_texts(count: u32) -> Self {
        let values = Values::Texts(Texts::numbered("val", 0..count));
        Self { keys: Texts::numbered("key", 0..count), values, order: OnceLock::new() }
    }

    /// Returns `count` rows: `vec_0`, `vec_1` and so on, with distinct vectors of 128 floats.
    pub fn of_vectors(count: u32) -> Self {
        let mut random = Random::new(SEED);
        let floats = (0..count as usize * VECTOR_LEN).map(|_| random.fraction() as f32).collect();
        let keys = Texts::numbered("vec", 0..count);
        Self { keys, values: Values::Vectors(floats), order: OnceLock::new() }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the key and value of the row with index `at`.
    pub fn get(&self, at: usize) -> (&str, Value<'_>) {
        let value = match &self.values {
            Values::Texts(texts) => Value::Text(texts.get(at)),
            Values::Vectors(floats) => {
                Value::Vector(&floats[at * VECTOR_LEN..(at + 1) * VECTOR_LEN])
            }
        };
        (self.keys.get(at), value)
    }

    /// Returns all rows in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        (0..self.len()).map(|at| self.get(at))
    }

    /// Returns all rows in the order of their keys' bytes.
    pub fn in_key_order(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        self.sorted().iter().map(|at| self.get(*at as usize))
    }

    /// Returns the indexes of the rows in key order. The first call sorts.
    pub(crate) fn sorted(&self) -> &[u32] {
        self.order.get_or_init(|| {
            let mut order: Vec<u32> = (0..self.len() as u32).collect();
            order.sort_unstable_by_key(|at| self.keys.get(*at as usize));
            order
        })
    }

    /// Returns the total length of all keys and values, in bytes.
    pub fn bytes(&self) -> usize {
        let values = match &self.values {
            Values::Texts(texts) => texts.text.len(),
            Values::Vectors(floats) => size_of_val(&floats[..]),
        };
        self.keys.text.len() + values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_texts_are_numbered() {
        let rows = Rows::of_texts(12);
        assert_eq!(rows.len(), 12);
        assert_eq!(rows.get(0), ("key_0", Value::Text("val_0")));
        assert_eq!(rows.iter().last(), Some(("key_11", Value::Text("val_11"))));
        assert_eq!(rows.bytes(), 2 * (10 * 5 + 2 * 6));
    }

    #[test]
    fn key_order_is_byte_order() {
        let rows = Rows::of_texts(12);
        let keys: Vec<&str> = rows.in_key_order().map(|(key, _)| key).collect();
        assert_eq!(keys[..5], ["key_0", "key_1", "key_10", "key_11", "key_2"]);
        assert!(keys.is_sorted());
    }

    #[test]
    fn vectors_differ_and_have_their_bytes() {
        let rows = Rows::of_vectors(2);
        let (key, first) = rows.get(0);
        assert_eq!(key, "vec_0");
        assert_ne!(first, rows.get(1).1);
        let mut scratch = Vec::new();
        assert_eq!(first.bytes(&mut scratch).len(), VECTOR_LEN * 4);
    }
}
