//! The manual page of `nuthatch follow`.

pub(super) const ABOUT: &str = "\
Keep folders at the current generations of folders or object stores

Looks for a new manifest at SRC, fetches the files of its current generation, verifies them, and \
swaps them in: DIR/NAME is a symbolic link, which a rename replaces. Programs open DIR/NAME and \
watch it. NAME is that of the snapshot, such as users.nut. With --config, one process follows any \
number of snapshots.";

pub(super) const NOTES: &str = "\
After any failure (SRC is unreachable, the disk is full, the manifest has no trusted signature, a
file has wrong bytes), the folder keeps its generation, and the follower tries again: after the time
of --interval, then after a delay that doubles with each failure, up to 16 times the interval. It
continues with what it has fetched, also after kill -9; if the disk is full, it removes that.
A follower that is killed at any moment leaves a complete generation.

Files that the generation in DIR has are verified by their hash and not fetched again, so of a set
only the changed shards are fetched.
If deltas lead from a file in DIR to the new one, only they are fetched, and the new file is built:
with up to 16 deltas that together take at most half of its length, for files up to --delta-limit,
with --delta-threads threads of the lowest priority and --delta-memory. If a delta is missing or
damaged, or the result has another hash than the manifest says, the whole file is fetched.
A manifest with a lower serial number than that of the generation in DIR is refused: it comes from
an old copy of SRC. Files of the follower are in DIR/.nuthatch; one follower at a time uses a
folder.

The file of --config has a table for each snapshot; other options hold for all of them:
  [[snapshot]]
  source = \"s3://bucket/users\"         # SRC
  folder = \"/srv/users\"                # DIR
  group = \"shop\"                       # the rest is optional
  max_age = \"2h\"                       # instead of --max-age
  on_swap = \"systemctl reload shop\"    # instead of --on-swap
  trust_key = [\"trust.pem\"]            # instead of --trust-key
Snapshots of a group are swapped together: when the new generations of all of them are complete, the
links are replaced directly one after the other. If one cannot be completed, none is swapped; if a
link cannot be replaced, those that were are restored.
  [group.shop]
  same_metadata = \"batch\"              # optional
With same_metadata, generations are swapped in only if this metadata has the same value in all of
them: set it with \"nuthatch build --meta batch=N\". Paths are relative to the folder of the file.
--bandwidth is the limit of all snapshots together.

Metrics at --admin (Prometheus text), with DIR as the label \"folder\":
  nuthatch_follow_generation               number of the generation in DIR
  nuthatch_follow_age_seconds              time since its publication
  nuthatch_follow_check_age_seconds        time since the last successful check, fetch included, or
                                           since the start until there is one
  nuthatch_follow_waiting                  1 while a complete generation waits for others of its
                                           group; the log has the reason
  nuthatch_follow_healthy                  1 while /healthz has no problem with the folder
  nuthatch_follow_swaps_total              generations that were swapped in
  nuthatch_follow_fetched_bytes_total      bytes fetched for completed swaps
  nuthatch_follow_built_files_total        files that were built from deltas
  nuthatch_follow_delta_failures_total     files that were fetched because their delta could not be
                                           used; the log has the reason
  nuthatch_follow_remaining_bytes          bytes left to fetch
  nuthatch_follow_failures_total           failed checks by cause: contents (wrong bytes, or
                                           another file at DIR/NAME), io (disk), manifest (invalid),
                                           nothing-published (no manifest at SRC), older-manifest,
                                           signature, snapshot (invalid), store (SRC)
/healthz returns 503 while a folder has no generation, or lacks its link or a file, and with
--max-age while a generation is too old.

SIGTERM or SIGINT ends the follower; what it fetches is continued at the next start. SIGHUP reads
the file of --admin-token-file again; that of --config is read at the start only. If the command of
--on-swap fails, the log has a warning, and it is not run again until the next swap; in a group it
runs for each snapshot. It also runs at the start for a swap whose command the last follower had not
started when it ended or was killed; if it was killed directly after the start, it runs again.

Examples:
  nuthatch follow s3://bucket/users /srv/users --admin 127.0.0.1:9466 --max-age 2h
  nuthatch follow /mnt/shared/users /srv/users --once
  nuthatch follow s3://bucket/users /srv/users --trust-key trust.pem --bandwidth 50MiB
  nuthatch follow s3://bucket/users /srv/users --on-swap 'systemctl reload shop'
  nuthatch follow --config /etc/nuthatch/follow.toml --admin 127.0.0.1:9466

Exit status:
  0  SIGTERM or SIGINT ended it, or with --once: each folder has the current generation
  2  invalid command line
  3  any other error, for example: another follower uses DIR, or with --once: the check failed, or
     the command of --on-swap did, or a signal ended it
  101  a thread panicked, which is a bug: start the follower again";
