//! The values of settings in the notation of the command `CONFIG`.

use super::setting_type::SettingType;
use nuthatch_units::{format_duration, format_size};
use std::time::Duration;
use toml_edit::Value;

impl<S> SettingType<S> {
    /// Returns the current value for `CONFIG`. `None` for types that `CONFIG` does not have.
    pub(crate) fn to_config_text(&self, of: &S) -> Option<String> {
        match self {
            Self::Duration(field, unit, _) => {
                let units = |duration: &Duration| unit.count(*duration).to_string();
                Some((field.get)(of).as_ref().map_or_else(|| unit.off.to_string(), units))
            }
            Self::Size(field, ..) | Self::Count(field, ..) => Some((field.get)(of).to_string()),
            Self::Bool(field) => Some(if *(field.get)(of) { "yes" } else { "no" }.to_owned()),
            Self::Path(field) => Some((field.get)(of).as_ref()?.to_string_lossy().into_owned()),
            Self::Addresses(_)
            | Self::NamedPaths(_)
            | Self::Texts(_)
            | Self::CountOrAuto(..)
            | Self::Choice(..)
            | Self::PathOrWord(..)
            | Self::Text(..)
            | Self::Secret(_) => None,
        }
    }

    /// Converts a value of `CONFIG` to the value of a settings file.
    pub(crate) fn parse_config_text(&self, text: &str) -> Option<Value> {
        let number = text.parse::<i64>().ok();
        match self {
            Self::Size(..) => Some(format_size(text.parse().ok()?).into()),
            Self::Duration(_, unit, _) if number == Some(unit.off) => Some("off".into()),
            Self::Duration(_, unit, _) => {
                let unit_ns = u64::try_from(unit.length.as_nanos()).ok()?;
                // A longer duration exceeds the lifetime of any server.
                let ns = u64::try_from(number?).ok()?.checked_mul(unit_ns);
                let duration = ns.map(|ns| format_duration(Duration::from_nanos(ns)));
                Some(duration.map_or_else(|| "off".into(), Value::from))
            }
            Self::Count(..) => number.map(Value::from),
            Self::Bool(_) => Some((text == "yes").into()),
            _ => None,
        }
    }
}
