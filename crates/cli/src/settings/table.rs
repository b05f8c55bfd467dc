//! The table of all settings. Flags, the settings file, environment variables, `--show-config`,
//! `CONFIG` and `docs/configuration.md` follow it.
//!
//! A new setting is an entry in this file, which [`settings`] describes, and a row on that page. A
//! test fails if the row is missing.

use super::declare::settings;
use super::duration_unit::{MICROSECONDS, SECONDS};
use super::listen_address::ListenAddress;
use super::named_path::NamedPath;
use super::path_or_word::PathOrWord;
use super::secret::Secret;
use super::setting::ConfigName::{Changeable, ReadOnly};
use super::setting_type::MAX_SIZE;
use super::{cluster, compress, setting, setting_type};
use crate::logs;
use nuthatch_cache::Options as CacheOptions;
use nuthatch_rpc::Options as StoreOptions;
use nuthatch_tiered::Options as DiskOptions;
use std::path::PathBuf;
use std::time::Duration;

/// A setting of the table.
pub(crate) type Setting = setting::Setting<Settings>;

/// The type of a setting of the table.
pub(crate) type SettingType = setting_type::SettingType<Settings>;

/// The default address of the admin endpoint.
pub(crate) const DEFAULT_ADMIN: &str = "127.0.0.1:9464";

/// The default address of the store.
pub(crate) const DEFAULT_GRPC: &str = "127.0.0.1:7380";

/// Returns all settings, in the order of the table.
pub(crate) fn all_settings() -> impl Iterator<Item = &'static Setting> {
    GROUPS.iter().flat_map(|group| group.settings)
}

/// Returns the other settings in the group of this one.
pub(crate) fn others_in_group(name: &'static str) -> impl Iterator<Item = &'static Setting> {
    let mut groups = GROUPS.iter().map(|group| group.settings);
    let group = groups.find(|settings| settings.iter().any(|setting| setting.name == name));
    group.unwrap_or_default().iter().filter(move |setting| setting.name != name)
}

settings! {
    "Listening" {
        resp: Vec<ListenAddress> = Addresses {
            value_name: "ADDR",
            default: "127.0.0.1:6379",
            help: "Address for Redis clients: host:port, unix:PATH or off; can be repeated",
            more: "`tls:` before host:port enables TLS. Port 0 selects a free port. A stale unix \
                   socket is replaced.",
            config_name: ReadOnly("bind"),
        }

        memcache: Vec<ListenAddress> = Addresses {
            value_name: "ADDR",
            default: "127.0.0.1:11211",
            help: "Address for memcached clients (text and meta protocols); as --resp",
            more: "With --cluster, it is off by default.",
        }

        pmc: Vec<ListenAddress> = Addresses {
            value_name: "ADDR",
            default: "off",
            help: "Address for clients of poor-man's-cache (usual port: 9001); as --resp",
            more: "Clients that need a password log in with AUTH, as Redis clients do.",
        }

        mrcache: Vec<ListenAddress> = Addresses {
            value_name: "ADDR",
            default: "off",
            help: "Address for clients of mrcache (usual port: 7000); as --resp",
            more: "The protocol has no login: the address is refused if clients need a password.",
        }

        mrcache_reply: &'static str = Choice(&[
            ("len4", "the length of the value, in four bytes"),
            ("ver6", "0, 1 and the length, in six bytes, as clients of 2020 expect"),
        ]) {
            value_name: "REPLY",
            default: "len4",
            help: "Header of replies to mrcache clients",
        }

        admin: Vec<ListenAddress> = Addresses {
            value_name: "ADDR",
            default: DEFAULT_ADMIN,
            help: "Address of the admin endpoint: host:port, unix:PATH or off; can be repeated",
            more: "The live page at /, /metrics for Prometheus, /healthz, and the counters of \
                   `nuthatch top`. No TLS, no password: keep it on loopback or a private network.",
        }

        admin_host: Vec<String> = Texts {
            value_name: "NAME",
            help: "Name of the server for browsers at the admin endpoint, such as \
                   cache-7.example.com; can be repeated",
            more: "Browsers may use localhost, an IP address or such a name. With another name the \
                   request is refused, since a page of another site could have caused it (DNS \
                   rebinding). Prometheus and other programs use any name for /metrics and \
                   /healthz.",
            reloads: true,
        }

        admin_token_file: Option<PathBuf> = Path {
            value_name: "FILE",
            help: "A file whose only line is the token that shows keys and clients on the live \
                   page; at least 16 bytes",
            more: "Without the token, the page and `nuthatch top` show the length and a short hash \
                   in place of keys, arguments of commands, addresses and names of clients, and \
                   paths of snapshots.",
            reloads: true,
        }

        event_loop: &'static str = Choice(&[
            ("auto", "io_uring if available, otherwise epoll"),
            ("io_uring", "requires Linux 6.1 or later, with io_uring not disabled"),
            ("epoll", "any Linux"),
        ]) {
            value_name: "NAME",
            default: "auto",
            help: "I/O backend",
        }
    }

    "Memory and threads" {
        memory: u64 = Size(CacheOptions::MIN_MEMORY, CacheOptions::MAX_MEMORY) {
            value_name: "SIZE",
            default: "1GiB",
            help: "Memory budget for keys, values, index and connections; at least 16MiB",
            more: "A budget beyond the memory of the machine, or of the process's control group, \
                   is refused. Where either has less than 1.33 GiB, the default is three quarters \
                   of it. The budget is fixed while the server runs: index and segments are laid \
                   out at startup. Resident memory can exceed it: by about 10 MiB for the program, \
                   by the stacks of threads, and by freed memory that the allocator keeps \
                   (docs/operations.md, \"Memory of the process\").",
            config_name: ReadOnly("maxmemory"),
        }

        eviction: &'static str = Choice(&[
            ("s3fifo", "evict the items that are read least (S3-FIFO)"),
            ("none", "writes fail"),
        ]) {
            value_name: "POLICY",
            default: "s3fifo",
            help: "Eviction policy when the memory budget is used up",
            config_name: ReadOnly("maxmemory-policy"),
        }

        /// `None` for one thread per core.
        threads: Option<u64> = CountOrAuto(1, 1000) {
            value_name: "N",
            default: "auto",
            help: "Worker threads, each with its own connections; auto is one for each core",
            config_name: ReadOnly("io-threads"),
        }

        disk: u64 = Size(0, DiskOptions::MAX_BYTES) {
            value_name: "SIZE",
            default: "0",
            help: "Bytes on disk for items that do not fit in memory, in --data-dir; 0 for none",
            more: "Items that would be evicted are written to disk, and read again when a request \
                   needs them. At least 16MiB, at most 1TiB. All files in the folder `items` of \
                   --data-dir count, so it never has more bytes; the folder `dictionaries` beside \
                   it does not count. When the limit is reached, the oldest items are removed. \
                   After SIGTERM, the next server has the items on disk and those in memory \
                   (--dump-ms). After SIGKILL or a crash of the process, it has the items whose \
                   records on disk were complete; after a loss of power, none \
                   (docs/operations.md, \"Disk tier\").",
        }

        disk_full: &'static str = Choice(&[
            ("drop", "evict items without writing them, and count them"),
            ("wait", "let clients that write wait"),
        ]) {
            value_name: "POLICY",
            default: "drop",
            help: "What to do when items leave memory faster than the disk can write them",
        }

        data_dir: Option<PathBuf> = Path {
            value_name: "DIR",
            help: "Folder of the server, which it creates if missing; one server at a time uses it",
            more: "A second server with the same folder does not start. The folder contains a lock \
                   file; with --warm-restart, the folder `items` with the dump; with --disk, the \
                   folder `items` with the items on disk, and the folder `dictionaries` with the \
                   dictionaries of their compressed values. Other users cannot read these folders. \
                   A server with neither setting removes what is in `items`.",
            config_name: ReadOnly("dir"),
        }

        compress: String = Text(compress::check) {
            value_name: "CODEC",
            default: "off",
            help: "Compress values in memory: off, zstd or zstd:LEVEL, with a level from 1 to 19",
            more: "Clients see raw values. zstd is level 3. A value is stored as it came if \
                   compression would not make it 1/16 shorter, and if it is longer than 1 MiB \
                   (256 KiB from level 5 on, 64 KiB from level 10 on), as compressing it would \
                   delay other clients. Values of SETZ (mrcache) are compressed even if this is \
                   off. See docs/compression.md.",
        }

        compress_min: u64 = Size(16, 1 << 20) {
            value_name: "SIZE",
            default: "64",
            help: "Minimum length of a value that --compress compresses",
        }

        compress_dict: PathOrWord = PathOrWord(compress::DICTIONARY_WORDS) {
            value_name: "auto|FILE|off",
            default: "auto",
            help: "Dictionaries of --compress: auto, off or a file",
            more: "With auto, a thread with low priority trains dictionaries from samples of the \
                   values that clients store, for each kind of keys, and uses those that make \
                   values at least 10 % shorter than zstd without one. This takes part of \
                   --memory, of which auto needs 64 MiB. A file has a dictionary in zstd's format, \
                   such as one of `nuthatch dict train`.",
        }

        warm_restart: bool = Bool {
            value_name: "BOOL",
            default: "false",
            help: "Write all items to --data-dir after SIGTERM or SIGINT, and restore them at the \
                   next start",
            more: "The server serves at once and restores items meanwhile, the most read ones \
                   first. Those that clients changed since the start stay as they are. After a \
                   crash there is no dump, and the cache starts empty.",
        }

        dump_ms: u64 = Count(1, 86_400_000) {
            value_name: "MS",
            default: "30000",
            help: "Maximum milliseconds of writing the items in memory after SIGTERM or SIGINT, \
                   with --warm-restart or --disk",
            more: "The most read items are written first. Items that do not fit in this time are \
                   left out; a warning in the log says how many. Allow this, --drain-ms and the \
                   time of a sync before a supervisor kills the server. A second signal ends the \
                   server at once: without a dump, and with --disk without the items that are \
                   only in memory.",
        }
    }

    "Cluster" {
        cluster: String = Text(cluster::check) {
            value_name: "URL",
            default: "off",
            help: "The cluster to join, as etcd://HOST:PORT[,HOST:PORT...]/NAME; or off",
            more: "etcds:// connects to etcd with TLS. Nodes with the same URL share the slots of \
                   Redis Cluster, in proportion to --memory; clients of Redis Cluster find them. \
                   etcd has the owner of each slot. A node that cannot renew its lease there \
                   answers CLUSTERDOWN (see --etcd-away). Nodes serve clients of Redis and \
                   memcached only. With --data-dir, a node keeps its identifier; with --disk or \
                   --warm-restart, also its items, if no other node has served their slots \
                   before it is started again. See docs/cluster.md.",
        }

        etcd_ca: Option<PathBuf> = Path {
            value_name: "FILE",
            help: "CA certificates in PEM for etcds://; by default those that the system trusts",
            more: "The certificate of etcd must be issued by one of them, for the host of the \
                   endpoint.",
            reloads: true,
        }

        etcd_cert: Option<PathBuf> = Path {
            value_name: "FILE",
            help: "The client certificate for etcds:// and its chain, in PEM",
            more: "Without --etcd-user, etcd takes its common name as the user.",
            reloads: true,
        }

        etcd_key: Option<PathBuf> = Path {
            value_name: "FILE",
            help: "The private key of that client certificate, in PEM",
            reloads: true,
        }

        etcd_user: String = Text(|_| Ok(())) {
            value_name: "NAME",
            help: "The user of etcd as which the node logs in",
            more: "It needs read and write access to all keys that begin with /nuthatch/NAME/, \
                   where NAME is that of the cluster. A password is not sent to another machine \
                   without TLS, unless --insecure allows it.",
            reloads: true,
        }

        etcd_password: Option<Secret> = Secret {
            value_name: "TEXT",
            help: "The password of etcd-user; in the file or the environment only",
            more: "See --etcd-password-file. A settings file with a password should be readable by \
                   its owner only.",
            reloads: true,
        }

        etcd_password_file: Option<PathBuf> = Path {
            value_name: "FILE",
            help: "A file whose only line is the password of etcd-user",
            reloads: true,
        }

        etcd_away: &'static str = Choice(&[
            ("stop", "it answers CLUSTERDOWN, so no client reads an outdated value"),
            ("serve", "it serves its slots on; other nodes that reach etcd may serve them, too"),
        ]) {
            value_name: "ACTION",
            default: "stop",
            help: "What a node does if it cannot renew its lease because etcd does not answer",
        }

        announce: String = Text(cluster::check_announced) {
            value_name: "HOST:PORT",
            default: "auto",
            help: "The address by which clients and other nodes reach this node of a cluster",
            more: "auto is the first address of --resp.",
        }

        cluster_forward: bool = Bool {
            value_name: "BOOL",
            default: "false",
            help: "Forward requests of Redis clients for slots of other nodes, instead of MOVED",
            more: "For clients that know nothing of clusters. Each such request takes a round trip \
                   more. MGET, MSET, DEL, UNLINK, EXISTS and TOUCH are split by node; FLUSHALL and \
                   FLUSHDB flush all nodes; MULTI, EXEC and WATCH are not forwarded. Requests of \
                   memcached clients are always forwarded.",
        }

        node_ca: Option<PathBuf> = Path {
            value_name: "FILE",
            help: "CA certificates in PEM for the addresses of other nodes of a cluster",
            more: "By default those that the system trusts. Used if --resp has `tls:`: the nodes \
                   then connect to each other with TLS, with --tls-cert as the client certificate \
                   if --tls-client-ca is set.",
            reloads: true,
        }

        node_user: String = Text(|_| Ok(())) {
            value_name: "NAME",
            help: "The user as which a node logs in to the other nodes of a cluster",
            more: "With --users. It needs the command cluster|transfer; with --cluster-forward or \
                   --memcache, all commands and keys. Without --users, the nodes log in with \
                   their own password, which is the same for all.",
            reloads: true,
        }

        node_password_file: Option<PathBuf> = Path {
            value_name: "FILE",
            help: "A file whose only line is the password of node-user",
            reloads: true,
        }

        cluster_stop: &'static str = Choice(&[
            ("auto", "keep with --disk, otherwise drain"),
            ("drain", "it moves its slots to other nodes, with their items"),
            ("keep", "its slots wait for its next start, with their items; needs --disk or \
                      --warm-restart"),
        ]) {
            value_name: "ACTION",
            default: "auto",
            help: "What a node of a cluster does with its slots after SIGTERM or SIGINT",
            more: "Requests for slots that wait fail until the node serves them again, or until \
                   other nodes take them, without items, after --cluster-restart-ms. To remove a \
                   node that keeps its slots, move them first: `nuthatch cluster drain`. With \
                   --disk or --warm-restart, a node that can move its slots to no other node keeps \
                   them, too.",
        }

        cluster_restart_ms: u64 = Count(0, 86_400_000) {
            value_name: "MS",
            default: "60000",
            help: "Maximum milliseconds that the slots of a node that has stopped wait for it",
            more: "Other nodes then take them without items. At least the rest of the lease of \
                   the node, which is at most eight seconds.",
        }

        cluster_drain_ms: u64 = Count(0, 86_400_000) {
            value_name: "MS",
            default: "20000",
            help: "Maximum milliseconds to move slots to other nodes after SIGTERM or SIGINT",
            more: "With --cluster-stop drain. The node serves its clients meanwhile; then \
                   --drain-ms begins. Items of slots that have not moved by then are lost. 0 \
                   moves none. A second signal ends the server at once.",
        }

        cluster_move_rate: u64 = Size(1 << 20, MAX_SIZE) {
            value_name: "SIZE",
            default: "100MiB",
            help: "Maximum bytes of items that a node of a cluster sends to others in a second",
            more: "At a higher rate, slots move sooner, and clients of both nodes wait longer. \
                   Keys that clients change during a move are sent without this limit.",
        }

        cluster_join: &'static str = Choice(&[
            ("auto", "the node takes its share of the slots at once"),
            ("manual", "the node waits, without slots, until `nuthatch cluster join`"),
        ]) {
            value_name: "WHEN",
            default: "auto",
            help: "When a node of a cluster takes slots",
        }
    }

    "Snapshots" {
        snapshot: Vec<NamedPath> = NamedPaths {
            value_name: "NAME=PATH",
            help: "Serve the keys of a snapshot, read-only, as NAME:KEY; can be repeated",
            more: "PATH is a snapshot, the manifest of a set, or a symbolic link such as `nuthatch \
                   follow` keeps. All its bytes are read and verified before it serves. When \
                   another file replaces it, the new one serves; one that is damaged or too large \
                   is logged, and the one before still serves. Clients of all protocols read these \
                   keys; requests that would write to them fail. See docs/serving-snapshots.md.",
        }

        snapshot_prefix: Vec<String> = Texts {
            value_name: "[NAME=]PREFIX",
            help: "Prefix of the keys of a snapshot, instead of `NAME:`; can be repeated",
            more: "NAME= can be left out if there is one snapshot. If several prefixes match a \
                   key, the longest one counts. Items of the cache whose keys begin with a prefix \
                   cannot be reached.",
        }

        snapshot_oversize: &'static str = Choice(&[
            ("refuse", "do not start; a new generation that does not fit is rejected"),
            ("allow", "read it from the disk: requests of all clients may wait for it"),
        ]) {
            value_name: "POLICY",
            default: "refuse",
            help: "What to do with a snapshot that does not fit in memory beside --memory",
            more: "A new generation must fit beside the one that it replaces, which requests read \
                   until the new one is complete.",
        }
    }

    "Clients" {
        max_clients: u64 = Count(1, u32::MAX as u64) {
            value_name: "N",
            default: "10000",
            help: "Maximum number of connections; more are refused with an error",
            more: "The server raises its limit of open files to the hard limit. If that is too \
                   low, it allows fewer connections and logs a warning with both numbers.",
            config_name: Changeable("maxclients"),
        }

        timeout: Option<Duration> = Duration(SECONDS, i32::MAX as u64) {
            value_name: "TIME",
            default: "off",
            help: "Close connections that send nothing for this long, such as 300s or 5min; or off",
            more: "A client that waits for a reply stays connected.",
            config_name: Changeable("timeout"),
        }

        tcp_keepalive: Option<Duration> = Duration(SECONDS, 32_767) {
            value_name: "TIME",
            default: "5min",
            help: "Probe connections that are idle for this long, and close dead ones; or off",
            more: "A connection is dead if three probes within another period of this length are \
                   not answered. A change applies to connections accepted later.",
            config_name: Changeable("tcp-keepalive"),
        }

        client_output_hard_limit: u64 = Size(0, MAX_SIZE) {
            value_name: "SIZE",
            default: "0",
            help: "Close a client whose unsent replies exceed this size; 0: no limit",
            more: "What the kernel does not accept at once of a reply counts, however fast the \
                   client reads. So a limit below the length of a value can close clients that \
                   read this value: set it above the longest value. Clients that do not read their \
                   replies are also closed, whatever this limit is, when a write needs the memory.",
            config_name: Changeable("client-output-hard-limit"),
        }

        client_output_soft_limit: u64 = Size(0, MAX_SIZE) {
            value_name: "SIZE",
            default: "0",
            help: "Close a client whose unsent replies exceed this for client-output-soft-time; 0: \
                   no limit",
            config_name: Changeable("client-output-soft-limit"),
        }

        client_output_soft_time: Option<Duration> = Duration(SECONDS, i32::MAX as u64) {
            value_name: "TIME",
            default: "1min",
            help: "How long a client may exceed client-output-soft-limit before it is closed",
            more: "off is the same as 0s: it is closed at once.",
            config_name: Changeable("client-output-soft-seconds"),
        }

        drain_ms: u64 = Count(0, 86_400_000) {
            value_name: "MS",
            default: "10000",
            help: "Milliseconds that requests in progress have to finish after SIGTERM or SIGINT",
            more: "A second signal ends the server at once.",
        }

        max_value: u64 = Size(1 << 20, MAX_SIZE) {
            value_name: "SIZE",
            default: "512MiB",
            help: "Maximum length of a value that a client may send; at least 1MiB",
            more: "The memory may allow less: a value can have at most 5/8 of it.",
            config_name: Changeable("proto-max-bulk-len"),
        }
    }

    "Store" {
        store: Option<PathBuf> = Path {
            value_name: "DIR",
            help: "The folder of a store to serve over gRPC, as `nuthatch store serve` does",
            more: "Other processes may use the folder at the same time.",
        }

        grpc: Vec<ListenAddress> = Addresses {
            value_name: "ADDR",
            default: DEFAULT_GRPC,
            help: "Address for gRPC clients of the store: host:port; can be repeated",
            more: "`tls:` before host:port enables TLS: for all of these addresses or for none.",
        }

        store_create: bool = Bool {
            value_name: "BOOL",
            default: "false",
            help: "Create the store if it does not exist",
        }

        store_allow_network_filesystem: bool = Bool {
            value_name: "BOOL",
            default: "false",
            help: "Open the store on a network filesystem; safe only if a single machine uses it",
            more: "Machines do not share the memory maps of a store, so a store that two machines \
                   write to is damaged without an error. Without it such a folder is refused.",
        }

        store_durability: &'static str = Choice(&[
            ("sync", "the disk: no acknowledged write is lost"),
            (
                "group",
                "the disk; a power failure may lose the last commit even if it was acknowledged",
            ),
            ("none", "nothing: a crash of the machine may lose or damage what was written"),
        ]) {
            value_name: "LEVEL",
            default: "sync",
            help: "What a write to the store waits for before it is acknowledged",
        }

        store_keep_changes: u64 = Count(0, u32::MAX as u64) {
            value_name: "N",
            default: "0",
            help: "Maximum number of changes to keep for watches, in at most 4 KiB x N bytes (the \
                   newest is kept even if it alone takes more); 0 leaves the store's limits \
                   unchanged",
        }

        store_memory: u64 = Size(StoreOptions::MIN_MEMORY, MAX_SIZE) {
            value_name: "SIZE",
            default: "256MiB",
            help: "Memory limit for requests to the store and their responses, in addition to \
                   --memory; at least 1MiB",
        }

        store_tokens: Option<PathBuf> = Path {
            value_name: "FILE",
            help: "A file with the tokens that clients of the store must present",
            more: "Its lines are \"token NAME read|write SECRET\"; see `nuthatch store serve \
                   --help`.",
        }
    }

    "Access" {
        password: Option<Secret> = Secret {
            value_name: "TEXT",
            help: "The password that clients need; in the file or the environment only",
            more: "There is no flag, since all users of a machine can read command lines. See \
                   --password-file. A settings file with a password should be readable by its \
                   owner only.",
            config_name: Changeable("requirepass"),
        }

        password_file: Option<PathBuf> = Path {
            value_name: "FILE",
            help: "A file whose only line is the password that clients need",
            reloads: true,
        }

        users: Option<PathBuf> = Path {
            value_name: "FILE",
            help: "A file of users, their passwords, commands and keys, as `user` lines of Redis's \
                   ACL",
            more: "A client that has not logged in is the user `default`; `user default off` makes \
                   clients log in. Cannot be combined with `password` or --password-file.",
            config_name: ReadOnly("aclfile"),
            reloads: true,
        }

        insecure: bool = Bool {
            value_name: "BOOL",
            default: "false",
            help: "Allow addresses that other machines can reach without TLS or a login",
            more: "Without it such an address is refused, unless clients must log in or, with \
                   --tls-client-ca, present a certificate. It also allows a password for an etcd \
                   on another machine without TLS.",
        }

        admin_insecure: bool = Bool {
            value_name: "BOOL",
            default: "false",
            help: "Allow admin addresses that other machines can reach",
            more: "The admin endpoint has no login and no TLS, but it changes nothing. Unlike \
                   --insecure, this allows no address for clients.",
        }

        enable_debug_command: &'static str = Choice(&[
            ("no", "no client"),
            ("local", "clients on this machine"),
            ("yes", "all clients"),
        ]) {
            value_name: "WHO",
            default: "no",
            help: "Clients that may use DEBUG, which can stall and inspect a server; for tests",
            more: "DEBUG SLEEP blocks a worker thread and all of its connections.",
            config_name: ReadOnly("enable-debug-command"),
        }

        tls_cert: Option<PathBuf> = Path {
            value_name: "FILE",
            help: "The server's certificate and its chain in PEM, for addresses with tls:",
            config_name: ReadOnly("tls-cert-file"),
            reloads: true,
        }

        tls_key: Option<PathBuf> = Path {
            value_name: "FILE",
            help: "The private key of that certificate, in PEM",
            config_name: ReadOnly("tls-key-file"),
            reloads: true,
        }

        tls_client_ca: Option<PathBuf> = Path {
            value_name: "FILE",
            help: "CA certificates in PEM; TLS clients must then present a certificate issued by \
                   one of them",
            config_name: ReadOnly("tls-ca-cert-file"),
            reloads: true,
        }
    }

    "Watching" {
        slow_log_threshold: Option<Duration> = Duration(MICROSECONDS, u64::MAX) {
            value_name: "TIME",
            default: "10ms",
            help: "Commands that take longer go to the slow log; 0s logs all of them, off none",
            config_name: Changeable("slowlog-log-slower-than"),
        }

        slow_log_length: u64 = Count(0, i64::MAX as u64) {
            value_name: "N",
            default: "128",
            help: "Maximum number of commands in the slow log",
            config_name: Changeable("slowlog-max-len"),
        }

        latency_tracking: bool = Bool {
            value_name: "BOOL",
            default: "true",
            help: "Measure how long commands take, for LATENCY HISTOGRAM and INFO latencystats",
            config_name: Changeable("latency-tracking"),
        }

        log: String = Text(logs::check_filter) {
            value_name: "FILTER",
            default: "warn",
            help: "What is logged to stderr: a level, or levels by target",
            more: "Levels are off, error, warn, info, debug and trace. A filter such as \
                   warn,nuthatch::users=off sets the level of a target.",
            reloads: true,
        }

        log_format: &'static str = Choice(&[
            ("text", "readable text"),
            ("json", "one JSON object per line"),
        ]) {
            value_name: "FORMAT",
            default: "text",
            help: "Format of log lines",
        }

        otlp: String = Text(logs::check_otlp) {
            value_name: "URL",
            default: logs::OTLP_AUTO,
            help: logs::OTLP_HELP,
            more: logs::OTLP_DETAILS,
        }
    }
}
