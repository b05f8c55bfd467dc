//! The settings of the group `listening`.

use crate::settings::setting::{ConfigName, Setting};
use crate::settings::setting_type::SettingType;

/// The default address of the admin endpoint.
pub(crate) const DEFAULT_ADMIN: &str = "127.0.0.1:9464";

pub(super) const LISTENING: &[Setting] = &[
    Setting {
        name: "resp",
        value_name: "ADDR",
        default: "127.0.0.1:6379",
        help: "Address for Redis clients: host:port, unix:PATH or off; can be repeated",
        more: "`tls:` before host:port enables TLS. Port 0 selects a free port. A stale unix \
               socket is replaced.",
        value_type: SettingType::Addresses(|all| &mut all.resp),
        config_name: ConfigName::ReadOnly("bind"),
    },
    Setting {
        name: "memcache",
        value_name: "ADDR",
        default: "127.0.0.1:11211",
        help: "Address for memcached clients (text and meta protocols); as --resp",
        more: "",
        value_type: SettingType::Addresses(|all| &mut all.memcache),
        config_name: ConfigName::None,
    },
    Setting {
        name: "pmc",
        value_name: "ADDR",
        default: "off",
        help: "Address for clients of poor-man's-cache (its own port is 9001); as --resp",
        more: "Clients that need a password log in with AUTH, as Redis clients do.",
        value_type: SettingType::Addresses(|all| &mut all.pmc),
        config_name: ConfigName::None,
    },
    Setting {
        name: "mrcache",
        value_name: "ADDR",
        default: "off",
        help: "Address for clients of mrcache (its own port is 7000); as --resp",
        more: "The protocol has no login: the address is refused if clients need a password.",
        value_type: SettingType::Addresses(|all| &mut all.mrcache),
        config_name: ConfigName::None,
    },
    Setting {
        name: "mrcache-reply",
        value_name: "REPLY",
        default: "len4",
        help: "What a reply to an mrcache client starts with",
        more: "",
        value_type: SettingType::Choice {
            field: |all| &mut all.mrcache_reply,
            choices: &[
                ("len4", "the length of the value, in four bytes"),
                ("ver6", "0, 1 and the length, in six bytes, as clients of 2020 expect"),
            ],
        },
        config_name: ConfigName::None,
    },
    Setting {
        name: "admin",
        value_name: "ADDR",
        default: DEFAULT_ADMIN,
        help: "Address of the admin endpoint: host:port, unix:PATH or off; repeatable",
        more: "/metrics for Prometheus and `nuthatch top`, /healthz. No TLS, no password: keep it \
               on loopback or a private network.",
        value_type: SettingType::Addresses(|all| &mut all.admin),
        config_name: ConfigName::None,
    },
    Setting {
        name: "event-loop",
        value_name: "NAME",
        default: "auto",
        help: "I/O backend",
        more: "",
        value_type: SettingType::Choice {
            field: |all| &mut all.event_loop,
            choices: &[
                ("auto", "io_uring if available, otherwise epoll"),
                ("io_uring", "requires Linux 6.1 or later, with io_uring not disabled"),
                ("epoll", "any Linux"),
            ],
        },
        config_name: ConfigName::None,
    },
];
