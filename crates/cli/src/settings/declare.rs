//! The macro that declares settings.

/// Declares the struct `Settings` with a field for each setting, and `GROUPS`, the table of all
/// settings. The settings of a group follow its heading on the help page:
///
/// ```ignore
/// "Clients" {
///     max_clients: u64 = Count(1, 1000) {
///         value_name: "N",
///         default: "10000",
///         help: "Maximum number of connections; more are refused with an error",
///     }
/// }
/// ```
///
/// This is the field `max_clients` of the type `u64` in `Settings`, and the setting `max-clients`
/// of the type `SettingType::Count`, with limits. In braces are fields of
/// [`Setting`](super::setting::Setting); those that are left out are empty.
macro_rules! settings {
    ($($heading:literal {
        $($(#[$attribute:meta])*
        $field:ident: $value_type:ty = $type:ident $(($($limit:expr),*))? {
            $($key:ident: $value:expr,)*
        })*
    })*) => {
        /// The values of all settings.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct Settings {
            $($($(#[$attribute])* pub(crate) $field: $value_type,)*)*
        }

        /// All settings, in groups.
        pub(crate) const GROUPS: &[$crate::settings::setting::Group<Settings>] = {
            use $crate::settings::setting::{Group, Setting, hyphenated};
            use $crate::settings::setting_type::{Field, SettingType};
            &[$(Group {
                heading: $heading,
                settings: &[$(Setting {
                    $($key: $value,)*
                    ..Setting::new(
                        {
                            const FIELD: &str = stringify!($field);
                            const NAME: [u8; FIELD.len()] = hyphenated(FIELD);
                            match std::str::from_utf8(&NAME) {
                                Ok(name) => name,
                                Err(_) => FIELD,
                            }
                        },
                        SettingType::$type(
                            Field { get: |all| &all.$field, get_mut: |all| &mut all.$field }
                            $(, $($limit),*)?
                        ),
                        |from, to| to.$field.clone_from(&from.$field),
                    )
                },)*],
            },)*]
        };
    };
}

pub(crate) use settings;
