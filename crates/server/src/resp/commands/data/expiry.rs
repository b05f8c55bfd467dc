//! Commands over the expiry of keys.

use crate::resp::commands::modify::with_expiry;
use crate::resp::commands::options::{Time, invalid_expiry};
use crate::resp::commands::{Args, Call, Command, Failure, OUT_OF_MEMORY, Result};
use crate::state::Flags;
use crate::state::new_value::{removal, update};
use nuthatch_cache::Expiry;

pub(crate) const COMMANDS: &[Command] = &[
    Command::of_key("expire", -3, Flags::WRITES, |call| expire(call, Time::EX, "expire")),
    Command::of_key("pexpire", -3, Flags::WRITES, |call| expire(call, Time::PX, "pexpire")),
    Command::of_key("expireat", -3, Flags::WRITES, |call| expire(call, Time::EXAT, "expireat")),
    Command::of_key("pexpireat", -3, Flags::WRITES, |call| expire(call, Time::PXAT, "pexpireat")),
    Command::of_key("ttl", 2, Flags::LOOKS_UP, |call| reply_expiry(call, Time::EX)),
    Command::of_key("pttl", 2, Flags::LOOKS_UP, |call| reply_expiry(call, Time::PX)),
    Command::of_key("expiretime", 2, Flags::LOOKS_UP, |call| reply_expiry(call, Time::EXAT)),
    Command::of_key("pexpiretime", 2, Flags::LOOKS_UP, |call| reply_expiry(call, Time::PXAT)),
    Command::of_key("persist", 2, Flags::WRITES, persist),
];

/// Conditions on the current expiry.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "four options, most of which go together")]
struct ExpiryCondition {
    absent: bool,
    present: bool,
    later: bool,
    earlier: bool,
}

impl ExpiryCondition {
    fn parse(args: Args<'_>) -> Result<Self> {
        let mut only = Self::default();
        for at in 3..args.len() {
            let option = match args.get(at).to_ascii_lowercase().as_slice() {
                b"nx" => &mut only.absent,
                b"xx" => &mut only.present,
                b"gt" => &mut only.later,
                b"lt" => &mut only.earlier,
                _ => {
                    let option = String::from_utf8_lossy(args.get(at));
                    return Err(Failure::Reply(format!("ERR Unsupported option {option}").into()));
                }
            };
            *option = true;
        }
        if only.absent && (only.present || only.later || only.earlier) {
            let text = "ERR NX and XX, GT or LT options at the same time are not compatible";
            return Err(Failure::reply(text));
        }
        if only.later && only.earlier {
            let text = "ERR GT and LT options at the same time are not compatible";
            return Err(Failure::reply(text));
        }
        Ok(only)
    }

    /// Returns whether `new` may replace `old`. No expiry is later than any.
    fn allows(self, new: u64, old: Option<u64>) -> bool {
        !(self.absent && old.is_some()
            || self.present && old.is_none()
            || self.later && old.is_none_or(|old| new <= old)
            || self.earlier && old.is_some_and(|old| new >= old))
    }
}

/// `EXPIRE key time [NX | XX | GT | LT]`, and `PEXPIRE`, `EXPIREAT`, `PEXPIREAT`
fn expire(call: &mut Call<'_>, time: Time, name: &str) -> Result {
    let only = ExpiryCondition::parse(call.args)?;
    let now_ms = call.guard.now_ms();
    let at_ms = time.at_ms(call.args.integer(2)?, now_ms).ok_or_else(|| invalid_expiry(name))?;
    let at_ms = u64::try_from(at_ms).unwrap_or(0);
    let over = at_ms <= now_ms;
    let (place, key) = (call.place(), call.args.get(1));
    let changed = update(
        place,
        key,
        |old| if over { 0 } else { old },
        |item, value| {
            let allowed = item.filter(|item| only.allows(at_ms, item.expires_ms()));
            let write = allowed.map(|item| match Expiry::At(at_ms) {
                _ if over => removal(),
                later => with_expiry(item, later, value),
            });
            (write, write.is_some())
        },
    )?;
    call.reply().integer(i64::from(changed.ok_or(OUT_OF_MEMORY)?));
    Ok(())
}

/// `TTL key`, and `PTTL`, `EXPIRETIME`, `PEXPIRETIME`
fn reply_expiry(call: &mut Call<'_>, time: Time) -> Result {
    let key = call.args.get(1);
    let expires_ms = match call.snapshot_key(key) {
        Some(key) => key.value_type()?.map(|_| None),
        None => call.guard.peek(key).map(|item| item.expires_ms()),
    };
    let answer = match expires_ms {
        None => -2,
        Some(None) => -1,
        Some(Some(at_ms)) => {
            let since = if time.from_now { call.guard.now_ms() } else { 0 };
            // Rounded to the nearest second, as in Redis.
            (at_ms.saturating_sub(since).cast_signed() + time.unit_ms / 2) / time.unit_ms
        }
    };
    call.reply().integer(answer);
    Ok(())
}

/// `PERSIST key`
fn persist(call: &mut Call<'_>) -> Result {
    let (place, key) = (call.place(), call.args.get(1));
    let changed = update(
        place,
        key,
        |old| old,
        |item, value| {
            let expiring = item.filter(|item| item.expires_ms().is_some());
            let write = expiring.map(|item| with_expiry(item, Expiry::Never, value));
            (write, write.is_some())
        },
    )?;
    call.reply().integer(i64::from(changed.ok_or(OUT_OF_MEMORY)?));
    Ok(())
}
