//! The settings of the group `store`.

use crate::settings::setting::{ConfigName, Setting};
use crate::settings::setting_type::{MAX_SIZE, SettingType};
use nuthatch_rpc::Options as StoreOptions;

/// The default address of the store.
pub(crate) const DEFAULT_GRPC: &str = "127.0.0.1:7380";

pub(super) const STORE: &[Setting] = &[
    Setting {
        name: "store",
        value_name: "DIR",
        default: "",
        help: "The folder of a store to serve over gRPC, as `nuthatch store serve` does",
        more: "Other processes may use the folder at the same time.",
        value_type: SettingType::Path(|all| &mut all.store),
        config_name: ConfigName::None,
    },
    Setting {
        name: "grpc",
        value_name: "ADDR",
        default: DEFAULT_GRPC,
        help: "Address for gRPC clients of the store: host:port; can be repeated",
        more: "`tls:` before host:port enables TLS: for all of these addresses or for none.",
        value_type: SettingType::Addresses(|all| &mut all.grpc),
        config_name: ConfigName::None,
    },
    Setting {
        name: "store-create",
        value_name: "BOOL",
        default: "false",
        help: "Create the store if it does not exist",
        more: "",
        value_type: SettingType::Bool(|all| &mut all.store_create),
        config_name: ConfigName::None,
    },
    Setting {
        name: "store-allow-network-filesystem",
        value_name: "BOOL",
        default: "false",
        help: "Open the store on a network filesystem; safe only if a single machine uses it",
        more: "Machines do not share the memory maps of a store, so a store that two machines \
               write to is damaged without an error. Without it such a folder is refused.",
        value_type: SettingType::Bool(|all| &mut all.store_allow_network_filesystem),
        config_name: ConfigName::None,
    },
    Setting {
        name: "store-durability",
        value_name: "LEVEL",
        default: "sync",
        help: "What a write to the store waits for before it is acknowledged",
        more: "",
        value_type: SettingType::Choice {
            field: |all| &mut all.store_durability,
            choices: &[
                ("sync", "the disk: no acknowledged write is lost"),
                (
                    "group",
                    "the disk; a power failure may lose the last commit even if it was \
                     acknowledged",
                ),
                ("none", "nothing: a crash of the machine may lose or damage what was written"),
            ],
        },
        config_name: ConfigName::None,
    },
    Setting {
        name: "store-keep-changes",
        value_name: "N",
        default: "0",
        help: "Maximum number of changes to keep for watches, in at most 4 KiB x N bytes (the \
               newest is kept even if it alone takes more); 0 leaves the store's limits unchanged",
        more: "",
        value_type: SettingType::Count {
            field: |all| &mut all.store_keep_changes,
            min: 0,
            max: u32::MAX as u64,
        },
        config_name: ConfigName::None,
    },
    Setting {
        name: "store-memory",
        value_name: "SIZE",
        default: "256MiB",
        help: "Memory limit for requests to the store and their responses, in addition to \
               --memory; at least 1MiB",
        more: "",
        value_type: SettingType::Size {
            field: |all| &mut all.store_memory,
            min: StoreOptions::MIN_MEMORY,
            max: MAX_SIZE,
        },
        config_name: ConfigName::None,
    },
    Setting {
        name: "store-tokens",
        value_name: "FILE",
        default: "",
        help: "A file with the tokens that clients of the store must present",
        more: "Its lines are \"token NAME read|write SECRET\"; see `nuthatch store serve --help`.",
        value_type: SettingType::Path(|all| &mut all.store_tokens),
        config_name: ConfigName::None,
    },
];
