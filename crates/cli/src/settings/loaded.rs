//! Loads the settings from defaults, file, environment and command line. Later sources override
//! earlier ones.

use super::environment::Environment;
use super::flags::Flags;
use super::raw_value::RawValue;
use super::source::{SettingSource, Source};
use super::table::{Setting, Settings, all_settings};
use super::toml_file;
use crate::files::read_text;
use crate::outcome::Failure;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// The settings, with the source of each value.
#[derive(Clone, Debug)]
pub(crate) struct LoadedSettings {
    pub(crate) settings: Settings,
    /// The settings file, if there is one.
    pub(crate) file: Option<String>,
    /// The source of each setting, in the order of the table.
    sources: Vec<Source>,
}

impl LoadedSettings {
    /// Returns the default settings.
    pub(crate) fn defaults() -> Self {
        let sources = all_settings().map(|_| Source::Default).collect();
        let settings = Settings::default();
        let mut loaded = Self { settings, file: None, sources };
        for setting in all_settings().filter(|setting| !setting.default.is_empty()) {
            let value = RawValue::Untyped(setting.default.to_owned());
            let set = setting.value_type.set(&mut loaded.settings, &value, Path::new(""));
            // A test sets each default.
            debug_assert_eq!(set, Ok(()), "{}", setting.name);
        }
        loaded
    }

    /// Loads the settings of a server.
    pub(crate) fn load(
        file: Option<&str>,
        environment: Environment,
        flags: &Flags,
    ) -> Result<Self, Failure> {
        let mut loaded = Self::defaults();
        if let Some(file) = file.map(str::to_owned).or(environment.file) {
            loaded.apply_file(&file)?;
            loaded.file = Some(file);
        }
        for (name, value) in environment.values {
            loaded.apply(name, &value, Source::Environment, Path::new(""))?;
        }
        for (name, values) in &flags.0 {
            let value = match values.as_slice() {
                // The setting rejects the list if it has one value only.
                [value] => RawValue::Untyped(value.clone()),
                values => RawValue::List(values.to_vec()),
            };
            loaded.apply(name, &value, Source::Flag, Path::new(""))?;
        }
        Ok(loaded)
    }

    fn apply_file(&mut self, file: &str) -> Result<(), Failure> {
        let text = read_text(file, toml_file::MAX_FILE_LEN)?;
        let folder = match file {
            "-" => PathBuf::new(),
            file => std::path::absolute(file).unwrap_or_else(|_| file.into()),
        };
        let folder = folder.parent().unwrap_or(Path::new(""));
        self.apply_text(file, &text, folder).map_err(Failure::Error)
    }

    /// Applies the text of a settings file. Messages name it `file`; relative paths are relative to
    /// `folder`.
    pub(crate) fn apply_text(
        &mut self,
        file: &str,
        text: &str,
        folder: &Path,
    ) -> Result<(), String> {
        for toml_file::Entry { name, value, line, column } in toml_file::parse(file, text)? {
            let (at, setting) = find(name);
            let set = setting.value_type.set(&mut self.settings, &value, folder);
            set.map_err(|wrong| format!("{file}:{line}:{column}: {name}: {wrong}"))?;
            self.sources[at] = Source::File(file.to_owned(), line);
        }
        Ok(())
    }

    fn apply(
        &mut self,
        name: &str,
        value: &RawValue,
        source: Source,
        from: &Path,
    ) -> Result<(), Failure> {
        let (at, setting) = find(name);
        let set = setting.value_type.set(&mut self.settings, value, from);
        set.map_err(|wrong| {
            Failure::Usage(format!("{}: {wrong}", SettingSource(setting, &source).named()))
        })?;
        self.sources[at] = source;
        Ok(())
    }

    /// Returns the source of the value of a setting.
    pub(crate) fn source(&self, name: &str) -> SettingSource<'_> {
        let (at, setting) = find(name);
        SettingSource(setting, &self.sources[at])
    }

    /// Returns the failure of a setting whose value cannot be used: a file is invalid, or the
    /// command line or the environment is wrong.
    pub(crate) fn invalid(&self, name: &str, problem: impl Display) -> Failure {
        let message = format!("{}: {problem}", self.source(name).named());
        if self.is_from_file(name) { Failure::Error(message) } else { Failure::Usage(message) }
    }

    /// Returns whether the value of a setting is from the file.
    pub(crate) fn is_from_file(&self, name: &str) -> bool {
        matches!(self.sources[find(name).0], Source::File(..))
    }

    /// Returns whether the value of a setting is from the file, and is the default.
    pub(crate) fn is_default_from_file(&self, name: &str) -> bool {
        let value_of = |of: &Self| find(name).1.value_type.shown_value(&of.settings);
        self.is_from_file(name) && value_of(self) == value_of(&Self::defaults())
    }

    /// Returns whether a setting is set by a file, a variable or a flag.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.sources[find(name).0] != Source::Default
    }
}

/// Returns the setting of this name and its index in the table. Names are always those of the
/// table.
fn find(name: &str) -> (usize, &'static Setting) {
    let mut all = all_settings().enumerate();
    all.find(|(_, setting)| setting.name == name).expect("a setting of the table")
}
