//! The manual page of `nuthatch serve`.

pub(crate) const NOTES: &str = "\
Settings:
  Each flag that has a value is also a key of the file that --config names, and an environment
  variable: --max-clients 5, max-clients = 5, NUTHATCH_MAX_CLIENTS=5. The command line overrides
  the environment, the environment overrides the file, and the file overrides the defaults. In the
  environment, commas separate the items of a list. NUTHATCH_PASSWORD, or `password` in the file, is
  the password that clients need; NUTHATCH_ETCD_PASSWORD is that of --etcd-user. --show-config
  checks the settings and prints all of them with the source of each value, as a valid settings
  file; it prints no password and opens none of the files that the settings name. The server reads a
  settings file only if --config or NUTHATCH_CONFIG names it: it does not look for a nuthatch.toml
  in the working directory. Redis clients read and change some settings with CONFIG GET and CONFIG
  SET.

Examples:
  nuthatch serve                    Redis at 6379, memcached at 11211, 1 GiB, all cores
  nuthatch serve --memory 16GiB --threads 4
  nuthatch serve --resp 127.0.0.1:7000 --resp unix:/run/nuthatch/resp.sock
  nuthatch serve --resp 0.0.0.0:6379 --password-file /etc/nuthatch/password
  nuthatch serve --data-dir /var/lib/nuthatch --warm-restart=true
  nuthatch serve --data-dir /var/lib/nuthatch --disk 100GiB
  nuthatch serve --compress zstd    values take less memory, with trained dictionaries
  nuthatch serve --show-config >nuthatch.toml; nuthatch serve --config nuthatch.toml
  nuthatch serve --snapshot users=/srv/users.nut      also its keys, as users:KEY, read-only
  redis-cli set greeting hello      any Redis or memcached client works
  nuthatch serve --store users      the cache, and the store in folder users at 7380
  curl http://127.0.0.1:9464/metrics      metrics for Prometheus
  nuthatch top                      the same, live

SIGTERM or SIGINT (Ctrl-C) stops the server: it accepts no more connections, /healthz returns 503,
and requests in progress have --drain-ms to finish. A second signal stops it at once. SIGHUP reloads
certificates, users, passwords, tokens of the store, the log filter, the settings that CONFIG SET
can change and, for a node of a cluster, its certificates and login for etcd. If one file is
invalid, nothing changes, and the log says why. A reload closes a connection if its user was removed
or disabled, has lost rights, or now needs a password, or if --tls-client-ca no longer verifies its
certificate.

The cache is in memory and is lost when the server stops, unless --warm-restart or --disk keeps it,
in the folder `items` of --data-dir. With --warm-restart, the server writes all items to a dump when
it stops, and restores them at the next start. With --disk, items that do not fit in memory are on
disk, the others are written to disk when the server stops, and the next server recovers all of
them; after a crash of the process, it recovers those that were on disk. `nuthatch tier` looks into
the folder. A store keeps its data in its folder.

Exit status:
  0  a signal stopped the server
  2  invalid command line or environment, or settings contradict each other
  3  any other error, for example: a file is invalid, or a setting in the settings file is; an
     address is in use
  101  a thread panicked, which is a bug: restart the server";
