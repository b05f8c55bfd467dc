//! Settings from flags of the command line.

use super::setting_type::Choices;
use super::table::{GROUPS, Setting, SettingType, all_settings};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

/// The settings on the command line, by name, with their values as text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags(pub(crate) Vec<(&'static str, Vec<String>)>);

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        let groups = GROUPS
            .iter()
            .flat_map(|group| group.settings.iter().map(move |setting| (group.heading, setting)));
        groups
            .filter(|(_, setting)| setting.is_flag())
            .fold(command, |command, (heading, setting)| command.arg(flag(setting, heading)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let flags = all_settings().filter(|setting| setting.is_flag());
        for name in flags.map(|setting| setting.name) {
            // The default value is only for the help page.
            if matches.value_source(name) == Some(ValueSource::CommandLine) {
                let values = matches.get_many::<String>(name).unwrap_or_default();
                self.0.push((name, values.cloned().collect()));
            }
        }
        Ok(())
    }
}

fn flag(setting: &'static Setting, heading: &'static str) -> Arg {
    let mut flag = Arg::new(setting.name)
        .long(setting.name)
        .value_name(setting.value_name)
        .help_heading(heading)
        .help(setting.help);
    if !setting.more.is_empty() {
        flag = flag.long_help(format!("{}\n\n{}", setting.help, setting.more));
    }
    if !setting.default.is_empty() {
        flag = flag.default_value(setting.default);
    }
    match setting.value_type {
        SettingType::Addresses(_) | SettingType::NamedPaths(_) | SettingType::Texts(_) => {
            flag.action(ArgAction::Append)
        }
        SettingType::Choice(_, choices) => flag.value_parser(choice(choices)),
        // `--insecure` without a value means true.
        SettingType::Bool(_) => {
            flag.num_args(0..=1).require_equals(true).default_missing_value("true")
        }
        _ => flag,
    }
}

fn choice(choices: Choices) -> PossibleValuesParser {
    choices.iter().map(|(word, meaning)| PossibleValue::new(*word).help(*meaning)).into()
}
