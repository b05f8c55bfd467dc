//! The manual page of `nuthatch serve`.

pub(crate) const NOTES: &str = "\
Settings:
  Each flag that has a value is also a key of the file that --config names, and an environment
  variable: --max-clients 5, max-clients = 5, NUTHATCH_MAX_CLIENTS=5. The command line wins over
  the environment, that over the file, and the file over the defaults. Lists have commas in the
  environment. NUTHATCH_PASSWORD, or `password` in the file, is the password that clients need.
  --show-config prints all of it, with where each value is from: a file to begin with.
  No file is read unless it is named: not nuthatch.toml in this folder either.
  CONFIG GET and SET, of clients of Redis, show and change some while the server runs.

Examples:
  nuthatch serve                    Redis at 6379, memcached at 11211, 1 GiB, all cores
  nuthatch serve --memory 16GiB --threads 4
  nuthatch serve --resp 127.0.0.1:7000 --resp unix:/run/nuthatch/resp.sock
  nuthatch serve --resp 0.0.0.0:6379 --password-file /etc/nuthatch/password
  nuthatch serve --show-config >nuthatch.toml; nuthatch serve --config nuthatch.toml
  redis-cli set greeting hello      any client of Redis or memcached will do
  nuthatch serve --store users      the cache, and the store in that folder at 7380
  curl http://127.0.0.1:9464/metrics      what it counts, for Prometheus
  nuthatch top                      the same, live

SIGTERM or SIGINT (Ctrl-C) ends the server: it accepts no more connections, /healthz is 503, and
requests under way have --drain-ms to finish. A second signal ends it at once. SIGHUP reads
certificates, users, passwords, tokens of the store, the log filter and the settings that CONFIG SET
changes again. If one file is wrong, nothing changes, and the log says why. Only connections of
users who were removed or may do less are closed.

What the cache holds is in memory, and goes with the server; what a store holds stays in its
folder.

Exit status:
  0  it was asked to stop, and did
  2  the command line or the environment is wrong, or settings contradict each other
  3  anything else: a file is not what it should be, or an address is taken
  101  a thread panicked, which is a bug: it is to be restarted";
