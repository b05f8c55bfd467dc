//! The value of a setting before its type is checked.

/// A value before its type is checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RawValue {
    /// Text from a flag or a variable, which can be of any type.
    Untyped(String),
    /// A string in a file.
    String(String),
    Integer(i64),
    Bool(bool),
    List(Vec<String>),
    /// A type that no setting has, with its name.
    Unsupported(&'static str),
}

impl RawValue {
    /// Returns the value for messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Untyped(text) if text.is_empty() => "nothing".to_owned(),
            Self::Untyped(text) => quote(text),
            Self::String(text) => format!("the string {}", quote(text)),
            Self::Integer(number) => format!("the integer {number}"),
            Self::Bool(flag) => flag.to_string(),
            Self::List(_) => "a list".to_owned(),
            Self::Unsupported(name) => (*name).to_owned(),
        }
    }

    /// Returns the text, if the value is one.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Untyped(text) | Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number, if the value is one.
    pub(crate) fn as_number(&self) -> Option<u64> {
        match self {
            Self::Untyped(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.parse().ok()
            }
            Self::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Returns the boolean, if the value is one.
    pub(crate) fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(flag) => Some(*flag),
            Self::Untyped(text) => match text.as_str() {
                "true" | "yes" => Some(true),
                "false" | "no" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Returns a text in backticks for messages, shortened to 80 characters.
pub(crate) fn quote(text: &str) -> String {
    const MAX_LEN: usize = 80;
    let mut shortened: String = text.chars().take(MAX_LEN).collect::<String>();
    if shortened.len() < text.len() {
        shortened.push('…');
    }
    format!("`{}`", shortened.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untyped_text_has_any_type_and_strings_are_only_text() {
        let word = |text: &str| RawValue::Untyped(text.to_owned());
        assert_eq!(word("12").as_number(), Some(12));
        assert_eq!(word("yes").as_bool(), Some(true));
        assert_eq!(word("+1").as_number(), None);
        assert_eq!(word("").as_number(), None);
        let text = RawValue::String("12".to_owned());
        assert_eq!((text.as_number(), text.as_bool(), text.as_text()), (None, None, Some("12")));
        assert_eq!(RawValue::Integer(-1).as_number(), None);
    }

    #[test]
    fn quoted_text_is_short_and_has_no_line_ends() {
        assert_eq!(quote("a\nb"), "`a\\nb`");
        assert_eq!(quote(&"é".repeat(100)).chars().count(), 83);
    }
}
