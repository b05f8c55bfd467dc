//! Commands and keys that a user may use.

use super::glob::Glob;
use super::{Catalog, CommandInfo, Flags, Keys, RESP_COMMANDS};

/// Errors do not quote the rule, since it may be a password whose `>` was forgotten.
const UNKNOWN_RULE: &str = "expected a rule such as on, off, nopass, >PASSWORD, #SHA256, \
                            ~PATTERN, +COMMAND, -COMMAND, +@GROUP or -@GROUP, found another word";
const UNKNOWN_GROUP: &str =
    "expected @all, @read, @write, @connection or @dangerous, found another group";
const UNKNOWN_COMMAND: &str =
    "expected the name of a command, found none of that name; COMMAND LIST has all names";

/// Commands that show or change the data of other clients, or that take long, as in Redis.
const DANGEROUS: &[&str] = &[
    "acl",
    "config",
    "debug",
    "flushall",
    "flushdb",
    "info",
    "keys",
    "latency",
    "nuthatch.dict",
    "slowlog",
];
/// Subcommands of this group.
const DANGEROUS_PARTS: &[&str] = &[
    "client|kill",
    "client|list",
    "cluster|countkeysinslot",
    "cluster|drain",
    "cluster|forget",
    "cluster|forwarded",
    "cluster|getkeysinslot",
    "cluster|join",
    "cluster|memcached",
    "cluster|transfer",
];
/// Commands over the connection.
const CONNECTION: &[&str] = &[
    "asking",
    "auth",
    "client",
    "command",
    "echo",
    "hello",
    "ping",
    "quit",
    "readonly",
    "readwrite",
    "reset",
    "select",
];
/// Commands that read, without keys as arguments.
const READS: &[&str] = &["dbsize", "keys", "randomkey", "scan"];

/// Why a request is denied: what the user has no permission for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// Any command: the client must log in first.
    All,
    /// The command.
    Command,
    /// A key of the request.
    Key,
}

/// Commands and keys that a user may use.
#[derive(Clone, Debug)]
pub(crate) struct Permissions {
    /// Whether the command with each number is permitted.
    commands: Vec<bool>,
    /// Patterns of keys.
    keys: Vec<Vec<u8>>,
}

impl Permissions {
    /// Returns no permissions.
    pub(crate) fn none() -> Self {
        Self { commands: vec![false; RESP_COMMANDS], keys: Vec::new() }
    }

    /// Returns all permissions.
    pub(crate) fn all() -> Self {
        Self { commands: vec![true; RESP_COMMANDS], keys: vec![b"*".to_vec()] }
    }

    /// Returns whether everything is permitted.
    pub(crate) fn are_all(&self) -> bool {
        self.all_keys() && self.commands.iter().all(|allowed| *allowed)
    }

    /// Returns whether all permissions of `others` are included. Patterns of keys are compared as
    /// text: a missing one counts as lost even if others match the same keys.
    pub(crate) fn include(&self, others: &Self) -> bool {
        let commands = self.commands.iter().zip(&others.commands);
        let mut keys = others.keys.iter();
        commands.into_iter().all(|(mine, theirs)| *mine || !*theirs)
            && (self.all_keys() || keys.all(|pattern| self.keys.contains(pattern)))
    }

    /// Returns whether all keys are permitted.
    pub(crate) fn all_keys(&self) -> bool {
        self.keys.iter().any(|pattern| pattern == b"*")
    }

    /// Applies a rule: see [`users`](super::users).
    pub(crate) fn apply(&mut self, rule: &str, catalog: &Catalog) -> Result<(), &'static str> {
        match rule {
            "allkeys" => self.keys = vec![b"*".to_vec()],
            "resetkeys" => self.keys.clear(),
            "allcommands" => self.commands.fill(true),
            "nocommands" => self.commands.fill(false),
            _ => {
                if let Some(pattern) = rule.strip_prefix('~') {
                    self.keys.push(pattern.as_bytes().to_vec());
                } else if let Some(which) = rule.strip_prefix('+') {
                    self.allow(which, true, catalog)?;
                } else if let Some(which) = rule.strip_prefix('-') {
                    self.allow(which, false, catalog)?;
                } else {
                    return Err(UNKNOWN_RULE);
                }
            }
        }
        Ok(())
    }

    fn allow(&mut self, which: &str, allowed: bool, catalog: &Catalog) -> Result<(), &'static str> {
        if let Some(group) = which.strip_prefix('@') {
            if !["all", "read", "write", "connection", "dangerous"].contains(&group) {
                return Err(UNKNOWN_GROUP);
            }
            for (number, command) in catalog.all().iter().enumerate() {
                if is_in(command, group) {
                    self.commands[number] = allowed;
                }
            }
            return Ok(());
        }
        let (number, command) = catalog.find(which.as_bytes()).ok_or(UNKNOWN_COMMAND)?;
        self.commands[number] = allowed;
        for (number, _) in catalog.parts(command.name) {
            self.commands[number] = allowed;
        }
        Ok(())
    }

    /// Checks the permission for a command with this number and flags over these keys.
    pub(crate) fn check<'k>(
        &self,
        number: usize,
        flags: Flags,
        mut keys: impl Iterator<Item = &'k [u8]>,
    ) -> Result<(), Denied> {
        let allowed = self.commands.get(number).copied().unwrap_or_default();
        if !allowed && !flags.before_auth {
            return Err(Denied::Command);
        }
        if self.all_keys() {
            return Ok(());
        }
        let may = |key| {
            self.keys.iter().any(|pattern| Glob::new(pattern).is_none_or(|glob| glob.matches(key)))
        };
        if keys.all(may) { Ok(()) } else { Err(Denied::Key) }
    }
}

/// Returns whether a command is in a group.
pub(crate) fn is_in(command: &CommandInfo, group: &str) -> bool {
    let name = command.name;
    let container = name.split('|').next().unwrap_or(name);
    let has_keys = command.keys != Keys::NONE || READS.contains(&name);
    match group {
        "all" => true,
        "write" => command.flags.writes,
        "read" => !command.flags.writes && has_keys,
        "connection" => CONNECTION.contains(&container),
        "dangerous" => DANGEROUS.contains(&container) || DANGEROUS_PARTS.contains(&name),
        _ => false,
    }
}
