//! Decoding of values from their stored form at any address.

use crate::error::{Failure, Result};
use snapshot_engine::{Error, Limit, StringListBuf, Value, ValueType};

/// Buffers for the lists of one value at a time. They keep their memory between values.
#[derive(Default)]
pub(crate) struct Decoder {
    i64s: Vec<i64>,
    f64s: Vec<f64>,
    f32s: Vec<f32>,
    strings: StringListBuf,
}

impl Decoder {
    /// Decodes a value. A list without elements is valid for each list type.
    ///
    /// # Errors
    /// Fails with `argument` if the bytes are not a value of this type.
    pub(crate) fn decode<'v>(&'v mut self, code: u32, bytes: &'v [u8]) -> Result<Value<'v>> {
        let value_type = u8::try_from(code).ok().and_then(ValueType::from_code);
        let Some(value_type) = value_type else {
            return Err(unknown(code));
        };
        let invalid = || invalid(value_type, bytes.len());
        Ok(match value_type {
            ValueType::Bytes => Value::Bytes(bytes),
            ValueType::String => Value::String(text(bytes).ok_or_else(invalid)?),
            ValueType::Bool => match bytes {
                [0] => Value::Bool(false),
                [1] => Value::Bool(true),
                _ => return Err(invalid()),
            },
            ValueType::I64 => {
                Value::I64(i64::from_le_bytes(bytes.try_into().map_err(|_| invalid())?))
            }
            ValueType::F64 => {
                Value::F64(f64::from_le_bytes(bytes.try_into().map_err(|_| invalid())?))
            }
            ValueType::EmptyList if bytes.is_empty() => Value::EmptyList,
            ValueType::EmptyList => return Err(invalid()),
            ValueType::I64List => {
                fill(&mut self.i64s, bytes, i64::from_le_bytes).ok_or_else(invalid)?;
                Value::I64List(&self.i64s)
            }
            ValueType::F64List => {
                fill(&mut self.f64s, bytes, f64::from_le_bytes).ok_or_else(invalid)?;
                Value::F64List(&self.f64s)
            }
            ValueType::F32List => {
                fill(&mut self.f32s, bytes, f32::from_le_bytes).ok_or_else(invalid)?;
                Value::F32List(&self.f32s)
            }
            ValueType::StringList => {
                fill_strings(&mut self.strings, bytes).ok_or_else(invalid)?;
                Value::StringList(self.strings.as_list())
            }
            _ => return Err(unknown(code)),
        })
    }

    /// Returns a list of these strings.
    ///
    /// # Errors
    /// Fails with `limit` if they have more than 4 GiB, or with the failure of a string.
    pub(crate) fn strings<'s>(
        &mut self,
        strings: impl Iterator<Item = Result<&'s str>>,
    ) -> Result<Value<'_>> {
        self.strings.clear();
        let mut len: usize = 0;
        for string in strings {
            let string = string?;
            len += string.len();
            if u32::try_from(len).is_err() {
                let (what, max) = ("text of a list of strings in bytes", u64::from(u32::MAX));
                let limit = Limit { what, max, found: len as u64 };
                return Err(Error::Limit(Box::new(limit)).into());
            }
            self.strings.push(string);
        }
        Ok(Value::StringList(self.strings.as_list()))
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// Fills a buffer with the elements of a list. Returns `None` if the bytes are not whole elements.
fn fill<T, const N: usize>(list: &mut Vec<T>, bytes: &[u8], read: fn([u8; N]) -> T) -> Option<()> {
    let (elements, []) = bytes.as_chunks::<N>() else { return None };
    list.clear();
    list.extend(elements.iter().map(|element| read(*element)));
    Some(())
}

/// Fills a buffer with the strings of a stored list. Returns `None` if the list is invalid.
fn fill_strings(list: &mut StringListBuf, bytes: &[u8]) -> Option<()> {
    list.clear();
    if bytes.is_empty() {
        return Some(());
    }
    let (count, rest) = bytes.split_first_chunk::<4>()?;
    let count = u32::from_le_bytes(*count) as usize;
    let (ends, text) = rest.split_at_checked(count.checked_mul(4)?)?;
    let text = self::text(text)?;
    let mut start = 0;
    for end in ends.as_chunks::<4>().0 {
        let end = u32::from_le_bytes(*end) as usize;
        list.push(text.get(start..end)?);
        start = end;
    }
    (start == text.len() && count > 0).then_some(())
}

#[cold]
fn unknown(code: u32) -> Failure {
    Failure::argument("type", "a type from 1 to 10", code)
}

#[cold]
fn invalid(value_type: ValueType, len: usize) -> Failure {
    let expected = format!("the stored form of a value of type {value_type}");
    Failure::argument("value", &expected, format!("{len} other bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(value_type: ValueType, bytes: &[u8]) -> Option<String> {
        let mut decoder = Decoder::default();
        let value = decoder.decode(u32::from(value_type.code()), bytes);
        value.ok().map(|value| format!("{value:?}"))
    }

    #[test]
    fn lists_are_decoded_at_any_address() {
        let bytes = [0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(decoded(ValueType::I64List, &bytes[1..]).as_deref(), Some("I64List([1, 2])"));
        assert_eq!(decoded(ValueType::I64List, &bytes), None);
        assert_eq!(decoded(ValueType::I64List, &[]).as_deref(), Some("I64List([])"));
    }

    #[test]
    fn a_list_of_strings_has_valid_ends_and_text() {
        let good = b"\x02\0\0\0\x01\0\0\0\x03\0\0\0a\xc3\xa4";
        let found = decoded(ValueType::StringList, good);
        assert_eq!(found.as_deref(), Some("StringList([\"a\", \"\u{e4}\"])"));
        for at in [0, 4, 8, 13] {
            let mut bad = good.to_vec();
            bad[at] ^= 0xc2;
            assert_eq!(decoded(ValueType::StringList, &bad), None, "{at}");
        }
        for len in 1..good.len() {
            assert_eq!(decoded(ValueType::StringList, &good[..len]), None, "{len}");
        }
    }

    #[test]
    fn scalars_have_their_length() {
        assert_eq!(decoded(ValueType::Bool, &[1]).as_deref(), Some("Bool(true)"));
        assert_eq!(decoded(ValueType::Bool, &[2]), None);
        assert_eq!(decoded(ValueType::I64, &[1; 7]), None);
        assert_eq!(decoded(ValueType::String, &[0xff]), None);
        assert!(Decoder::default().decode(11, &[]).is_err());
        assert!(Decoder::default().decode(258, &[]).is_err());
    }
}
