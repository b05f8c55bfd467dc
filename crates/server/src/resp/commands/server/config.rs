//! `CONFIG`: reads and changes settings.

use crate::resp::commands::container::{self, part};
use crate::resp::commands::failure::SYNTAX;
use crate::resp::commands::{Call, Command, Failure, Result};
use crate::state::Server;
use crate::state::glob::Glob;
use crate::state::settings::{CHANGEABLE, CONSTANTS, Changeable};

pub(crate) const SUBCOMMANDS: &[Command] = &[
    part("config|get", -3, get),
    part("config|set", -4, set),
    part("config|resetstat", 2, reset_counts),
    part("config|rewrite", 2, rewrite),
    part("config|help", 2, help),
];

const HELP: &[&str] = &[
    "CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GET <pattern>",
    "    Return parameters matching the glob-like <pattern> and their values.",
    "SET <directive> <value>",
    "    Set the configuration <directive> to <value>.",
    "RESETSTAT",
    "    Reset statistics reported by the INFO command.",
    "REWRITE",
    "    Rewrite the configuration file.",
    "HELP",
    "    Prints this help.",
];

/// Stands for the password in replies: the server knows only its hash.
const HIDDEN: &str = "(hidden)";

fn help(call: &mut Call<'_>) -> Result {
    container::help(call, HELP);
    Ok(())
}

/// Returns all settings as texts.
fn texts(server: &Server) -> Vec<(&'static str, String)> {
    let stats = server.cache.stats();
    let policy = if server.evicts { "allkeys-s3fifo" } else { "noeviction" };
    let password = if server.users().requires_password() { HIDDEN } else { "" };
    let mut texts = vec![
        ("maxmemory", stats.memory_limit.to_string()),
        ("maxmemory-policy", policy.to_owned()),
        ("requirepass", password.to_owned()),
        ("enable-debug-command", server.debug.name().to_owned()),
        ("cluster-enabled", if server.cluster.is_some() { "yes" } else { "no" }.to_owned()),
    ];
    texts.extend(server.fixed_settings.iter().cloned());
    texts.extend(changing(server));
    texts.extend(CONSTANTS.iter().map(|(name, text)| (*name, (*text).to_owned())));
    texts
}

/// Returns the changeable settings as texts.
fn changing(server: &Server) -> impl Iterator<Item = (&'static str, String)> {
    CHANGEABLE.iter().map(|setting| (setting.name, setting.text(&server.settings)))
}

/// `CONFIG GET pattern...`
fn get(call: &mut Call<'_>) -> Result {
    let patterns: Vec<_> = call.args.from(2).map(<[u8]>::to_ascii_lowercase).collect();
    let is_wanted = |name: &str| {
        let matches = |glob: Glob<'_>| glob.matches(name.as_bytes());
        patterns.iter().any(|pattern| Glob::new(pattern).is_none_or(matches))
    };
    let mut texts = texts(call.server);
    texts.retain(|(name, _)| is_wanted(name));
    call.reply().map(texts.len());
    for (name, text) in texts {
        // An exact name is returned with its spelling in the request.
        let mut spelt = call.args.from(2);
        let spelt = spelt.find(|requested| requested.eq_ignore_ascii_case(name.as_bytes()));
        call.reply().bulk(spelt.unwrap_or(name.as_bytes()));
        call.reply().bulk(text.as_bytes());
    }
    Ok(())
}

/// A change by `CONFIG SET`, applied once all are valid.
enum Change<'a> {
    Setting(&'static Changeable, i64),
    Password(&'a [u8]),
    /// The setting has this value already.
    Nothing,
}

/// `CONFIG SET name value...`: changes all or none.
fn set(call: &mut Call<'_>) -> Result {
    if !call.args.len().is_multiple_of(2) {
        return Err(SYNTAX);
    }
    let names: Vec<_> = call.args.from(2).step_by(2).collect();
    let texts = texts(call.server);
    for (at, name) in names.iter().enumerate() {
        if !texts.iter().any(|(setting, _)| name.eq_ignore_ascii_case(setting.as_bytes())) {
            let name = String::from_utf8_lossy(name);
            let text = "ERR Unknown option or number of arguments for CONFIG SET -";
            return Err(Failure::Reply(format!("{text} '{name}'").into()));
        }
        if names[..at].iter().any(|earlier| earlier.eq_ignore_ascii_case(name)) {
            return Err(refused(name, "duplicate parameter"));
        }
    }
    let mut changes = Vec::new();
    for (name, value) in names.iter().zip(call.args.from(3).step_by(2)) {
        let is = |setting: &str| name.eq_ignore_ascii_case(setting.as_bytes());
        changes.push(if let Some(setting) = CHANGEABLE.iter().find(|setting| is(setting.name)) {
            let parsed = setting.parse(value);
            let parsed = parsed.and_then(|number| setting.check(&call.server.settings, number));
            Change::Setting(setting, parsed.map_err(|problem| refused(name, &problem))?)
        } else if is("requirepass") {
            if value.is_empty() && call.server.must_keep_password {
                let problem = "other machines can reach this server, so it needs a password";
                return Err(refused(name, problem));
            }
            Change::Password(value)
        } else if texts.iter().any(|(setting, text)| is(setting) && text.as_bytes() == value) {
            Change::Nothing
        } else {
            return Err(refused(name, "can't set immutable config"));
        });
    }
    for change in changes {
        match change {
            Change::Setting(setting, number) => setting.set(&call.server.settings, number),
            Change::Password(password) => call.server.users_mut().require_password(password),
            Change::Nothing => {}
        }
    }
    call.reply().ok();
    Ok(())
}

/// `CONFIG RESETSTAT`
fn reset_counts(call: &mut Call<'_>) -> Result {
    call.server.reset_counts();
    call.reply().ok();
    Ok(())
}

/// `CONFIG REWRITE`: does not write a password, since only its hash is known.
fn rewrite(call: &mut Call<'_>) -> Result {
    let Some(rewrite) = &call.server.rewrite else {
        return Err(Failure::reply("ERR The server is running without a config file"));
    };
    let settings: Vec<_> = changing(call.server).collect();
    rewrite.run(&settings).map_err(|problem| {
        Failure::Reply(format!("ERR Rewriting config file: {problem}").into())
    })?;
    call.reply().ok();
    Ok(())
}

/// Returns the error for a setting that `CONFIG SET` refuses.
fn refused(name: &[u8], problem: &str) -> Failure {
    let name = String::from_utf8_lossy(name);
    let text = "ERR CONFIG SET failed (possibly related to argument";
    Failure::Reply(format!("{text} '{name}') - {problem}").into())
}
