//! The settings of `nuthatch serve`: their table, and the file, the environment and the flags that
//! set them.

mod environment;
mod flags;
mod listen_address;
mod loaded;
mod raw_value;
mod setting;
mod setting_type;
mod show;
mod source;
mod suggestion;
mod table;
mod toml_file;
mod values;

pub(crate) use environment::Environment;
pub(crate) use flags::Flags;
pub(crate) use listen_address::Place;
pub(crate) use loaded::Loaded;
pub(crate) use raw_value::Given;
pub(crate) use setting::{Setting, Told};
pub(crate) use setting_type::Kind;
pub(crate) use show::{json, toml};
pub(crate) use table::{ADMIN, settings};
pub(crate) use toml_file::LONGEST as MAX_FILE_LEN;
pub(crate) use values::Configuration;

#[cfg(test)]
pub(crate) use table::GROUPS;
