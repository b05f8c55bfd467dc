//! The table of all settings. Flags, the configuration file, environment variables, what is shown
//! of them, and `docs/configuration.md` follow it.
//!
//! A new setting is a field of [`Configuration`](super::configuration::Configuration), a row here,
//! and a row on that page; a test says so where one is missing.

use super::kind::Kind;
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
        help: "Where to listen for clients of Redis: host:port, unix:PATH, or off; can be repeated",
        more: "`tls:` before host:port asks for TLS there. Port 0 is any free port. A socket in \
               the file system that a server left behind is replaced, if nobody listens there.",
        kind: Kind::Places(|all| &mut all.resp),
        told: Told::As("bind"),
    },
    Setting {
        name: "memcache",
        value_name: "ADDR",
        default: "127.0.0.1:11211",
        help: "Where to listen for clients of memcached, its text and meta protocols; as --resp",
        more: "",
        kind: Kind::Places(|all| &mut all.memcache),
        told: Told::Not,
    },
    Setting {
        name: "pmc",
        value_name: "ADDR",
        default: "off",
        help: "Where to listen for clients of poor-man's-cache (its port was 9001); as --resp",
        more: "Where a password is needed, they log in with AUTH, as clients of Redis do.",
        kind: Kind::Places(|all| &mut all.pmc),
        told: Told::Not,
    },
    Setting {
        name: "mrcache",
        value_name: "ADDR",
        default: "off",
        help: "Where to listen for clients of mrcache (its port was 7000); as --resp",
        more: "They have no way to log in: where a password is needed, this is refused.",
        kind: Kind::Places(|all| &mut all.mrcache),
        told: Told::Not,
    },
    Setting {
        name: "mrcache-reply",
        value_name: "REPLY",
        default: "len4",
        help: "What replies to clients of mrcache begin with",
        more: "",
        kind: Kind::Choice {
            field: |all| &mut all.mrcache_reply,
            words: &[
                ("len4", "the length of the value, in four bytes"),
                ("ver6", "0, 1 and the length, in six bytes: what clients of 2020 read"),
            ],
        },
        told: Told::Not,
    },
    Setting {
        name: "admin",
        value_name: "ADDR",
        default: ADMIN,
        help: "Where to tell what is counted, over HTTP: host:port, unix:PATH, or off; as --resp",
        more: "Prometheus finds it at /metrics, and `nuthatch top` there, too. Without TLS and \
               without a password.",
        kind: Kind::Places(|all| &mut all.admin),
        told: Told::Not,
    },
    Setting {
        name: "event-loop",
        value_name: "NAME",
        default: "auto",
        help: "What threads wait with for clients",
        more: "",
        kind: Kind::Choice {
            field: |all| &mut all.event_loop,
            words: &[
                ("auto", "the first of the others that this machine has"),
                ("io_uring", "Linux 6.1 or later, where nothing forbids it"),
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
        help: "Memory for all there is: keys, values, index and connections; from 16MiB on",
        more: "More than this machine or the control group of the process has is refused. The \
               default is less where that is less than 1.33 GiB: three quarters of it. It is \
               fixed while the server runs, since the index and all segments are laid out for it \
               at the start.",
        kind: Kind::Size(|all| &mut all.memory),
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
            words: &[("s3fifo", "what is asked for least makes room"), ("none", "writes fail")],
        },
        told: Told::As("maxmemory-policy"),
    },
    Setting {
        name: "threads",
        value_name: "N",
        default: "auto",
        help: "Threads, each with connections of its own; auto is one for each core",
        more: "",
        kind: Kind::CountOrAuto { field: |all| &mut all.threads, least: 1, most: 1000 },
        told: Told::As("io-threads"),
    },
    Setting {
        name: "data-dir",
        value_name: "DIR",
        default: "",
        help: "A folder that belongs to this server alone: made if it is missing, and locked",
        more: "A second server with the same folder does not start. No items are kept there: what \
               is cached is in memory, and goes with the server.",
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
        help: "Where to listen for clients of the store: host:port; can be repeated",
        more: "`tls:` before host:port asks for TLS there, at all of them or at none.",
        kind: Kind::Places(|all| &mut all.grpc),
        told: Told::Not,
    },
    Setting {
        name: "store-create",
        value_name: "BOOL",
        default: "false",
        help: "Make the store if there is none",
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
        help: "What writes to the store wait for before they are answered",
        more: "",
        kind: Kind::Choice {
            field: |all| &mut all.store_durability,
            words: &[
                ("sync", "the disk: nothing is lost"),
                ("group", "the disk, but for the last commit"),
                ("none", "nothing: a crash of the machine may lose or damage what was written"),
            ],
        },
        told: Told::Not,
    },
    Setting {
        name: "store-keep-changes",
        value_name: "N",
        default: "0",
        help: "Have the store keep so many changes for watches from now on; 0 leaves it as it is",
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
        help: "Memory that requests to the store and answers may take, besides that of the cache",
        more: "",
        kind: Kind::Size(|all| &mut all.store_memory),
        told: Told::Not,
    },
    Setting {
        name: "store-tokens",
        value_name: "FILE",
        default: "",
        help: "A file with the tokens that clients of the store must show",
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
        help: "Connections there may be at a time; further ones are told so and closed",
        more: "The server raises its limit of open files as far as it may. Where that is too low, \
               there may be fewer connections, and a warning says how many.",
        kind: Kind::Count { field: |all| &mut all.max_clients, least: 1, most: u32::MAX as u64 },
        told: Told::AndChanged("maxclients"),
    },
    Setting {
        name: "timeout",
        value_name: "TIME",
        default: "off",
        help: "Close connections that send nothing for so long, such as 300s or 5min; or off",
        more: "",
        kind: Kind::Duration {
            field: |all| &mut all.timeout,
            unit: Duration::from_secs(1),
            off: 0,
        },
        told: Told::AndChanged("timeout"),
    },
    Setting {
        name: "tcp-keepalive",
        value_name: "TIME",
        default: "5min",
        help: "Probe connections that were idle for so long, and close dead ones; or off",
        more: "A connection is dead if three probes in as long again are not answered. It holds \
               for connections that are accepted after a change.",
        kind: Kind::Duration {
            field: |all| &mut all.tcp_keepalive,
            unit: Duration::from_secs(1),
            off: 0,
        },
        told: Told::AndChanged("tcp-keepalive"),
    },
    Setting {
        name: "client-output-hard-limit",
        value_name: "SIZE",
        default: "0",
        help: "Close a client at once that has not taken more than this of its output; 0 for never",
        more: "A single reply may be as long as a value. Whatever the limits are, clients that do \
               not take their output are closed when a write needs its memory.",
        kind: Kind::Size(|all| &mut all.client_output_hard_limit),
        told: Told::AndChanged("client-output-hard-limit"),
    },
    Setting {
        name: "client-output-soft-limit",
        value_name: "SIZE",
        default: "0",
        help: "Close a client with more output than this for client-output-soft-time; 0 for never",
        more: "",
        kind: Kind::Size(|all| &mut all.client_output_soft_limit),
        told: Told::AndChanged("client-output-soft-limit"),
    },
    Setting {
        name: "client-output-soft-time",
        value_name: "TIME",
        default: "1min",
        help: "How long a client may be beyond client-output-soft-limit",
        more: "",
        kind: Kind::Duration {
            field: |all| &mut all.client_output_soft_time,
            unit: Duration::from_secs(1),
            off: 0,
        },
        told: Told::AndChanged("client-output-soft-seconds"),
    },
    Setting {
        name: "drain-ms",
        value_name: "MS",
        default: "10000",
        help: "Milliseconds that requests under way have to finish when the server is to end",
        more: "SIGTERM or SIGINT begins that; a second one ends the server at once.",
        kind: Kind::Count { field: |all| &mut all.drain_ms, least: 0, most: 86_400_000 },
        told: Told::Not,
    },
    Setting {
        name: "max-value",
        value_name: "SIZE",
        default: "512MiB",
        help: "The longest value that a client may send; from 1MiB on",
        more: "What the memory can hold as one value may be less.",
        kind: Kind::Size(|all| &mut all.max_value),
        told: Told::AndChanged("proto-max-bulk-len"),
    },
];

const ACCESS: &[Setting] = &[
    Setting {
        name: "password",
        value_name: "TEXT",
        default: "",
        help: "The password that clients need; in the file or the environment alone",
        more: "There is no such flag, since everybody on a machine can read command lines. See \
               --password-file. With a password of its own the file should be readable by its \
               owner alone.",
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
        more: "A user named default is who clients are before they log in: `user default off` \
               shuts out all others. It takes the place of a password.",
        kind: Kind::Path(|all| &mut all.users),
        told: Told::As("aclfile"),
    },
    Setting {
        name: "insecure",
        value_name: "BOOL",
        default: "false",
        help: "Listen beyond this machine although nobody is asked for a password",
        more: "Without it such an address is refused, unless clients must log in or, with \
               --tls-client-ca, show a certificate.",
        kind: Kind::Truth(|all| &mut all.insecure),
        told: Told::Not,
    },
    Setting {
        name: "enable-debug-command",
        value_name: "WHO",
        default: "no",
        help: "Who may use DEBUG, with which tests of clients stall a server and look into it",
        more: "DEBUG SLEEP keeps a thread from its work, and with it all of its connections.",
        kind: Kind::Choice {
            field: |all| &mut all.enable_debug_command,
            words: &[
                ("no", "nobody"),
                ("local", "who connects from this machine"),
                ("yes", "everybody"),
            ],
        },
        told: Told::As("enable-debug-command"),
    },
    Setting {
        name: "tls-cert",
        value_name: "FILE",
        default: "",
        help: "The certificate of this server for addresses with tls:, in PEM, with its chain",
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
        help: "Who signs certificates of clients, in PEM: with it, each must show one over TLS",
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
            off: -1,
        },
        told: Told::AndChanged("slowlog-log-slower-than"),
    },
    Setting {
        name: "slow-log-length",
        value_name: "N",
        default: "128",
        help: "How many commands the slow log keeps",
        more: "",
        kind: Kind::Count { field: |all| &mut all.slow_log_length, least: 0, most: 1_000_000 },
        told: Told::AndChanged("slowlog-max-len"),
    },
    Setting {
        name: "latency-tracking",
        value_name: "BOOL",
        default: "true",
        help: "Count how long commands take, for LATENCY HISTOGRAM and INFO latencystats",
        more: "",
        kind: Kind::Truth(|all| &mut all.latency_tracking),
        told: Told::AndChanged("latency-tracking"),
    },
    Setting {
        name: "log",
        value_name: "FILTER",
        default: "warn",
        help: "What is logged to stderr: a level, or levels by what a line is about",
        more: "Levels are off, error, warn, info, debug and trace. A filter such as \
               warn,nuthatch::users=off names what a line is about.",
        kind: Kind::Text { field: |all| &mut all.log, check: crate::logs::check },
        told: Told::Not,
    },
    Setting {
        name: "log-format",
        value_name: "FORMAT",
        default: "text",
        help: "How lines of log are written",
        more: "",
        kind: Kind::Choice {
            field: |all| &mut all.log_format,
            words: &[("text", "for people"), ("json", "one object a line")],
        },
        told: Told::Not,
    },
];
