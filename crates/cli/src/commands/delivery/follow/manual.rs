//! The manual page of `nuthatch follow`.

pub(super) const ABOUT: &str = "\
Keep a folder at the current generation of a folder or an object store

Looks for a new manifest at SRC, fetches the files of its current generation, verifies them, and \
swaps them in: DIR/NAME is a symbolic link, which a rename replaces. Programs open DIR/NAME and \
watch it. NAME is that of the snapshot, such as users.nut.";

pub(super) const NOTES: &str = "\
After any failure (SRC is unreachable, the disk is full, the manifest has no trusted signature, a
file has wrong bytes), the folder keeps its generation, and the follower tries again: after the time
of --interval, then after twice that, up to 16 times. It continues with what it has fetched, also
after kill -9; if the disk is full, it removes that. A follower that is killed at any moment leaves
a complete generation.

Files that the generation in DIR has are verified by their hash and not fetched again, so of a set
only the changed shards are fetched.
If SRC has deltas that lead from a file in DIR to a new one, only they are fetched, and the new file
is built from both: of files up to --delta-limit, with --delta-threads threads of the lowest
priority and --delta-memory. If a delta is missing or damaged, or the result has another hash than
the manifest says, the whole file is fetched.
A manifest with a lower serial number than that of the generation in DIR is refused: it comes from
an old copy of SRC. Files of the follower are in DIR/.nuthatch; one follower at a time uses a
folder.

Metrics at --admin (Prometheus text):
  nuthatch_follow_generation               number of the generation in DIR
  nuthatch_follow_age_seconds              time since its publication
  nuthatch_follow_check_age_seconds        time since the last successful check, fetch included
  nuthatch_follow_swaps_total              generations that were swapped in
  nuthatch_follow_fetched_bytes_total      bytes fetched for completed swaps
  nuthatch_follow_built_files_total        files that were built from deltas
  nuthatch_follow_delta_failures_total     files that were fetched because their delta could not be
                                           used; the log has the reason
  nuthatch_follow_remaining_bytes          bytes left to fetch
  nuthatch_follow_failures_total           failed checks by cause: contents (wrong bytes), io
                                           (disk), manifest, nothing-published, older-manifest,
                                           signature, snapshot, store (SRC)
/healthz returns 503 while DIR has no generation, and with --max-age while it is too old.

SIGTERM or SIGINT ends the follower; what it fetches is continued at the next start.

Examples:
  nuthatch follow s3://bucket/users /srv/users --admin 127.0.0.1:9466 --max-age 2h
  nuthatch follow /mnt/shared/users /srv/users --once
  nuthatch follow s3://bucket/users /srv/users --trust-key trust.pem --bandwidth 50MiB
  nuthatch follow s3://bucket/users /srv/users --on-swap 'systemctl reload shop'

Exit status:
  0  SIGTERM or SIGINT ended it, or with --once: DIR has the current generation
  2  invalid command line
  3  any other error, for example: another follower uses DIR, or with --once: the check failed, or
     the command of --on-swap did
  101  a thread panicked, which is a bug: start the follower again";
