//! Puts together what defaults, file, environment and command line say, in this order: what comes
//! later wins.

use super::environment::Environment;
use super::flags::Flags;
use super::raw_value::Given;
use super::setting::Setting;
use super::source::{Origin, Source};
use super::table::settings;
use super::toml_file;
use super::values::Configuration;
use crate::files::read_text;
use crate::outcome::Failure;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// A configuration, with the origin of each value.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) configuration: Configuration,
    /// The file it is from, if there is one.
    pub(crate) file: Option<String>,
    /// By the place of a setting in the table.
    origins: Vec<Origin>,
}

impl Loaded {
    /// The defaults.
    pub(crate) fn defaults() -> Self {
        let origins = settings().map(|_| Origin::Default).collect();
        let configuration = Configuration::default();
        let mut loaded = Self { configuration, file: None, origins };
        for setting in settings().filter(|setting| !setting.default.is_empty()) {
            let given = Given::Word(setting.default.to_owned());
            let set = setting.kind.set(&mut loaded.configuration, &given, Path::new(""));
            // Each is set by a test.
            debug_assert_eq!(set, Ok(()), "{}", setting.name);
        }
        loaded
    }

    /// The configuration that a server is to have.
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
        for (name, given) in environment.given {
            loaded.apply(name, &given, Origin::Environment, Path::new(""))?;
        }
        for (name, values) in &flags.0 {
            let given = match values.as_slice() {
                // A list that is not one is refused there.
                [value] => Given::Word(value.clone()),
                values => Given::List(values.to_vec()),
            };
            loaded.apply(name, &given, Origin::Flag, Path::new(""))?;
        }
        Ok(loaded)
    }

    fn apply_file(&mut self, file: &str) -> Result<(), Failure> {
        let text = read_text(file, toml_file::LONGEST)?;
        let folder = match file {
            "-" => PathBuf::new(),
            file => std::path::absolute(file).unwrap_or_else(|_| file.into()),
        };
        let folder = folder.parent().unwrap_or(Path::new(""));
        self.apply_text(file, &text, folder).map_err(Failure::Error)
    }

    /// Applies the text of a file that messages call `file`, with paths from `folder` on.
    pub(crate) fn apply_text(
        &mut self,
        file: &str,
        text: &str,
        folder: &Path,
    ) -> Result<(), String> {
        for toml_file::Entry { name, given, line, column } in toml_file::parse(file, text)? {
            let (at, setting) = find(name);
            let set = setting.kind.set(&mut self.configuration, &given, folder);
            set.map_err(|wrong| format!("{file}:{line}:{column}: {name}: {wrong}"))?;
            self.origins[at] = Origin::File(file.to_owned(), line);
        }
        Ok(())
    }

    fn apply(
        &mut self,
        name: &str,
        given: &Given,
        origin: Origin,
        from: &Path,
    ) -> Result<(), Failure> {
        let (at, setting) = find(name);
        let set = setting.kind.set(&mut self.configuration, given, from);
        set.map_err(|wrong| {
            Failure::Usage(format!("{}: {wrong}", Source(setting, &origin).named()))
        })?;
        self.origins[at] = origin;
        Ok(())
    }

    /// Where the value of a setting is from.
    pub(crate) fn source(&self, name: &str) -> Source<'_> {
        let (at, setting) = find(name);
        Source(setting, &self.origins[at])
    }

    /// Returns the failure of a setting whose value cannot be used: a file is invalid, or the
    /// command line or the environment is wrong.
    pub(crate) fn invalid(&self, name: &str, problem: impl Display) -> Failure {
        let message = format!("{}: {problem}", self.source(name).named());
        if self.is_from_file(name) { Failure::Error(message) } else { Failure::Usage(message) }
    }

    /// Whether the value of a setting is from the file.
    pub(crate) fn is_from_file(&self, name: &str) -> bool {
        matches!(self.origins[find(name).0], Origin::File(..))
    }

    /// Returns whether the value of a setting is from the file, and is the default.
    pub(crate) fn is_default_from_file(&self, name: &str) -> bool {
        let shown = |mut of: Configuration| find(name).1.kind.shown(&mut of);
        self.is_from_file(name)
            && shown(self.configuration.clone()) == shown(Self::defaults().configuration)
    }

    /// Whether the value of a setting is not the default's.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.origins[find(name).0] != Origin::Default
    }
}

/// The setting of this name, with its place in the table. Names come from there.
fn find(name: &str) -> (usize, &'static Setting) {
    let mut all = settings().enumerate();
    all.find(|(_, setting)| setting.name == name).expect("a setting of the table")
}
