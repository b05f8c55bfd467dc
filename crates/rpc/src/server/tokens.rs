//! Tokens of clients, and the file that lists them.
//!
//! A line is `token NAME read|write SECRET`. Empty lines and lines that begin with `#` are ignored.
//! The secret is `>TEXT`, which clients send as it is, or `#` and the hexadecimal SHA-256 of the
//! text. A name may have several lines, so that its secret can be changed without an interruption.

use nuthatch_listen::SecretHash;
use std::fmt;
use std::sync::Arc;
use subtle::{Choice, ConstantTimeEq};

/// The right of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Right {
    Read,
    Write,
}

/// The tokens of a server. It stores only hashes of the secrets, and `Debug` shows only the names.
#[derive(Clone, Default)]
pub struct Tokens(Arc<Vec<Token>>);

#[derive(Clone)]
struct Token {
    name: String,
    right: Right,
    hash: SecretHash,
}

/// Why a file of tokens was refused. It quotes nothing of the file, which may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokensError {
    /// The number of the line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// What was expected.
    pub problem: &'static str,
}

/// The syntax, which each error repeats.
const RULE: &str = "a line is `token NAME read|write SECRET`, where SECRET is >TEXT, or # and the \
                    64 hexadecimal digits of the SHA-256 of TEXT; empty lines and those that begin \
                    with # are comments";

impl fmt::Display for TokensError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}; {RULE}", self.problem),
            line => write!(f, "line {line} of the tokens: {}; {RULE}", self.problem),
        }
    }
}

impl std::error::Error for TokensError {}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|token| &token.name)).finish()
    }
}

impl Tokens {
    /// Parses the text of a file of tokens.
    ///
    /// # Errors
    ///
    /// Fails if a line is not valid, or if there is no token.
    pub fn parse(text: &str) -> Result<Self, TokensError> {
        let mut tokens = Vec::new();
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            let token =
                Self::line(line).map_err(|problem| TokensError { line: at + 1, problem })?;
            tokens.push(token);
        }
        if tokens.is_empty() {
            return Err(TokensError { line: 0, problem: "expected a token, found none" });
        }
        Ok(Self(Arc::new(tokens)))
    }

    fn line(line: &str) -> Result<Token, &'static str> {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let ["token", name, right, secret] = words[..] else {
            return Err("expected four words, of which the first is `token`");
        };
        let right = match right {
            "read" => Right::Read,
            "write" => Right::Write,
            _ => return Err("expected `read` or `write` as the third word"),
        };
        let hash = match secret.split_at_checked(1) {
            Some((">", text)) if !text.is_empty() => SecretHash::of(text.as_bytes()),
            Some(("#", digits)) => {
                SecretHash::parse(digits).ok_or("expected 64 hexadecimal digits after #")?
            }
            _ => return Err("expected a secret that begins with > or #"),
        };
        Ok(Token { name: name.to_owned(), right, hash })
    }

    /// Returns whether the token with this text is known: clients with it may read.
    #[must_use]
    pub fn admits(&self, token: &[u8]) -> bool {
        self.right(&SecretHash::of(token)).is_some()
    }

    /// Returns the right of the token with this hash; `None` if it is unknown.
    pub(crate) fn right(&self, hash: &SecretHash) -> Option<Right> {
        // Compares all tokens, each in constant time, so that the time reveals nothing.
        let mut found = (Choice::from(0), Choice::from(0));
        for token in self.0.iter() {
            let equal = token.hash.ct_eq(hash);
            found.0 |= equal;
            found.1 |= equal & Choice::from(u8::from(token.right == Right::Write));
        }
        match (bool::from(found.0), bool::from(found.1)) {
            (_, true) => Some(Right::Write),
            (true, false) => Some(Right::Read),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_known_by_their_secret_or_its_hash() {
        // The SHA-256 of `wren`.
        let hash = "b1e3c2ec1a80a8ccdbcdb04b26a5896ea2c7ef8b3774dbb004bd3b1aaa195bec";
        let text = format!("# two\n\ntoken app write >robin\n token page read #{hash}\n");
        let tokens = Tokens::parse(&text).expect("tokens");
        assert_eq!(tokens.right(&SecretHash::of(b"robin")), Some(Right::Write));
        assert_eq!(tokens.right(&SecretHash::of(b"wren")), Some(Right::Read));
        assert!(tokens.admits(b"robin") && tokens.admits(b"wren") && !tokens.admits(b"lark"));
        for unknown in [&b""[..], b"robi", b"robin ", hash.as_bytes()] {
            assert_eq!(tokens.right(&SecretHash::of(unknown)), None);
        }
        assert_eq!(format!("{tokens:?}"), r#"["app", "page"]"#);
    }

    #[test]
    fn a_line_that_is_wrong_is_named_and_not_quoted() {
        for (text, line, problem) in [
            ("", 0, "expected a token, found none"),
            ("# nothing\n", 0, "expected a token, found none"),
            ("token a write", 1, "expected four words, of which the first is `token`"),
            ("\nuser a write >s", 2, "expected four words, of which the first is `token`"),
            ("token a write >s more", 1, "expected four words, of which the first is `token`"),
            ("token a all >s", 1, "expected `read` or `write` as the third word"),
            ("token a read secret", 1, "expected a secret that begins with > or #"),
            ("token a read >", 1, "expected a secret that begins with > or #"),
            ("token a read #12", 1, "expected 64 hexadecimal digits after #"),
        ] {
            let error = Tokens::parse(text).expect_err(text);
            assert_eq!((error.line, error.problem), (line, problem), "{text}");
            let message = error.to_string();
            assert!(!message.contains("secret,"), "{message}");
            for rule in ["token NAME read|write SECRET", ">TEXT", "SHA-256 of TEXT"] {
                assert!(message.contains(rule), "{message}");
            }
        }
    }
}
