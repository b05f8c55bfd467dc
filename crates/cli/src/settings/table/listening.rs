//! The settings of the group `listening`.

use crate::settings::setting::{Setting, Told};
use crate::settings::setting_type::Kind;

/// Where metrics are told until another address is given.
pub(crate) const ADMIN: &str = "127.0.0.1:9464";

pub(super) const LISTENING: &[Setting] = &[
    Setting {
        name: "resp",
        value_name: "ADDR",
        default: "127.0.0.1:6379",
        help: "Address for Redis clients: host:port, unix:PATH or off; can be repeated",
        more: "`tls:` before host:port enables TLS. Port 0 selects a free port. A stale unix \
               socket is replaced.",
        kind: Kind::Places(|all| &mut all.resp),
        told: Told::As("bind"),
    },
    Setting {
        name: "memcache",
        value_name: "ADDR",
        default: "127.0.0.1:11211",
        help: "Address for memcached clients (text and meta protocols); as --resp",
        more: "",
        kind: Kind::Places(|all| &mut all.memcache),
        told: Told::Not,
    },
    Setting {
        name: "pmc",
        value_name: "ADDR",
        default: "off",
        help: "Address for clients of poor-man's-cache (its own port is 9001); as --resp",
        more: "Clients that need a password log in with AUTH, as Redis clients do.",
        kind: Kind::Places(|all| &mut all.pmc),
        told: Told::Not,
    },
    Setting {
        name: "mrcache",
        value_name: "ADDR",
        default: "off",
        help: "Address for clients of mrcache (its own port is 7000); as --resp",
        more: "The protocol has no login: the address is refused if clients need a password.",
        kind: Kind::Places(|all| &mut all.mrcache),
        told: Told::Not,
    },
    Setting {
        name: "mrcache-reply",
        value_name: "REPLY",
        default: "len4",
        help: "What a reply to an mrcache client starts with",
        more: "",
        kind: Kind::Choice {
            field: |all| &mut all.mrcache_reply,
            words: &[
                ("len4", "the length of the value, in four bytes"),
                ("ver6", "0, 1 and the length, in six bytes, as clients of 2020 expect"),
            ],
        },
        told: Told::Not,
    },
    Setting {
        name: "admin",
        value_name: "ADDR",
        default: ADMIN,
        help: "Address of the admin endpoint: host:port, unix:PATH or off; repeatable",
        more: "/metrics for Prometheus and `nuthatch top`, /healthz. No TLS, no password: keep it \
               on loopback or a private network.",
        kind: Kind::Places(|all| &mut all.admin),
        told: Told::Not,
    },
    Setting {
        name: "event-loop",
        value_name: "NAME",
        default: "auto",
        help: "I/O backend",
        more: "",
        kind: Kind::Choice {
            field: |all| &mut all.event_loop,
            words: &[
                ("auto", "io_uring if available, otherwise epoll"),
                ("io_uring", "requires Linux 6.1 or later, with io_uring not disabled"),
                ("epoll", "any Linux"),
            ],
        },
        told: Told::Not,
    },
];
