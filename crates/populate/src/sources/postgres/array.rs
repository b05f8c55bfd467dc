//! Arrays of PostgreSQL in their text form, such as `{1,2}` and `{"a b",c}`.

use crate::sources::quoted;
use nuthatch_snapshot::StringListBuf;

/// Parses an array of one dimension, and calls `element` with the text of each element.
pub(super) fn each(
    text: &str,
    unescaped: &mut String,
    mut element: impl FnMut(&str) -> Result<(), String>,
) -> Result<(), String> {
    let wrong = |expected: &str| format!("expected {expected}, found {}", quoted(text.as_bytes()));
    // Bounds that do not begin with one come first, as in `[0:1]={1,2}`.
    let braces = text.split_once('=').filter(|(bounds, _)| bounds.starts_with('['));
    let inner = braces.map_or(text, |(_, braces)| braces);
    let inner = inner.strip_prefix('{').and_then(|inner| inner.strip_suffix('}'));
    let mut rest = inner.ok_or_else(|| wrong("an array in braces"))?;
    if rest.is_empty() {
        return Ok(());
    }
    loop {
        if rest.starts_with('{') {
            return Err(wrong("an array of one dimension"));
        }
        rest = if let Some(quoted_text) = rest.strip_prefix('"') {
            let end = unquote(quoted_text, unescaped).ok_or_else(|| wrong("a closing quote"))?;
            element(unescaped)?;
            &quoted_text[end..]
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            if &rest[..end] == "NULL" {
                return Err(wrong("an array without NULL"));
            }
            element(&rest[..end])?;
            &rest[end..]
        };
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None if rest.is_empty() => return Ok(()),
            None => return Err(wrong("a comma after the element")),
        }
    }
}

/// Removes the escapes of a text that ends with a quote. Returns the offset after the quote.
fn unquote(text: &str, unescaped: &mut String) -> Option<usize> {
    unescaped.clear();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some(at + 1),
            '\\' => unescaped.push(chars.next()?.1),
            char => unescaped.push(char),
        }
    }
    None
}

/// Parses an array of integers.
pub(super) fn ints(text: &str, unescaped: &mut String, list: &mut Vec<i64>) -> Result<(), String> {
    list.clear();
    each(text, unescaped, |element| {
        list.push(element.parse().map_err(|_| format!("expected an integer, found {element}"))?);
        Ok(())
    })
}

/// Parses an array of floats.
pub(super) fn floats<T: fast_float2::FastFloat>(
    text: &str,
    unescaped: &mut String,
    list: &mut Vec<T>,
) -> Result<(), String> {
    list.clear();
    each(text, unescaped, |element| {
        let float = fast_float2::parse(element);
        list.push(float.map_err(|_| format!("expected a float, found {element}"))?);
        Ok(())
    })
}

/// Parses an array of texts.
pub(super) fn texts(
    text: &str,
    unescaped: &mut String,
    list: &mut StringListBuf,
) -> Result<(), String> {
    list.clear();
    let mut len = 0_usize;
    each(text, unescaped, |element| {
        len += element.len();
        if u32::try_from(len).is_err() {
            return Err("expected a list of strings of at most 4 GiB, found more".to_owned());
        }
        list.push(element);
        Ok(())
    })
}

/// Parses a vector of pgvector, such as `[1,0.5]`.
pub(super) fn vector(text: &str, list: &mut Vec<f32>) -> Result<(), String> {
    list.clear();
    let wrong = || format!("expected a vector such as [1,0.5], found {}", quoted(text.as_bytes()));
    let inner =
        text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).ok_or_else(wrong)?;
    for element in inner.split(',').filter(|_| !inner.is_empty()) {
        list.push(fast_float2::parse(element).map_err(|_| wrong())?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(text: &str) -> Result<Vec<String>, String> {
        let (mut list, mut unescaped) = (Vec::new(), String::new());
        each(text, &mut unescaped, |element| {
            list.push(element.to_owned());
            Ok(())
        })?;
        Ok(list)
    }

    #[test]
    fn arrays_are_split_into_elements() {
        for (text, expected) in [
            ("{}", &[][..]),
            ("{1,2}", &["1", "2"]),
            (r#"{"a b","c\"d\\",NULLS,""}"#, &["a b", "c\"d\\", "NULLS", ""]),
            ("[0:1]={1,2}", &["1", "2"]),
            (r#"{"NULL"}"#, &["NULL"]),
        ] {
            assert_eq!(elements(text).expect(text), expected, "{text}");
        }
    }

    #[test]
    fn arrays_that_cannot_be_lists_are_errors() {
        for text in ["{1,NULL}", "{{1},{2}}", "1,2", "{\"a}", "{\"a\"b}", ""] {
            assert!(elements(text).is_err(), "{text}");
        }
    }
}
