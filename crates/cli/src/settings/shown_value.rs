//! The values of settings as they are shown.

use super::listen_address::ListenAddress;
use super::path_or_word::PathOrWord;
use super::setting_type::SettingType;
use nuthatch_units::{format_duration, format_size};
use serde_json::Value;
use std::path::Path;

impl<S> SettingType<S> {
    /// Returns the current value, as a settings file would have it: `Null` for none.
    pub(crate) fn shown_value(&self, of: &S) -> Value {
        match self {
            Self::Addresses(field) => match (field.get)(of).as_slice() {
                [] => vec!["off"].into(),
                addresses => addresses.iter().map(ListenAddress::absolute).collect(),
            },
            Self::NamedPaths(field) => list((field.get)(of)),
            Self::Texts(field) => list((field.get)(of)),
            Self::Size(field, ..) => format_size(*(field.get)(of)).into(),
            Self::Duration(field, ..) => {
                (field.get)(of).map_or_else(|| "off".to_owned(), format_duration).into()
            }
            Self::Count(field, ..) => (*(field.get)(of)).into(),
            Self::CountOrAuto(field, ..) => {
                (field.get)(of).map_or_else(|| "auto".into(), Value::from)
            }
            Self::Choice(field, _) => (*(field.get)(of)).into(),
            Self::Bool(field) => (*(field.get)(of)).into(),
            Self::Path(field) => (field.get)(of).as_deref().map_or(Value::Null, absolute),
            Self::PathOrWord(field, _) => match (field.get)(of) {
                PathOrWord::Word(word) => (*word).into(),
                PathOrWord::Path(path) => absolute(path),
            },
            Self::Text(field, _) => match (field.get)(of).as_str() {
                // The default of a text that can be left out.
                "" => Value::Null,
                text => text.into(),
            },
            Self::Secret(field) => {
                (field.get)(of).as_ref().map_or(Value::Null, |_| "(hidden)".into())
            }
        }
    }
}

/// Returns a list of texts, or null for an empty one.
fn list(items: &[impl ToString]) -> Value {
    if items.is_empty() {
        return Value::Null;
    }
    items.iter().map(ToString::to_string).collect()
}

fn absolute(path: &Path) -> Value {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.to_string_lossy().into()
}
