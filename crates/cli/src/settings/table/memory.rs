//! The settings of the group `memory`.

use crate::settings::setting::{ConfigName, Setting};
use crate::settings::setting_type::SettingType;
use nuthatch_cache::Options as CacheOptions;

pub(super) const MEMORY: &[Setting] = &[
    Setting {
        name: "memory",
        value_name: "SIZE",
        default: "1GiB",
        help: "Memory budget for keys, values, index and connections; at least 16MiB",
        more: "A budget beyond the memory of the machine, or of the process's control group, is \
               refused. Where either has less than 1.33 GiB, the default is three quarters of it. \
               The budget is fixed while the server runs: index and segments are laid out at \
               startup. Resident memory can exceed it: by about 10 MiB for the program, by the \
               stacks of threads, and by freed memory that the allocator keeps \
               (docs/operations.md, \"Memory of the process\").",
        value_type: SettingType::Size {
            field: |all| &mut all.memory,
            min: CacheOptions::MIN_MEMORY,
            max: CacheOptions::MAX_MEMORY,
        },
        config_name: ConfigName::ReadOnly("maxmemory"),
    },
    Setting {
        name: "eviction",
        value_name: "POLICY",
        default: "s3fifo",
        help: "What happens when the memory is used up",
        more: "",
        value_type: SettingType::Choice {
            field: |all| &mut all.eviction,
            choices: &[
                ("s3fifo", "evict the items that are read least (S3-FIFO)"),
                ("none", "writes fail"),
            ],
        },
        config_name: ConfigName::ReadOnly("maxmemory-policy"),
    },
    Setting {
        name: "threads",
        value_name: "N",
        default: "auto",
        help: "Worker threads, each with its own connections; auto is one for each core",
        more: "",
        value_type: SettingType::CountOrAuto { field: |all| &mut all.threads, min: 1, max: 1000 },
        config_name: ConfigName::ReadOnly("io-threads"),
    },
    Setting {
        name: "data-dir",
        value_name: "DIR",
        default: "",
        help: "A folder for this server alone: created if missing, and locked",
        more: "A second server with the same folder does not start. The folder holds no items: the \
               cache is in memory and ends with the server.",
        value_type: SettingType::Path(|all| &mut all.data_dir),
        config_name: ConfigName::ReadOnly("dir"),
    },
];
