//! Who may see what on the admin endpoint: names of the server, and the token for private values.

use super::refusals::{Cause, Refusals};
use crate::secret_hash::SecretHash;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

/// Maximum number of wrong tokens in a window of time. Then all tokens are refused until its end.
const MAX_WRONG_TOKENS: u32 = 5;
const WINDOW: Duration = Duration::from_secs(10);

/// The rules of access.
#[derive(Clone, Default)]
pub struct AccessRules {
    /// Names, without a port, under which browsers reach the endpoint beside `localhost` and
    /// addresses.
    pub hosts: Vec<String>,
    /// The token that shows private values. `None` if they are always hidden.
    pub token: Option<SecretHash>,
}

impl fmt::Debug for AccessRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hosts, token } = self;
        let has_token = token.is_some();
        f.debug_struct("AccessRules").field("hosts", hosts).field("has_token", &has_token).finish()
    }
}

/// The rules of an endpoint, which can be replaced while it runs. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Access {
    rules: Arc<RwLock<AccessRules>>,
    wrong: Arc<Mutex<WrongTokens>>,
    refusals: Arc<Refusals>,
}

/// The wrong tokens of the current window.
#[derive(Debug, Default)]
struct WrongTokens {
    start: Option<Instant>,
    count: u32,
}

/// The result of the check of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenCheck {
    /// The token is right.
    Accepted,
    /// The token is wrong, or the endpoint has none.
    Wrong,
    /// There were too many wrong tokens recently, so this one was not compared.
    TooMany,
}

impl Access {
    /// Creates the rules of an endpoint.
    #[must_use]
    pub fn new(rules: AccessRules) -> Self {
        Self { rules: Arc::new(RwLock::new(rules)), ..Self::default() }
    }

    /// Replaces the rules. They apply to all later requests. With another token, the count of wrong
    /// tokens is reset, so that earlier attempts with the old token do not block the new one.
    pub fn replace(&self, rules: AccessRules) {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        let mut current = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        let is_same = match (&current.token, &rules.token) {
            (Some(old), Some(new)) => old.ct_eq(new).into(),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            *wrong = WrongTokens::default();
        }
        *current = rules;
    }

    /// Returns a function that writes the number of refused requests in the Prometheus text format.
    #[must_use]
    pub fn exposition(&self) -> Box<dyn Fn() -> String + Send + Sync> {
        let refusals = Arc::clone(&self.refusals);
        Box::new(move || refusals.exposition())
    }

    /// Counts and logs a refused request.
    pub(super) fn note_refused(&self, cause: Cause) {
        self.refusals.note(cause);
    }

    fn rules(&self) -> RwLockReadGuard<'_, AccessRules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the endpoint has a token.
    pub(super) fn has_token(&self) -> bool {
        self.rules().token.is_some()
    }

    /// Returns whether this name is among those of the rules.
    pub(super) fn has_host(&self, name: &str) -> bool {
        self.rules().hosts.iter().any(|host| host.eq_ignore_ascii_case(name))
    }

    /// Checks a token. Takes the same time for all wrong ones.
    pub(super) fn check(&self, token: &[u8], now: Instant) -> TokenCheck {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        if wrong.start.is_some_and(|start| now.saturating_duration_since(start) >= WINDOW) {
            *wrong = WrongTokens::default();
        }
        if wrong.count >= MAX_WRONG_TOKENS {
            return TokenCheck::TooMany;
        }
        let hash = SecretHash::of(token);
        if self.rules().token.is_some_and(|expected| expected.ct_eq(&hash).into()) {
            return TokenCheck::Accepted;
        }
        wrong.start.get_or_insert(now);
        wrong.count += 1;
        TokenCheck::Wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_tokens_are_limited_and_the_right_one_works_again_later() {
        let rules = AccessRules { hosts: Vec::new(), token: Some(SecretHash::of(b"right")) };
        let (access, start) = (Access::new(rules), Instant::now());
        assert_eq!(access.check(b"right", start), TokenCheck::Accepted);
        for _ in 0..MAX_WRONG_TOKENS {
            assert_eq!(access.check(b"wrong", start), TokenCheck::Wrong);
        }
        assert_eq!(access.check(b"right", start), TokenCheck::TooMany);
        assert_eq!(access.check(b"right", start + WINDOW), TokenCheck::Accepted);
        access.replace(AccessRules::default());
        assert_eq!(access.check(b"right", start + WINDOW), TokenCheck::Wrong);
        assert!(!access.has_token());
    }

    #[test]
    fn another_token_ends_the_wait_after_wrong_ones() {
        let rules = |token| AccessRules { hosts: Vec::new(), token: Some(SecretHash::of(token)) };
        let (access, now) = (Access::new(rules(b"old")), Instant::now());
        for _ in 0..MAX_WRONG_TOKENS {
            access.check(b"new", now);
        }
        access.replace(rules(b"old"));
        assert_eq!(access.check(b"old", now), TokenCheck::TooMany, "the same token");
        access.replace(rules(b"new"));
        assert_eq!(access.check(b"new", now), TokenCheck::Accepted);
    }

    #[test]
    fn names_are_compared_without_case_and_the_token_is_not_shown() {
        let token = Some(SecretHash::of(b"right"));
        let access = Access::new(AccessRules { hosts: vec!["Cache-7.example".to_owned()], token });
        assert!(access.has_host("cache-7.EXAMPLE") && !access.has_host("cache-7.example.evil"));
        assert!(format!("{access:?}").contains("has_token: true"));
    }
}
