//! Settings of `CONFIG`, and which of them can change at runtime.

use crate::number::integer;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The settings that `CONFIG SET` and reloads can change while the server runs. Each is an atomic
/// number, so reading one is cheap.
#[derive(Debug)]
pub struct Settings {
    timeout_s: AtomicI64,
    max_clients: AtomicI64,
    slower_than_us: AtomicI64,
    max_slowlog_len: AtomicI64,
    tracks_latency: AtomicI64,
    max_bulk_len: AtomicI64,
    keepalive_s: AtomicI64,
    output_hard_limit: AtomicI64,
    output_soft_limit: AtomicI64,
    output_soft_s: AtomicI64,
    changes: AtomicU64,
    /// Upper bound of `maxclients`, from the limit of open files.
    clients_limit: AtomicU64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            timeout_s: 0.into(),
            max_clients: 10_000.into(),
            slower_than_us: 10_000.into(),
            max_slowlog_len: 128.into(),
            tracks_latency: 1.into(),
            max_bulk_len: (512 << 20).into(),
            keepalive_s: 300.into(),
            output_hard_limit: 0.into(),
            output_soft_limit: 0.into(),
            output_soft_s: 60.into(),
            changes: 0.into(),
            clients_limit: u64::MAX.into(),
        }
    }
}

impl Settings {
    /// Returns the number of changes so far. Worker threads apply the settings when it has changed.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Returns the seconds without input after which a connection is closed; `None` if disabled.
    pub fn timeout_s(&self) -> Option<u64> {
        u64::try_from(self.timeout_s.load(Ordering::Relaxed)).ok().filter(|s| *s > 0)
    }

    /// Returns the maximum number of connections.
    pub fn max_clients(&self) -> u64 {
        self.max_clients.load(Ordering::Relaxed).unsigned_abs()
    }

    /// Sets the upper bound of `maxclients`, from the limit of open files.
    pub fn limit_max_clients(&self, limit: u64) {
        self.clients_limit.store(limit, Ordering::Relaxed);
    }

    /// Returns the maximum length of a RESP argument in bytes, as set; the cache may allow less.
    pub fn max_bulk_len(&self) -> u64 {
        self.max_bulk_len.load(Ordering::Relaxed).unsigned_abs()
    }

    /// Returns the idle seconds after which keepalive probes of a connection begin; `None` if
    /// disabled.
    pub fn keepalive_s(&self) -> Option<u64> {
        Self::unless_zero(&self.keepalive_s)
    }

    /// Returns the bytes of unsent replies beyond which a client is closed at once; `None` if
    /// disabled.
    pub fn output_hard_limit(&self) -> Option<u64> {
        Self::unless_zero(&self.output_hard_limit)
    }

    /// Returns the bytes of unsent replies beyond which a client is closed after a time, and that
    /// time in seconds; `None` if disabled.
    pub fn output_soft_limit(&self) -> Option<(u64, u64)> {
        let seconds = self.output_soft_s.load(Ordering::Relaxed).unsigned_abs();
        Self::unless_zero(&self.output_soft_limit).map(|bytes| (bytes, seconds))
    }

    fn unless_zero(setting: &AtomicI64) -> Option<u64> {
        u64::try_from(setting.load(Ordering::Relaxed)).ok().filter(|number| *number > 0)
    }

    /// Changes a setting as `CONFIG SET` does, by its Redis name. Unlike
    /// [`change_all`](Self::change_all), does not compare `maxclients` with the limit of open
    /// files.
    ///
    /// # Errors
    ///
    /// Fails if no changeable setting has this name, or if the text is invalid for it.
    pub fn change(&self, name: &str, text: &str) -> Result<(), String> {
        let setting = CHANGEABLE.iter().find(|setting| setting.name == name);
        let setting =
            setting.ok_or_else(|| format!("no changeable setting has the name `{name}`"))?;
        setting.set(self, setting.parse(text.as_bytes())?);
        Ok(())
    }

    /// Changes settings as `CONFIG SET` does, by their Redis names: all of them, or none.
    ///
    /// # Errors
    ///
    /// Fails if no changeable setting has one of the names, or if a text is invalid for its
    /// setting. The error names the setting.
    pub fn change_all(&self, settings: &[(&'static str, String)]) -> Result<(), String> {
        let parse = |(name, text): &(&'static str, String)| {
            let setting = CHANGEABLE.iter().find(|setting| setting.name == *name);
            let setting =
                setting.ok_or_else(|| format!("no changeable setting has the name `{name}`"))?;
            let number = setting.parse(text.as_bytes());
            let number = number.and_then(|number| setting.check(self, number));
            Ok((setting, number.map_err(|problem| format!("{name}: {problem}"))?))
        };
        let parsed: Vec<_> = settings.iter().map(parse).collect::<Result<_, String>>()?;
        for (setting, number) in parsed {
            setting.set(self, number);
        }
        Ok(())
    }

    /// Returns the microseconds from which on commands are logged as slow; negative if none are.
    #[inline]
    pub(crate) fn slower_than_us(&self) -> i64 {
        self.slower_than_us.load(Ordering::Relaxed)
    }

    /// Returns the maximum number of entries of the slow log.
    pub(crate) fn max_slowlog_len(&self) -> usize {
        self.max_slowlog_len.load(Ordering::Relaxed).unsigned_abs() as usize
    }

    /// Returns whether histograms of durations are recorded.
    pub(crate) fn tracks_latency(&self) -> bool {
        self.tracks_latency.load(Ordering::Relaxed) != 0
    }
}

/// The values that a setting accepts.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A number between these bounds, inclusive.
    Number(i64, i64),
    /// A number of bytes between these bounds, with an optional unit.
    Bytes(i64, i64),
    /// `yes` or `no`.
    YesNo,
}

/// A changeable setting.
pub(crate) struct Changeable {
    pub(crate) name: &'static str,
    kind: Kind,
    of: fn(&Settings) -> &AtomicI64,
}

const MAX: i64 = i64::MAX;

/// The changeable settings.
pub(crate) const CHANGEABLE: &[Changeable] = &[
    Changeable { name: "timeout", kind: Kind::Number(0, i32::MAX as i64), of: |s| &s.timeout_s },
    Changeable {
        name: "maxclients",
        kind: Kind::Number(1, u32::MAX as i64),
        of: |s| &s.max_clients,
    },
    Changeable {
        name: "slowlog-log-slower-than",
        kind: Kind::Number(-1, MAX),
        of: |s| &s.slower_than_us,
    },
    Changeable { name: "slowlog-max-len", kind: Kind::Number(0, MAX), of: |s| &s.max_slowlog_len },
    Changeable { name: "latency-tracking", kind: Kind::YesNo, of: |s| &s.tracks_latency },
    Changeable {
        name: "proto-max-bulk-len",
        kind: Kind::Bytes(1 << 20, MAX),
        of: |s| &s.max_bulk_len,
    },
    Changeable { name: "tcp-keepalive", kind: Kind::Number(0, 32_767), of: |s| &s.keepalive_s },
    Changeable {
        name: "client-output-hard-limit",
        kind: Kind::Bytes(0, MAX),
        of: |s| &s.output_hard_limit,
    },
    Changeable {
        name: "client-output-soft-limit",
        kind: Kind::Bytes(0, MAX),
        of: |s| &s.output_soft_limit,
    },
    Changeable {
        name: "client-output-soft-seconds",
        kind: Kind::Number(0, i32::MAX as i64),
        of: |s| &s.output_soft_s,
    },
];

/// Settings of Redis without an effect here, which clients read. Setting one to its own value does
/// nothing.
pub(crate) const CONSTANTS: &[(&str, &str)] = &[
    ("save", ""),
    ("appendonly", "no"),
    ("databases", "1"),
    ("lfu-decay-time", "1"),
    ("lazyfree-lazy-expire", "yes"),
];

impl Changeable {
    /// Returns the setting as text.
    pub(crate) fn text(&self, settings: &Settings) -> String {
        let number = (self.of)(settings).load(Ordering::Relaxed);
        match self.kind {
            Kind::YesNo => if number == 0 { "no" } else { "yes" }.to_owned(),
            Kind::Number(..) | Kind::Bytes(..) => number.to_string(),
        }
    }

    /// Parses a text, or returns what is wrong with it.
    pub(crate) fn parse(&self, text: &[u8]) -> Result<i64, String> {
        let (number, min, max) = match self.kind {
            Kind::YesNo => {
                return match () {
                    () if text.eq_ignore_ascii_case(b"yes") => Ok(1),
                    () if text.eq_ignore_ascii_case(b"no") => Ok(0),
                    () => Err("argument must be 'yes' or 'no'".to_owned()),
                };
            }
            Kind::Number(min, max) => {
                let number = integer(text);
                let problem = "argument couldn't be parsed into an integer";
                (number.ok_or_else(|| problem.to_owned())?, min, max)
            }
            Kind::Bytes(min, max) => {
                let problem = "argument must be a memory value";
                (bytes(text).ok_or_else(|| problem.to_owned())?, min, max)
            }
        };
        if (min..=max).contains(&number) {
            return Ok(number);
        }
        Err(format!("argument must be between {min} and {max} inclusive"))
    }

    /// Returns the number, unless the process cannot have as many connections.
    pub(crate) fn check(&self, settings: &Settings, number: i64) -> Result<i64, String> {
        let limit = settings.clients_limit.load(Ordering::Relaxed);
        if self.name == "maxclients" && number.unsigned_abs() > limit {
            return Err(format!("the limit of open files is too low: expected at most {limit}"));
        }
        Ok(number)
    }

    /// Changes the setting.
    pub(crate) fn set(&self, settings: &Settings, number: i64) {
        (self.of)(settings).store(number, Ordering::Relaxed);
        settings.changes.fetch_add(1, Ordering::Release);
    }
}

/// Parses a number of bytes with an optional unit: `k` is 1000, `kb` is 1024.
fn bytes(text: &[u8]) -> Option<i64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let unit = match text[digits..].to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    std::str::from_utf8(&text[..digits]).ok()?.parse::<i64>().ok()?.checked_mul(unit)
}
