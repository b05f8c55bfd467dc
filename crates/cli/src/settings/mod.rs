//! The settings of `nuthatch serve`: their table, and the file, the environment and the flags that
//! set them.

mod cluster;
mod compress;
mod config_text;
mod declare;
mod duration_unit;
mod environment;
mod flags;
mod listen_address;
mod loaded;
mod named_path;
mod path_or_word;
mod raw_value;
mod secret;
mod setting;
mod setting_type;
mod show;
mod shown_value;
mod source;
mod suggestion;
mod table;
mod toml_file;

pub(crate) use cluster::{ClusterAddress, address as cluster_address};
pub(crate) use compress::level as compression_level;
pub(crate) use environment::Environment;
pub(crate) use flags::Flags;
pub(crate) use listen_address::ListenAddress;
pub(crate) use loaded::LoadedSettings;
pub(crate) use path_or_word::PathOrWord;
pub(crate) use setting::ConfigName;
pub(crate) use show::{json, toml};
pub(crate) use table::{
    DEFAULT_ADMIN, DEFAULT_GRPC, Setting, SettingType, Settings, all_settings, others_in_group,
};
pub(crate) use toml_file::MAX_FILE_LEN;

#[cfg(test)]
pub(crate) use raw_value::RawValue;
#[cfg(test)]
pub(crate) use table::GROUPS;
