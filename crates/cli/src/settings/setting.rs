//! A setting: its name, default, help and type.

use super::setting_type::Kind;

/// What the names of environment variables begin with.
pub(crate) const PREFIX: &str = "NUTHATCH_";

/// What `CONFIG` of Redis's protocol has of a setting.
#[derive(Clone, Copy)]
pub(crate) enum Told {
    /// Nothing.
    Not,
    /// It is told by this name.
    As(&'static str),
    /// And can be changed while the server runs.
    AndChanged(&'static str),
}

/// A setting.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    /// As flags and the file call it.
    pub(crate) name: &'static str,
    /// What stands for its value in help.
    pub(crate) value_name: &'static str,
    /// The value it has until another is given; an empty one stands for none.
    pub(crate) default: &'static str,
    /// What it is for, in a line.
    pub(crate) help: &'static str,
    /// What else there is to know.
    pub(crate) more: &'static str,
    pub(crate) kind: Kind,
    pub(crate) told: Told,
}

impl Setting {
    /// The environment variable that sets it.
    pub(crate) fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.replace('-', "_").to_ascii_uppercase())
    }

    /// Whether it can be given on the command line, where everybody on the machine may read it.
    pub(crate) fn is_flag(&self) -> bool {
        !matches!(self.kind, Kind::Secret(_))
    }
}
