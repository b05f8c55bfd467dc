//! Users with their passwords and permissions, from a file in a subset of the format of Redis.
//!
//! A line is `user NAME RULE...`. Empty lines and lines that begin with `#` are ignored.
//!
//! | rule | meaning |
//! |---|---|
//! | `on`, `off` | the user may log in, or may not; `off` by default |
//! | `>PASSWORD`, `#SHA256` | adds a password, plain or as the 64 hexadecimal digits of its hash |
//! | `nopass` | every password is accepted |
//! | `resetpass` | removes all passwords and `nopass` |
//! | `~PATTERN`, `allkeys` | permits keys that match a glob pattern, or all keys; none by default |
//! | `resetkeys` | permits no keys |
//! | `+COMMAND`, `-COMMAND` | permits or denies a command or subcommand, such as `config|get` |
//! | `+@GROUP`, `-@GROUP` | the same for `all`, `read`, `write`, `connection`, `dangerous` |
//! | `allcommands`, `nocommands` | the same as `+@all` and `-@all` |
//! | `reset` | restores the defaults: `off`, no passwords, no commands, no keys |
//!
//! Rules apply from left to right. A client that has not logged in is the user `default`. If the
//! file does not define that user, it has all permissions and needs no password.

use super::Catalog;
use super::permissions::Permissions;
use nuthatch_listen::SecretHash;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use subtle::{Choice, ConstantTimeEq};

const BAD_HASH: &str = "expected 64 hexadecimal digits after #, found something else; `printf %s \
                        PASSWORD | sha256sum` prints them";

/// The user of clients before they log in.
pub(crate) const DEFAULT: &str = "default";

/// A user: a name, passwords as SHA-256 hashes, and permissions.
#[derive(Clone)]
pub struct User {
    name: String,
    on: bool,
    any_password: bool,
    passwords: Vec<SecretHash>,
    pub(crate) permissions: Permissions,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User").field("name", &self.name).finish_non_exhaustive()
    }
}

impl User {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            on: false,
            any_password: false,
            passwords: Vec::new(),
            permissions: Permissions::none(),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the password with this hash is accepted.
    fn accepts(&self, hash: &SecretHash) -> bool {
        // Compares with all passwords in constant time, so that the duration reveals nothing.
        let equal = self.passwords.iter().map(|one| one.ct_eq(hash));
        let equal = equal.fold(Choice::from(0), |one, other| one | other);
        self.on && (self.any_password | bool::from(equal))
    }

    fn apply(&mut self, rule: &str, catalog: &Catalog) -> Result<(), &'static str> {
        match rule {
            "on" | "off" => self.on = rule == "on",
            "nopass" => {
                self.any_password = true;
                self.passwords.clear();
            }
            "resetpass" => {
                self.any_password = false;
                self.passwords.clear();
            }
            "reset" => *self = Self::new(&self.name),
            _ => match rule.split_at_checked(1) {
                Some((">", password)) => self.add_password(SecretHash::of(password.as_bytes())),
                Some(("#", digits)) => {
                    let hash = SecretHash::parse(digits);
                    self.add_password(hash.ok_or(BAD_HASH)?);
                }
                _ => return self.permissions.apply(rule, catalog),
            },
        }
        Ok(())
    }

    fn add_password(&mut self, hash: SecretHash) {
        self.any_password = false;
        self.passwords.push(hash);
    }
}

/// An error in a users file: its place and the problem. It does not quote the rule, which may be a
/// password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsersError {
    /// The number of the line, counted from 1.
    pub line: usize,
    /// The number of the word in the line, counted from 1: `user` is word 1, the first rule word 3.
    pub word: usize,
    /// What was expected and what was found.
    pub problem: &'static str,
}

impl fmt::Display for UsersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, word, problem } = self;
        write!(f, "line {line}, word {word} of the users: {problem}")
    }
}

impl std::error::Error for UsersError {}

/// All users of a server, by name. There is always a user `default`.
#[derive(Clone, Debug)]
pub struct Users(BTreeMap<String, Arc<User>>);

impl Default for Users {
    /// Returns one user with all permissions and without a password.
    fn default() -> Self {
        let mut user = User::new(DEFAULT);
        (user.on, user.any_password) = (true, true);
        user.permissions = Permissions::all();
        Self([(DEFAULT.to_owned(), Arc::new(user))].into())
    }
}

impl Users {
    /// Parses like [`parse`](Self::parse), with the catalog of commands.
    pub(crate) fn parse_with(text: &str, catalog: &Catalog) -> Result<Self, UsersError> {
        let mut users = Self::default();
        let mut seen = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let mut words = line.split_ascii_whitespace().enumerate();
            let error = |word, problem| UsersError { line: at + 1, word: word + 1, problem };
            match words.next() {
                None => continue,
                Some((_, word)) if word.starts_with('#') => continue,
                Some((_, "user")) => {}
                Some((word, _)) => {
                    return Err(error(
                        word,
                        "expected `user`, found another word; a line is `user NAME RULE...`",
                    ));
                }
            }
            let (_, name) = words
                .next()
                .ok_or(error(1, "expected the name of a user, found the end of the line"))?;
            if seen.contains(&name) {
                return Err(error(
                    1,
                    "expected another name, found one of a line above; give a user one line",
                ));
            }
            seen.push(name);
            let mut user = User::new(name);
            for (word, rule) in words {
                user.apply(rule, catalog).map_err(|problem| error(word, problem))?;
            }
            users.0.insert(name.to_owned(), Arc::new(user));
        }
        Ok(users)
    }

    /// Sets the only password of the user `default`. With an empty one, that user needs none.
    pub fn require_password(&mut self, password: &[u8]) {
        let Some(user) = self.0.get_mut(DEFAULT).map(Arc::make_mut) else { return };
        user.passwords.clear();
        user.any_password = password.is_empty();
        if !password.is_empty() {
            user.passwords.push(SecretHash::of(password));
        }
    }

    /// Returns whether clients must log in: the user `default` is off or needs a password.
    pub fn must_log_in(&self) -> bool {
        self.open().is_none()
    }

    /// Returns whether the default user has a password.
    pub(crate) fn requires_password(&self) -> bool {
        self.0.get(DEFAULT).is_some_and(|user| !user.any_password)
    }

    /// Returns the user `default` if clients need not log in.
    pub(crate) fn open(&self) -> Option<Arc<User>> {
        self.0.get(DEFAULT).filter(|user| user.on && user.any_password).cloned()
    }

    /// Returns the user with the same name, unless it was removed or has fewer permissions than
    /// `old`: it is disabled, lacks a command or a key, or requires a password that `old` did not.
    pub(crate) fn renewed(&self, old: &User) -> Option<Arc<User>> {
        let user = self.0.get(&old.name)?;
        let includes = user.permissions.include(&old.permissions);
        let keeps = user.on && includes && (user.any_password || !old.any_password);
        keeps.then(|| Arc::clone(user))
    }

    /// Returns the user with this name if the password is right.
    pub(crate) fn log_in(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        // Hashes for unknown users as well, since the duration would reveal which users exist.
        let hash = SecretHash::of(password);
        let name = std::str::from_utf8(name).ok()?;
        self.0.get(name).filter(|user| user.accepts(&hash)).cloned()
    }

    /// Returns the names of all users.
    pub(crate) fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}
