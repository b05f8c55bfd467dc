//! The table of all settings. Flags, the configuration file, environment variables, what is shown
//! of them, and `docs/configuration.md` follow it.
//!
//! A new setting is a field of [`Configuration`](super::configuration::Configuration), a row here,
//! and a row on that page; a test says so where one is missing.

use super::kind::{Kind, MAX_SIZE};
use nuthatch_cache::Options as CacheOptions;
use nuthatch_rpc::Options as StoreOptions;
use std::time::Duration;

/// What `CONFIG` of Redis's protocol has of a setting.
#[derive(Clone, Copy)]
pub(crate) enum Told {
    /// Nothing.
    Not,
    /// It is told by this name.
    As(&'static str),
    /// And can be changed while the server runs.
    AndChanged(&'static str),
}

/// A setting.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    /// As flags and the file call it.
    pub(crate) name: &'static str,
    /// What stands for its value in help.
    pub(crate) value_name: &'static str,
    /// The value it has until another is given; an empty one stands for none.
    pub(crate) default: &'static str,
    /// What it is for, in a line.
    pub(crate) help: &'static str,
    /// What else there is to know.
    pub(crate) more: &'static str,
    pub(crate) kind: Kind,
    pub(crate) told: Told,
}

/// Settings that belong together.
pub(crate) struct Group {
    pub(crate) heading: &'static str,
    pub(crate) settings: &'static [Setting],
}

impl Setting {
    /// The environment variable that sets it.
    pub(crate) fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.replace('-', "_").to_ascii_uppercase())
    }

    /// Whether it can be given on the command line, where everybody on the machine may read it.
    pub(crate) fn is_flag(&self) -> bool {
        !matches!(self.kind, Kind::Secret(_))
    }
}

/// Where metrics are told until another address is given.
pub(crate) const ADMIN: &str = "127.0.0.1:9464";

/// Where a store is served until another address is given.
pub(crate) const GRPC: &str = "127.0.0.1:7380";

/// What the names of environment variables begin with.
pub(crate) const PREFIX: &str = "NUTHATCH_";

/// All settings, in their order.
pub(crate) fn settings() -> impl Iterator<Item = &'static Setting> {
    GROUPS.iter().flat_map(|group| group.settings)
}

/// All settings, by what they are about.
pub(crate) const GROUPS: &[Group] = &[
    Group { heading: "Listening", settings: LISTENING },
    Group { heading: "Memory and threads", settings: MEMORY },
    Group { heading: "Clients", settings: CLIENTS },
    Group { heading: "Store", settings: STORE },
    Group { heading: "Access", settings: ACCESS },
    Group { heading: "Watching", settings: WATCHING },
];

const LISTENING: &[Setting] = &[
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

const MEMORY: &[Setting] = &[
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
        kind: Kind::Size {
            field: |all| &mut all.memory,
            min: CacheOptions::MIN_MEMORY,
            max: CacheOptions::MAX_MEMORY,
        },
        told: Told::As("maxmemory"),
    },
    Setting {
        name: "eviction",
        value_name: "POLICY",
        default: "s3fifo",
        help: "What happens when the memory is used up",
        more: "",
        kind: Kind::Choice {
            field: |all| &mut all.eviction,
            words: &[
                ("s3fifo", "evict the items that are read least (S3-FIFO)"),
                ("none", "writes fail"),
            ],
        },
        told: Told::As("maxmemory-policy"),
    },
    Setting {
        name: "threads",
        value_name: "N",
        default: "auto",
        help: "Worker threads, each with its own connections; auto is one for each core",
        more: "",
        kind: Kind::CountOrAuto { field: |all| &mut all.threads, least: 1, most: 1000 },
        told: Told::As("io-threads"),
    },
    Setting {
        name: "data-dir",
        value_name: "DIR",
        default: "",
        help: "A folder for this server alone: created if missing, and locked",
        more: "A second server with the same folder does not start. The folder holds no items: the \
               cache is in memory and ends with the server.",
        kind: Kind::Path(|all| &mut all.data_dir),
        told: Told::As("dir"),
    },
];

const STORE: &[Setting] = &[
    Setting {
        name: "store",
        value_name: "DIR",
        default: "",
        help: "The folder of a store to serve over gRPC, as `nuthatch store serve` does",
        more: "Other processes may use the folder at the same time.",
        kind: Kind::Path(|all| &mut all.store),
        told: Told::Not,
    },
    Setting {
        name: "grpc",
        value_name: "ADDR",
        default: GRPC,
        help: "Address for gRPC clients of the store: host:port; can be repeated",
        more: "`tls:` before host:port enables TLS: for all of these addresses or for none.",
        kind: Kind::Places(|all| &mut all.grpc),
        told: Told::Not,
    },
    Setting {
        name: "store-create",
        value_name: "BOOL",
        default: "false",
        help: "Create the store if there is none",
        more: "",
        kind: Kind::Truth(|all| &mut all.store_create),
        told: Told::Not,
    },
    Setting {
        name: "store-allow-network-filesystem",
        value_name: "BOOL",
        default: "false",
        help: "Open the store on a network filesystem; only if one machine alone uses the store",
        more: "Machines do not share the memory maps of a store, so a store that two machines \
               write to is damaged without an error. Without it such a folder is refused.",
        kind: Kind::Truth(|all| &mut all.store_allow_network_filesystem),
        told: Told::Not,
    },
    Setting {
        name: "store-durability",
        value_name: "LEVEL",
        default: "sync",
        help: "What a write to the store waits for before it is acknowledged",
        more: "",
        kind: Kind::Choice {
            field: |all| &mut all.store_durability,
            words: &[
                ("sync", "the disk: no acknowledged write is lost"),
                (
                    "group",
                    "the disk; a power failure may lose the last commit even if it was \
                     acknowledged",
                ),
                ("none", "nothing: a crash of the machine may lose or damage what was written"),
            ],
        },
        told: Told::Not,
    },
    Setting {
        name: "store-keep-changes",
        value_name: "N",
        default: "0",
        help: "Maximum number of changes to keep for watches, in at most 4 KiB x N bytes (the \
               newest is kept even if it alone takes more); 0 leaves the store's limits unchanged",
        more: "",
        kind: Kind::Count {
            field: |all| &mut all.store_keep_changes,
            least: 0,
            most: u32::MAX as u64,
        },
        told: Told::Not,
    },
    Setting {
        name: "store-memory",
        value_name: "SIZE",
        default: "256MiB",
        help: "Memory limit for requests to the store and their answers, in addition to --memory; \
               at least 1MiB",
        more: "",
        kind: Kind::Size {
            field: |all| &mut all.store_memory,
            min: StoreOptions::MIN_MEMORY,
            max: MAX_SIZE,
        },
        told: Told::Not,
    },
    Setting {
        name: "store-tokens",
        value_name: "FILE",
        default: "",
        help: "A file with the tokens that clients of the store must present",
        more: "Its lines are \"token NAME read|write SECRET\"; see `nuthatch store serve --help`.",
        kind: Kind::Path(|all| &mut all.store_tokens),
        told: Told::Not,
    },
];

const CLIENTS: &[Setting] = &[
    Setting {
        name: "max-clients",
        value_name: "N",
        default: "10000",
        help: "Maximum number of connections; more are refused with an error",
        more: "The server raises its limit of open files to the hard limit. If that is too low, it \
               allows fewer connections and logs a warning with both numbers.",
        kind: Kind::Count { field: |all| &mut all.max_clients, least: 1, most: u32::MAX as u64 },
        told: Told::AndChanged("maxclients"),
    },
    Setting {
        name: "timeout",
        value_name: "TIME",
        default: "off",
        help: "Close connections that send nothing for this long, such as 300s or 5min; or off",
        more: "",
        kind: Kind::Duration {
            field: |all| &mut all.timeout,
            unit: Duration::from_secs(1),
            max: i32::MAX as u64,
            off: 0,
        },
        told: Told::AndChanged("timeout"),
    },
    Setting {
        name: "tcp-keepalive",
        value_name: "TIME",
        default: "5min",
        help: "Probe connections that are idle for this long, and close dead ones; or off",
        more: "A connection is dead if three probes within another period of this length are \
               not answered. A change applies to connections accepted later.",
        kind: Kind::Duration {
            field: |all| &mut all.tcp_keepalive,
            unit: Duration::from_secs(1),
            max: 32_767,
            off: 0,
        },
        told: Told::AndChanged("tcp-keepalive"),
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
        kind: Kind::Size { field: |all| &mut all.client_output_hard_limit, min: 0, max: MAX_SIZE },
        told: Told::AndChanged("client-output-hard-limit"),
    },
    Setting {
        name: "client-output-soft-limit",
        value_name: "SIZE",
        default: "0",
        help: "Close a client whose unsent replies exceed this for client-output-soft-time; 0: no \
               limit",
        more: "",
        kind: Kind::Size { field: |all| &mut all.client_output_soft_limit, min: 0, max: MAX_SIZE },
        told: Told::AndChanged("client-output-soft-limit"),
    },
    Setting {
        name: "client-output-soft-time",
        value_name: "TIME",
        default: "1min",
        help: "How long a client may exceed client-output-soft-limit before it is closed",
        more: "off is the same as 0s: it is closed at once.",
        kind: Kind::Duration {
            field: |all| &mut all.client_output_soft_time,
            unit: Duration::from_secs(1),
            max: i32::MAX as u64,
            off: 0,
        },
        told: Told::AndChanged("client-output-soft-seconds"),
    },
    Setting {
        name: "drain-ms",
        value_name: "MS",
        default: "10000",
        help: "Milliseconds that requests in progress have to finish after SIGTERM or SIGINT",
        more: "A second signal ends the server at once.",
        kind: Kind::Count { field: |all| &mut all.drain_ms, least: 0, most: 86_400_000 },
        told: Told::Not,
    },
    Setting {
        name: "max-value",
        value_name: "SIZE",
        default: "512MiB",
        help: "Maximum length of a value that a client may send; at least 1MiB",
        more: "The memory may allow less: a value can have at most 5/8 of it.",
        kind: Kind::Size { field: |all| &mut all.max_value, min: 1 << 20, max: MAX_SIZE },
        told: Told::AndChanged("proto-max-bulk-len"),
    },
];

const ACCESS: &[Setting] = &[
    Setting {
        name: "password",
        value_name: "TEXT",
        default: "",
        help: "The password that clients need; in the file or the environment only",
        more: "There is no flag, since all users of a machine can read command lines. See \
               --password-file. A settings file with a password should be readable by its owner \
               only.",
        kind: Kind::Secret(|all| &mut all.password),
        told: Told::AndChanged("requirepass"),
    },
    Setting {
        name: "password-file",
        value_name: "FILE",
        default: "",
        help: "A file whose only line is the password that clients need",
        more: "",
        kind: Kind::Path(|all| &mut all.password_file),
        told: Told::Not,
    },
    Setting {
        name: "users",
        value_name: "FILE",
        default: "",
        help: "A file of users, their passwords, commands and keys, as `user` lines of Redis's ACL",
        more: "A client that has not logged in is the user `default`; `user default off` makes \
               clients log in. Cannot be combined with `password` or --password-file.",
        kind: Kind::Path(|all| &mut all.users),
        told: Told::As("aclfile"),
    },
    Setting {
        name: "insecure",
        value_name: "BOOL",
        default: "false",
        help: "Listen beyond this machine without a password",
        more: "Without it such an address is refused, unless clients must log in or, with \
               --tls-client-ca, present a certificate.",
        kind: Kind::Truth(|all| &mut all.insecure),
        told: Told::Not,
    },
    Setting {
        name: "enable-debug-command",
        value_name: "WHO",
        default: "no",
        help: "Who may use DEBUG, which can stall and inspect a server; for tests of clients",
        more: "DEBUG SLEEP blocks a worker thread and all of its connections.",
        kind: Kind::Choice {
            field: |all| &mut all.enable_debug_command,
            words: &[
                ("no", "no client"),
                ("local", "clients on this machine"),
                ("yes", "all clients"),
            ],
        },
        told: Told::As("enable-debug-command"),
    },
    Setting {
        name: "tls-cert",
        value_name: "FILE",
        default: "",
        help: "The server's certificate and its chain in PEM, for addresses with tls:",
        more: "",
        kind: Kind::Path(|all| &mut all.tls_cert),
        told: Told::As("tls-cert-file"),
    },
    Setting {
        name: "tls-key",
        value_name: "FILE",
        default: "",
        help: "The private key of that certificate, in PEM",
        more: "",
        kind: Kind::Path(|all| &mut all.tls_key),
        told: Told::As("tls-key-file"),
    },
    Setting {
        name: "tls-client-ca",
        value_name: "FILE",
        default: "",
        help: "CA certificates in PEM; TLS clients must then present a certificate issued by one \
               of them",
        more: "",
        kind: Kind::Path(|all| &mut all.tls_client_ca),
        told: Told::As("tls-ca-cert-file"),
    },
];

const WATCHING: &[Setting] = &[
    Setting {
        name: "slow-log-threshold",
        value_name: "TIME",
        default: "10ms",
        help: "Commands that take longer go to the slow log; 0s logs all of them, off none",
        more: "",
        kind: Kind::Duration {
            field: |all| &mut all.slow_log_threshold,
            unit: Duration::from_micros(1),
            max: u64::MAX,
            off: -1,
        },
        told: Told::AndChanged("slowlog-log-slower-than"),
    },
    Setting {
        name: "slow-log-length",
        value_name: "N",
        default: "128",
        help: "Maximum number of commands in the slow log",
        more: "",
        kind: Kind::Count { field: |all| &mut all.slow_log_length, least: 0, most: 1_000_000 },
        told: Told::AndChanged("slowlog-max-len"),
    },
    Setting {
        name: "latency-tracking",
        value_name: "BOOL",
        default: "true",
        help: "Measure how long commands take, for LATENCY HISTOGRAM and INFO latencystats",
        more: "",
        kind: Kind::Truth(|all| &mut all.latency_tracking),
        told: Told::AndChanged("latency-tracking"),
    },
    Setting {
        name: "log",
        value_name: "FILTER",
        default: "warn",
        help: "What is logged to stderr: a level, or levels by target",
        more: "Levels are off, error, warn, info, debug and trace. A filter such as \
               warn,nuthatch::users=off sets the level of a target.",
        kind: Kind::Text { field: |all| &mut all.log, check: crate::logs::check },
        told: Told::Not,
    },
    Setting {
        name: "log-format",
        value_name: "FORMAT",
        default: "text",
        help: "Format of log lines",
        more: "",
        kind: Kind::Choice {
            field: |all| &mut all.log_format,
            words: &[("text", "readable text"), ("json", "one JSON object per line")],
        },
        told: Told::Not,
    },
];
