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
pub(crate) use listen_address::ListenAddress;
pub(crate) use loaded::LoadedSettings;
pub(crate) use raw_value::RawValue;
pub(crate) use setting::{ConfigName, Setting};
pub(crate) use setting_type::SettingType;
pub(crate) use show::{json, toml};
pub(crate) use table::{DEFAULT_ADMIN, all_settings};
pub(crate) use toml_file::MAX_FILE_LEN;
pub(crate) use values::Settings;

#[cfg(test)]
pub(crate) use table::GROUPS;
