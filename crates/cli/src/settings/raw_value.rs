//! What somebody gave as a setting's value, before it is known to be one.

/// A value as it was given.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Given {
    /// A text that may stand for anything, as flags and variables have it.
    Word(String),
    /// A string of a file.
    Text(String),
    Integer(i64),
    Truth(bool),
    List(Vec<String>),
    /// Something that no setting is, by its name.
    Other(&'static str),
}

impl Given {
    /// The value for messages.
    pub(crate) fn found(&self) -> String {
        match self {
            Self::Word(text) if text.is_empty() => "nothing".to_owned(),
            Self::Word(text) => quoted(text),
            Self::Text(text) => format!("the string {}", quoted(text)),
            Self::Integer(number) => format!("the integer {number}"),
            Self::Truth(truth) => truth.to_string(),
            Self::List(_) => "a list".to_owned(),
            Self::Other(name) => (*name).to_owned(),
        }
    }

    /// The text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Word(text) | Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Self::Word(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
            Self::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// The truth, if it is one.
    pub(crate) fn truth(&self) -> Option<bool> {
        match self {
            Self::Truth(truth) => Some(*truth),
            Self::Word(text) => match text.as_str() {
                "true" | "yes" => Some(true),
                "false" | "no" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A text for messages, in backticks and not too long.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 80;
    let mut shown: String = text.chars().take(LONGEST).collect::<String>();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("`{}`", shown.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_for_anything_and_strings_for_texts_alone() {
        let word = |text: &str| Given::Word(text.to_owned());
        assert_eq!(word("12").number(), Some(12));
        assert_eq!(word("yes").truth(), Some(true));
        assert_eq!(word("+1").number(), None);
        assert_eq!(word("").number(), None);
        let text = Given::Text("12".to_owned());
        assert_eq!((text.number(), text.truth(), text.text()), (None, None, Some("12")));
        assert_eq!(Given::Integer(-1).number(), None);
    }

    #[test]
    fn messages_quote_little_and_no_line_ends() {
        assert_eq!(quoted("a\nb"), "`a\\nb`");
        assert_eq!(quoted(&"é".repeat(100)).chars().count(), 83);
    }
}
