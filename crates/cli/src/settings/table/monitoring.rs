//! The settings of the group `monitoring`.

use crate::settings::setting::{ConfigName, Setting};
use crate::settings::setting_type::SettingType;
use std::time::Duration;

pub(super) const MONITORING: &[Setting] = &[
    Setting {
        name: "slow-log-threshold",
        value_name: "TIME",
        default: "10ms",
        help: "Commands that take longer go to the slow log; 0s logs all of them, off none",
        more: "",
        value_type: SettingType::Duration {
            field: |all| &mut all.slow_log_threshold,
            unit: Duration::from_micros(1),
            max: u64::MAX,
            off: -1,
        },
        config_name: ConfigName::Changeable("slowlog-log-slower-than"),
    },
    Setting {
        name: "slow-log-length",
        value_name: "N",
        default: "128",
        help: "Maximum number of commands in the slow log",
        more: "",
        value_type: SettingType::Count {
            field: |all| &mut all.slow_log_length,
            min: 0,
            max: 1_000_000,
        },
        config_name: ConfigName::Changeable("slowlog-max-len"),
    },
    Setting {
        name: "latency-tracking",
        value_name: "BOOL",
        default: "true",
        help: "Measure how long commands take, for LATENCY HISTOGRAM and INFO latencystats",
        more: "",
        value_type: SettingType::Bool(|all| &mut all.latency_tracking),
        config_name: ConfigName::Changeable("latency-tracking"),
    },
    Setting {
        name: "log",
        value_name: "FILTER",
        default: "warn",
        help: "What is logged to stderr: a level, or levels by target",
        more: "Levels are off, error, warn, info, debug and trace. A filter such as \
               warn,nuthatch::users=off sets the level of a target.",
        value_type: SettingType::Text { field: |all| &mut all.log, check: crate::logs::check },
        config_name: ConfigName::None,
    },
    Setting {
        name: "log-format",
        value_name: "FORMAT",
        default: "text",
        help: "Format of log lines",
        more: "",
        value_type: SettingType::Choice {
            field: |all| &mut all.log_format,
            choices: &[("text", "readable text"), ("json", "one JSON object per line")],
        },
        config_name: ConfigName::None,
    },
];
