//! The settings of the group `clients`.

use crate::settings::setting::{ConfigName, Setting};
use crate::settings::setting_type::{MAX_SIZE, SettingType};
use std::time::Duration;

pub(super) const CLIENTS: &[Setting] = &[
    Setting {
        name: "max-clients",
        value_name: "N",
        default: "10000",
        help: "Maximum number of connections; more are refused with an error",
        more: "The server raises its limit of open files to the hard limit. If that is too low, it \
               allows fewer connections and logs a warning with both numbers.",
        value_type: SettingType::Count {
            field: |all| &mut all.max_clients,
            min: 1,
            max: u32::MAX as u64,
        },
        config_name: ConfigName::Changeable("maxclients"),
    },
    Setting {
        name: "timeout",
        value_name: "TIME",
        default: "off",
        help: "Close connections that send nothing for this long, such as 300s or 5min; or off",
        more: "",
        value_type: SettingType::Duration {
            field: |all| &mut all.timeout,
            unit: Duration::from_secs(1),
            max: i32::MAX as u64,
            off: 0,
        },
        config_name: ConfigName::Changeable("timeout"),
    },
    Setting {
        name: "tcp-keepalive",
        value_name: "TIME",
        default: "5min",
        help: "Probe connections that are idle for this long, and close dead ones; or off",
        more: "A connection is dead if three probes within another period of this length are \
               not answered. A change applies to connections accepted later.",
        value_type: SettingType::Duration {
            field: |all| &mut all.tcp_keepalive,
            unit: Duration::from_secs(1),
            max: 32_767,
            off: 0,
        },
        config_name: ConfigName::Changeable("tcp-keepalive"),
    },
    Setting {
        name: "client-output-hard-limit",
        value_name: "SIZE",
        default: "0",
        help: "Close a client whose unsent replies exceed this size; 0: no limit",
        more: "What the kernel does not accept at once of a reply counts, however fast the client \
               reads. So a limit below the length of a value can close clients that read this \
               value: set it above the longest value. Clients that do not read their replies are \
               also closed, whatever this limit is, when a write needs the memory.",
        value_type: SettingType::Size {
            field: |all| &mut all.client_output_hard_limit,
            min: 0,
            max: MAX_SIZE,
        },
        config_name: ConfigName::Changeable("client-output-hard-limit"),
    },
    Setting {
        name: "client-output-soft-limit",
        value_name: "SIZE",
        default: "0",
        help: "Close a client whose unsent replies exceed this for client-output-soft-time; 0: no \
               limit",
        more: "",
        value_type: SettingType::Size {
            field: |all| &mut all.client_output_soft_limit,
            min: 0,
            max: MAX_SIZE,
        },
        config_name: ConfigName::Changeable("client-output-soft-limit"),
    },
    Setting {
        name: "client-output-soft-time",
        value_name: "TIME",
        default: "1min",
        help: "How long a client may exceed client-output-soft-limit before it is closed",
        more: "off is the same as 0s: it is closed at once.",
        value_type: SettingType::Duration {
            field: |all| &mut all.client_output_soft_time,
            unit: Duration::from_secs(1),
            max: i32::MAX as u64,
            off: 0,
        },
        config_name: ConfigName::Changeable("client-output-soft-seconds"),
    },
    Setting {
        name: "drain-ms",
        value_name: "MS",
        default: "10000",
        help: "Milliseconds that requests in progress have to finish after SIGTERM or SIGINT",
        more: "A second signal ends the server at once.",
        value_type: SettingType::Count { field: |all| &mut all.drain_ms, min: 0, max: 86_400_000 },
        config_name: ConfigName::None,
    },
    Setting {
        name: "max-value",
        value_name: "SIZE",
        default: "512MiB",
        help: "Maximum length of a value that a client may send; at least 1MiB",
        more: "The memory may allow less: a value can have at most 5/8 of it.",
        value_type: SettingType::Size {
            field: |all| &mut all.max_value,
            min: 1 << 20,
            max: MAX_SIZE,
        },
        config_name: ConfigName::Changeable("proto-max-bulk-len"),
    },
];
