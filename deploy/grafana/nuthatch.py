#!/usr/bin/env python3
"""Prints the Grafana dashboard of Nuthatch as JSON.

    deploy/grafana/nuthatch.py > deploy/grafana/nuthatch.json

Edit this program, not the JSON: `scripts/dashboards` checks that they agree, and that every metric
and label exists. In a query, `$S` stands for the selected job and instance.
"""

import json

from panels import Panel, quantile, rate, stacked, stat

SELECTED = 'job=~"$job", instance=~"$instance"'
# The grid of Grafana has 24 columns.
COLUMNS = 24
# The version of the dashboard's format that Grafana 12 writes. Older versions of Grafana read it.
SCHEMA_VERSION = 41

OVERVIEW = [
    stat("Servers down", "short", 'count(up{$S} == 0) or vector(0)',
         "Above 0: Prometheus cannot reach an admin endpoint. Run `nuthatch ping ADDR` there, and "
         "read the log.", 1, 1),
    stat("Alerts", "short",
         'count(ALERTS{alertname=~"Nuthatch.*", alertstate="firing"}) or vector(0)',
         "Above 0: open the alerts of Prometheus. Each one names a section of "
         "docs/what-to-do-when.md.", 1, 1),
    stat("Requests", "reqps", f"sum({rate('nuthatch_commands_total')}) or vector(0)",
         "Requests of clients of the cache. If it falls to 0, look at the clients and at "
         "Connections."),
    stat("Hit ratio", "percentunit",
         f"sum({rate('nuthatch_hits_total')}) / (sum({rate('nuthatch_hits_total')}) + "
         f"sum({rate('nuthatch_misses_total')}))",
         "The share of lookups that found an item. Compare it with yesterday. If it fell, the "
         "panel Lookups shows which misses grew."),
    stat("Memory used", "percentunit",
         "max(sum without (kind) (nuthatch_memory_bytes{$S}) / nuthatch_memory_limit_bytes{$S})",
         "Near 100 % is normal for a cache: it evicts. It is bad with misses of the cause evicted, "
         "or with errors OOM: raise the setting memory."),
    stat("Slowest percent", "s",
         f"max({quantile(0.99, 'nuthatch_event_loop_lag_seconds', 'instance')})",
         "The 99th percentile of the iterations of the event loop, of the slowest server: how long "
         "clients may wait. See Longest commands.", 0.01, 0.1),
]

CACHE = [
    Panel("Requests by command", "reqps",
          {"{{command}}": f"sum by (command) ({rate('nuthatch_commands_total')})"},
          "A command that should not be here, such as KEYS or FLUSHALL, comes from a client: "
          "`redis-cli client list` shows it."),
    Panel("Lookups", "ops",
          {"hits": f"sum({rate('nuthatch_hits_total')})",
           "misses: {{cause}}": f"sum by (cause) ({rate('nuthatch_misses_total')})"},
          "Misses `evicted`: more memory would make them hits. `expired`: the time to live is "
          "short. `absent`: clients ask for keys that were not stored."),
    Panel("Hit ratio", "percentunit", {"{{instance}}": "nuthatch:hit_ratio:rate5m{$S}"},
          "If it fell at once, look for a restart, a FLUSHALL or a new release of a client. If it "
          "falls slowly, the data outgrow the memory."),
    Panel("99th percentile by command", "s",
          {"{{command}}": quantile(0.99, "nuthatch_command_duration_seconds", "command")},
          "Time of execution, without the network. If one command is slow, `redis-cli slowlog get` "
          "shows its arguments."),
    Panel("Longest commands", "s",
          {"{{command}}": quantile(1, "nuthatch_command_duration_seconds", "command")},
          "A command of more than 10 ms delays all clients of its thread. KEYS, LCS and long "
          "values do that: use SCAN and smaller values."),
    Panel("Slow requests", "reqps",
          {"{{instance}}": f"sum by (instance) ({rate('nuthatch_slow_requests_total')})",
           "{{instance}} in the slow log": "nuthatch_slowlog_entries{$S}"},
          "Requests longer than slow-log-threshold. `redis-cli slowlog get` shows them."),
    Panel("Failed requests", "reqps",
          {"failed: {{command}}": f"sum by (command) ({rate('nuthatch_commands_failed_total')})",
           "rejected: {{command}}":
               f"sum by (command) ({rate('nuthatch_commands_rejected_total')})"},
          "The panel Errors has the reasons."),
    Panel("Errors", "ops", {"{{code}}": f"sum by (code) ({rate('nuthatch_errors_total')})"},
          "OOM: no memory for a write. NOAUTH, NOPERM: a client without login or rights. READONLY: "
          "a write to a key of a snapshot."),
    stacked("Memory by kind", "bytes",
            {"{{kind}}": "sum by (kind) (nuthatch_memory_bytes{$S})",
             "limit": "sum(nuthatch_memory_limit_bytes{$S})"},
            "If `connections` is large, clients do not read their replies. If `index` is most of "
            "it, too many items are on disk for this memory."),
    Panel("Items", "short", {"{{instance}}": "nuthatch_items{$S}"},
          "A fall to 0 is a restart without warm restart, or a FLUSHALL."),
    Panel("Items stored and removed", "ops",
          {"stored": f"sum({rate('nuthatch_items_stored_total')})",
           "removed by commands": f"sum({rate('nuthatch_items_removed_total')})",
           "expired": f"sum({rate('nuthatch_items_expired_total')})",
           "evicted": f"sum({rate('nuthatch_items_evicted_total')})"},
          "Evicted items are normal in a cache. If as many are evicted as stored, and misses of "
          "the cause evicted grow, raise the memory."),
    Panel("Reclamation", "Bps",
          {"moved": f"sum({rate('nuthatch_moved_bytes_total')})",
           "waits of writes": f"sum({rate('nuthatch_guard_waits_total')})"},
          "Bytes that reclamation copies in memory. Waits above 0: writes find no free memory; "
          "raise the memory.",
          counts=("waits of writes",)),
    Panel("Threads", "percentunit",
          {"{{instance}} {{thread}}": rate("nuthatch_event_loop_lag_seconds_sum")},
          "The share of time that a thread works. Near 100 % it is saturated: raise `threads` up "
          "to the number of cores, or spread the connections."),
    Panel("Iterations of the event loop", "s",
          {"{{instance}} 99th percentile":
               quantile(0.99, "nuthatch_event_loop_lag_seconds", "instance"),
           "{{instance}} longest": quantile(1, "nuthatch_event_loop_lag_seconds", "instance")},
          "The longest delay that a thread causes for its clients. Peaks are long commands."),
    Panel("Connections", "short",
          {"{{instance}}": "nuthatch_connections{$S}",
           "{{instance}} limit": "nuthatch_connections_limit{$S}"},
          "At the limit, clients are refused: raise max-clients, or use pools in the clients."),
    Panel("Connections opened and closed", "ops",
          {"accepted": f"sum({rate('nuthatch_connections_accepted_total')})",
           "refused": f"sum({rate('nuthatch_connections_refused_total')})",
           "killed": f"sum({rate('nuthatch_connections_killed_total')})",
           "closed for their output": f"sum({rate('nuthatch_connections_output_closed_total')})",
           "HTTP": f"sum({rate('nuthatch_http_requests_refused_total')})"},
          "Many accepted: clients connect for each request; use a pool. Refused: max-clients. "
          "Closed for their output: clients that do not read their replies."),
    Panel("Traffic", "Bps",
          {"received": f"sum({rate('nuthatch_received_bytes_total')})",
           "sent": f"sum({rate('nuthatch_sent_bytes_total')})",
           "paused clients": f"sum({rate('nuthatch_output_limit_hits_total')})"},
          "Compare it with the speed of the network card. Paused clients read their replies more "
          "slowly than they send requests.",
          counts=("paused clients",)),
    Panel("Compression ratio", "short",
          {"all": f"sum({rate('nuthatch_compression_raw_bytes_total')}) / "
                  f"sum({rate('nuthatch_compression_stored_bytes_total')})",
           "dictionary {{dictionary}}": "nuthatch_compression_ratio{$S}"},
          "How many times shorter values become. Near 1, compression costs time and saves "
          "nothing: set `compress` to off."),
    Panel("Compressed values", "ops",
          {"dictionary {{dictionary}}":
               f"sum by (dictionary) ({rate('nuthatch_compression_values_total')})",
           "stored as they came":
               f"sum({rate('nuthatch_compression_incompressible_values_total')})"},
          "If most values are stored as they came, they are compressed already: set `compress` to "
          "off."),
    Panel("Dictionaries", "bytes",
          {"{{dictionary}}": "sum by (dictionary) (nuthatch_compression_dictionary_bytes{$S})",
           "lost": "sum(nuthatch_compression_dictionaries_lost{$S})",
           "refused": f"sum({rate('nuthatch_compression_dictionaries_refused_total')})"},
          "Lost above 0: the folder `dictionaries` of data-dir was damaged or removed; restore it "
          "together with `items`.",
          counts=("lost", "refused",)),
    Panel("Restored items", "short",
          {"{{instance}} in the dump": "nuthatch_restore_items{$S}",
           "{{instance}} restored": "nuthatch_items_restored_total{$S}",
           "{{instance}} not restored": "nuthatch_items_not_restored_total{$S}",
           "{{instance}} running": "nuthatch_restore_running{$S}"},
          "The warm restart after the last start. No items in the dump: the last run did not end "
          "by SIGTERM, or had no time to write (dump-ms, TimeoutStopSec)."),
]

DISK = [
    Panel("Disk", "bytes",
          {"{{instance}}": "nuthatch_disk_bytes{$S}",
           "{{instance}} limit": "nuthatch_disk_limit_bytes{$S}"},
          "At the limit, the oldest items are removed. Raise `disk` if Items lost on disk shows "
          "that many are removed."),
    Panel("Items on disk", "short",
          {"{{instance}}": "nuthatch_disk_items{$S}",
           "{{instance}} files": "nuthatch_disk_files{$S}"},
          "Each takes 8.5 to 10 bytes of memory in the index."),
    Panel("Reads", "iops",
          {"hits": f"sum({rate('nuthatch_disk_hits_total')})",
           "reads": f"sum({rate('nuthatch_disk_reads_total')})",
           "of another key": f"sum({rate('nuthatch_disk_false_matches_total')})",
           "queued": "sum(nuthatch_disk_queued_reads{$S})"},
          "If queued reads stay high, the disk is too slow for the requests: more memory, or a "
          "faster disk."),
    Panel("Bytes", "Bps",
          {"read": f"sum({rate('nuthatch_disk_read_bytes_total')})",
           "written": f"sum({rate('nuthatch_disk_written_bytes_total')})"},
          "Compare it with what the disk can do (`iostat -x`)."),
    Panel("Items that leave memory", "ops",
          {"written": f"sum({rate('nuthatch_disk_written_items_total')})",
           "unchanged on disk": f"sum({rate('nuthatch_disk_unchanged_items_total')})",
           "dropped": f"sum({rate('nuthatch_disk_dropped_items_total')})"},
          "Dropped items are lost: the disk is too slow, it failed, or the items are too long. "
          "Set `disk-full` to wait to slow down the writers instead."),
    Panel("Items lost on disk", "ops",
          {"removed for space": f"sum({rate('nuthatch_disk_removed_items_total')})",
           "damaged": f"sum({rate('nuthatch_disk_bad_records_total')})",
           "without their dictionary": f"sum({rate('nuthatch_disk_undecodable_records_total')})",
           "lost at the start": "sum(nuthatch_disk_lost_items{$S})"},
          "Removed for space is normal at the limit. Damaged above 0: check the disk "
          "(`dmesg`, `smartctl`)."),
    Panel("Recovery after a start", "short",
          {"{{instance}} records": "nuthatch_disk_records_to_recover{$S}",
           "{{instance}} recovered": "nuthatch_disk_recovered_items_total{$S}",
           "{{instance}} running": "nuthatch_disk_recovering{$S}"},
          "Until an item is recovered, its key is missing. 10 million items take about ten "
          "seconds."),
    stat("Disk tier off", "short", "max(nuthatch_disk_off{$S})",
         "1: a write failed, and nothing is written any more. The log has the error. Repair the "
         "disk, then restart the server: it keeps what was on disk.", 1, 1),
]

CLUSTER = [
    stat("Nodes without a lease", "short",
         "count(nuthatch_cluster_permitted{$S} == 0) or vector(0)",
         "Above 0: a node cannot renew its lease, and answers CLUSTERDOWN. Check etcd and the "
         "network to it.", 1, 1),
    stat("Nodes that serve without a lease", "short",
         "count(nuthatch_cluster_serves_without_lease{$S} == 1) or vector(0)",
         "Above 0 with etcd-away serve: the node cannot reach etcd, and other nodes may serve its "
         "slots, too.", 1, 1),
    stat("Slots without an owner", "short", "16384 - min(nuthatch_cluster_slots_covered{$S})",
         "Above 0: requests for these slots fail, or a node without a lease knows an old state. "
         "`nuthatch cluster status` names the problem.", 1, 1),
    Panel("Nodes", "short", {"known to {{instance}}": "nuthatch_cluster_nodes{$S}"},
          "Lower than the number of servers: some have no lease, or do not see changes of etcd."),
    Panel("Slots by node", "short",
          {"{{instance}} owned": "nuthatch_cluster_slots_owned{$S}",
           "{{instance}} served": "nuthatch_cluster_slots_served{$S}"},
          "In proportion to the memory. Served below owned: the node drops items, or slots move."),
    Panel("Time until permits end", "s", {"{{instance}}": "nuthatch_cluster_permit_seconds{$S}"},
          "4 to 7 seconds are normal. At 0 the node has no lease: etcd responds late or never."),
    Panel("Lost leases and dropped items", "ops",
          {"{{instance}} leases": rate("nuthatch_cluster_leases_lost_total"),
           "{{instance}} items": rate("nuthatch_cluster_dropped_items_total")},
          "A node was stopped or forgotten, or could not reach etcd for longer than its lease."),
    Panel("Items that move", "Bps",
          {"{{instance}} sent": rate("nuthatch_cluster_sent_bytes_total"),
           "{{instance}} received": rate("nuthatch_cluster_received_bytes_total")},
          "Slots move with their items when nodes join or drain, at `cluster-move-rate` at most."),
    Panel("Moves of slots", "short",
          {"{{instance}} slots now": "nuthatch_cluster_slots_moving{$S}",
           "{{instance}} finished": rate("nuthatch_cluster_moves_finished_total"),
           "{{instance}} failed": rate("nuthatch_cluster_moves_failed_total")},
          "Failed moves are tried again; the log of the node has the reason."),
    Panel("Items of moves", "ops",
          {"{{instance}} sent": rate("nuthatch_cluster_sent_items_total"),
           "{{instance}} received": rate("nuthatch_cluster_received_items_total"),
           "{{instance}} left out": rate("nuthatch_cluster_left_out_items_total")},
          "Left out: too long for the other node, or without a valid value."),
    Panel("Refused by the cluster", "reqps",
          {"{{kind}}": f"sum by (kind) ({rate('nuthatch_cluster_refused_requests_total')})"},
          "moved: clients do not know the owner; normal while slots move. crossslot: a request "
          "with keys of several slots. clusterdown: no lease, or no owner."),
    Panel("Forwarded requests", "reqps",
          {"{{instance}}": rate("nuthatch_cluster_forwarded_requests_total"),
           "{{instance}} failed": rate("nuthatch_cluster_forwards_failed_total")},
          "Clients of Redis Cluster would send them to the owners. Failed: the log of the node has "
          "the reason."),
]

SNAPSHOTS = [
    Panel("Lookups in snapshots", "ops",
          {"{{snapshot}} hits": f"sum by (snapshot) ({rate('nuthatch_snapshot_hits_total')})",
           "{{snapshot}} misses":
               f"sum by (snapshot) ({rate('nuthatch_snapshot_misses_total')})"},
          "If misses grew with a new generation, it lacks keys: `nuthatch diff` shows which."),
    Panel("Hit ratio of snapshots", "percentunit",
          {"{{instance}} {{snapshot}}": "nuthatch:snapshot_hit_ratio:rate5m{$S}"},
          "It should not change with a generation. If it fell: `nuthatch generations DEST "
          "--rollback N`."),
    Panel("Entries and size", "bytes",
          {"{{instance}} {{snapshot}} entries": "nuthatch_snapshot_entries{$S}",
           "{{instance}} {{snapshot}} bytes": "nuthatch_snapshot_bytes{$S}"},
          "A jump comes from the source of the data. The gates of `nuthatch populate` limit it.",
          counts=("{{instance}} {{snapshot}} entries",)),
    Panel("Generations of servers", "short",
          {"{{instance}} {{snapshot}} outdated": "nuthatch_snapshot_outdated{$S}",
           "{{instance}} {{snapshot}} switches": "nuthatch_snapshot_switches_total{$S}",
           "{{instance}} {{snapshot}} rejected": "nuthatch_snapshot_rejected_total{$S}"},
          "Outdated 1: an older generation serves. `redis-cli info snapshots` has the reason."),
    Panel("Time since the last switch", "s",
          {"{{instance}} {{snapshot}}": "nuthatch_snapshot_age_seconds{$S}"},
          "Grows while the data do not change. Look at the followers to see whether they still "
          "check."),
    Panel("Errors of snapshots", "ops",
          {"{{snapshot}} read errors":
               f"sum by (snapshot) ({rate('nuthatch_snapshot_read_errors_total')})",
           "{{snapshot}} refused writes":
               f"sum by (snapshot) ({rate('nuthatch_snapshot_refused_writes_total')})"},
          "Read errors: the file was changed in place, or the disk is failing. Refused writes: a "
          "client writes to keys of a snapshot."),
    Panel("Generation", "none", {"{{instance}} {{folder}}": "nuthatch_follow_generation{$S}"},
          "All machines should have the same generation within minutes. Look at the log of one "
          "that is behind."),
    Panel("Time since the last successful check", "s",
          {"{{instance}} {{folder}}": "nuthatch_follow_check_age_seconds{$S}"},
          "Above the interval and the time of a fetch: checks fail. Failed checks has the cause."),
    Panel("Failed checks", "ops",
          {"{{folder}} {{cause}}":
               f"sum by (folder, cause) ({rate('nuthatch_follow_failures_total')})"},
          "store: the source cannot be reached. io: the disk of the folder. The others: what was "
          "published is refused."),
    Panel("Healthy folders", "short", {"{{instance}} {{folder}}": "nuthatch_follow_healthy{$S}"},
          "0: the folder has no generation or lacks a file, or its generation is older than "
          "--max-age. 1 does not mean that the source can be reached: see Failed checks."),
    Panel("Age of the generation", "s",
          {"{{instance}} {{folder}}": "nuthatch_follow_age_seconds{$S}"},
          "The time since its publication. If it grows on all machines, nothing is published: look "
          "at the job that does so."),
    Panel("Waiting and fetching", "bytes",
          {"{{instance}} {{folder}} left to fetch": "nuthatch_follow_remaining_bytes{$S}",
           "{{instance}} {{folder}} waits for its group": "nuthatch_follow_waiting{$S}"},
          "If bytes are left for long, the network or `--bandwidth` is too slow. If it waits, "
          "publish the other snapshots of the group.",
          counts=("{{instance}} {{folder}} waits for its group",)),
    Panel("Swaps", "Bps",
          {"swaps": f"sum({rate('nuthatch_follow_swaps_total')})",
           "built from deltas": f"sum({rate('nuthatch_follow_built_files_total')})",
           "failed deltas": f"sum({rate('nuthatch_follow_delta_failures_total')})",
           "bytes fetched": f"sum({rate('nuthatch_follow_fetched_bytes_total')})"},
          "Failed deltas cost a fetch of the whole file; the log has the reason.",
          counts=("swaps", "built from deltas", "failed deltas",)),
]

STORE = [
    Panel("Calls", "reqps",
          {"{{method}}": f"sum by (method) ({rate('nuthatch_rpc_calls_total')}) > 0"},
          "If it falls to 0, look at the clients and at the log of the server."),
    Panel("Failed calls", "reqps",
          {"{{method}} failed":
               f"sum by (method) ({rate('nuthatch_rpc_calls_failed_total')}) > 0",
           "{{method}} cancelled":
               f"sum by (method) ({rate('nuthatch_rpc_calls_cancelled_total')}) > 0"},
          "Failed: the error of the client has the code and the reason. Cancelled: the client "
          "ended the call, such as a watch."),
    Panel("Open calls", "short",
          {"{{method}}": "sum by (method) (nuthatch_rpc_calls_open{$S}) > 0"},
          "Open Txn calls that grow are transactions that clients do not end: they hold the write "
          "lock, or keep pages from being reused."),
    Panel("Sent", "Bps",
          {"{{method}}": f"sum by (method) ({rate('nuthatch_rpc_sent_bytes_total')}) > 0"},
          "Large Scan or Backup calls fill the network. Limit them in the client."),
    Panel("Memory of requests", "bytes", {"{{instance}}": "nuthatch_rpc_held_bytes{$S}"},
          "Near --memory (or store-memory), calls wait or fail: raise it, or send smaller "
          "batches."),
    Panel("Size of the store", "bytes",
          {"{{instance}} used": "nuthatch_store_used_bytes{$S}",
           "{{instance}} map": "nuthatch_store_map_bytes{$S}"},
          "Used bytes include free pages. If they grow while rows do not, long reads keep old "
          "pages, or the store needs `nuthatch store compact`."),
    Panel("Reader slots", "short",
          {"{{instance}}": "nuthatch_store_reader_slots{$S}",
           "{{instance}} limit": "nuthatch_store_reader_slots_limit{$S}"},
          "Slots that are in use or were used. At the limit, further reads fail while all are in "
          "use: see docs/what-to-do-when.md."),
    Panel("Failures of watches", "ops",
          {"{{instance}}": rate("nuthatch_rpc_watch_failures_total")},
          "Above 0: watches are late. `nuthatch store stat` shows the readers."),
]

CHUNKS = [
    Panel("Responses", "reqps",
          {"{{status}}": f"sum by (status) ({rate('nuthatch_chunks_responses_total')}) > 0"},
          "502 and 504: the origin. 503: the origin limits requests. 500: the cache itself; see "
          "the log."),
    Panel("Hit ratio of the chunk cache", "percentunit",
          {"{{instance}}": "nuthatch:chunks_hit_ratio:rate5m{$S}"},
          "The share of bytes that did not come from the origin. If it fell, look at Not kept and "
          "at Size."),
    stacked("Bytes by source", "Bps",
            {"cache": f"sum({rate('nuthatch_chunks_from_cache_bytes_total')})",
             "origin": f"sum({rate('nuthatch_chunks_from_origin_bytes_total')})",
             "another request": f"sum({rate('nuthatch_chunks_coalesced_bytes_total')})"},
            "If the origin sends as much as clients read, nothing is reused."),
    Panel("Origin", "reqps",
          {"requests": f"sum({rate('nuthatch_chunks_origin_requests_total')})",
           "checks": f"sum({rate('nuthatch_chunks_origin_checks_total')})",
           "retries": f"sum({rate('nuthatch_chunks_origin_retries_total')})",
           "stale": f"sum({rate('nuthatch_chunks_stale_total')})"},
          "Many checks: raise --max-age. Retries or stale: the origin is failing."),
    Panel("Transfer", "Bps",
          {"sent to clients": f"sum({rate('nuthatch_chunks_sent_bytes_total')})",
           "sent by the origin": f"sum({rate('nuthatch_chunks_fetched_bytes_total')})"},
          "If the origin sends more than clients get, clients read small ranges of large blocks or "
          "disconnect early."),
    Panel("Size", "bytes",
          {"{{instance}}": "nuthatch_chunks_cache_bytes{$S}",
           "{{instance}} limit": "nuthatch_chunks_cache_limit_bytes{$S}"},
          "At the limit, chunks that are used least are evicted. Raise --limit if the hit ratio is "
          "low."),
    Panel("Chunks", "short", {"{{instance}}": "nuthatch_chunks_cache_chunks{$S}"},
          "A fall to 0: the folder was removed or cleared."),
    Panel("Not kept", "ops",
          {"{{cause}}": f"sum by (cause) ({rate('nuthatch_chunks_not_kept_total')}) > 0",
           "read-only: {{instance}}": "nuthatch_chunks_cache_read_only{$S} > 0"},
          "These blocks come from the origin each time. docs/operations.md says what to do for "
          "each cause."),
    Panel("Removed chunks", "ops",
          {"evicted segments": f"sum({rate('nuthatch_chunks_cache_evicted_total')})",
           "displaced": f"sum({rate('nuthatch_chunks_cache_displaced_total')})",
           "damaged": f"sum({rate('nuthatch_chunks_cache_damaged_total')})"},
          "Damaged above 0: check the disk, and run `nuthatch chunks verify`."),
    Panel("Clients of the chunk cache", "short",
          {"{{instance}} connections": "nuthatch_chunks_connections{$S}",
           "{{instance}} requests": "nuthatch_chunks_requests_open{$S}"},
          "At --connections, further clients wait: raise it, if the memory suffices."),
    Panel("Interrupted responses", "ops",
          {"cut off": f"sum({rate('nuthatch_chunks_responses_cut_off_total')})",
           "waits for a lock": f"sum({rate('nuthatch_chunks_fetch_lock_timeouts_total')})"},
          "Cut off: clients disconnect, or the origin fails during a response. Waits for a lock: a "
          "process that uses the folder is stopped; find it with `lsof`."),
]

PROCESS = [
    Panel("CPU", "percentunit", {"{{instance}}": rate("process_cpu_seconds_total")},
          "100 % is one core. Compare it with the number of threads."),
    Panel("Resident memory", "bytes",
          {"{{instance}}": "process_resident_memory_bytes{$S}",
           "{{instance}} budget": "nuthatch_memory_limit_bytes{$S}"},
          "It includes snapshots and shared pages. Leave room below the limit of the container, or "
          "the kernel kills the server."),
    Panel("Open files", "short",
          {"{{instance}}": "process_open_fds{$S}", "{{instance}} limit": "process_max_fds{$S}"},
          "Near the limit, raise LimitNOFILE= or `ulimit -n`."),
    Panel("Uptime", "s",
          {"{{instance}}": "nuthatch_uptime_seconds{$S}",
           "{{instance}} by the clock": "time() - process_start_time_seconds{$S}"},
          "A fall is a restart: `journalctl -u nuthatch` and `dmesg` say why."),
    Panel("Time until certificates expire", "s",
          {"{{instance}} {{position}}":
               "nuthatch_certificate_expiry_timestamp_seconds{$S} - time()"},
          "Below 7 days: replace the certificate and send SIGHUP. Position 0 is that of the "
          "server, the others are those of its issuers."),
    Panel("Telemetry", "ops",
          {"exported: {{signal}}": f"sum by (signal) ({rate('nuthatch_otlp_exported_total')})",
           "dropped: {{signal}} {{cause}}":
               f"sum by (signal, cause) ({rate('nuthatch_otlp_dropped_total')})"},
          "Log records, metric points and spans for the collector of OpenTelemetry. queue-full: "
          "the collector is slow or unreachable. failed: it refused a request, for example a wrong "
          "header, or metrics were not answered. rejected: it did not accept a part. The log of "
          "the server (nuthatch::otlp) says why."),
    Panel("Refused requests at the admin endpoint", "reqps",
          {"{{instance}} {{cause}}":
               f"sum by (instance, cause) ({rate('nuthatch_admin_refused_total')})"},
          "wrong-token: a client has an old token, or guesses. host: a browser uses a name that is "
          "not in admin-host."),
    Panel("Versions", "none", {"{{version}}": "count by (version) (nuthatch_build_info{$S})"},
          "More than one version for long: a deployment has not finished."),
]

# A collapsed row costs no queries until it is opened.
ROWS = {
    "Overview": (OVERVIEW, False),
    "Cache": (CACHE, False),
    "Disk tier": (DISK, True),
    "Cluster": (CLUSTER, True),
    "Snapshots and followers": (SNAPSHOTS, True),
    "Store": (STORE, True),
    "Chunk cache": (CHUNKS, True),
    "Process": (PROCESS, True),
}

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


def targets(panel: Panel) -> list[dict]:
    """Returns the queries of a panel in the form of Grafana."""
    return [
        {
            "datasource": DATASOURCE,
            "expr": query.replace("$S", SELECTED),
            "legendFormat": legend,
            "range": panel.kind != "stat",
            "instant": panel.kind == "stat",
            "refId": chr(ord("A") + number),
        }
        for number, (legend, query) in enumerate(panel.queries.items())
    ]


def thresholds(panel: Panel) -> dict:
    """Returns the colours of a panel."""
    steps = [{"color": "green", "value": None}]
    for color, limit in zip(("orange", "red"), panel.limits):
        steps.append({"color": color, "value": limit})
    return {"mode": "absolute", "steps": steps}


def overrides(panel: Panel) -> list[dict]:
    """Returns how single series of a panel differ from the others."""
    right = [
        {"id": "unit", "value": "short"},
        {"id": "custom.axisPlacement", "value": "right"},
    ]
    # A limit is not a part of the sum.
    line = [{"id": "custom.stacking", "value": {"mode": "none"}}]
    result = []
    for target in targets(panel):
        matcher = {"id": "byFrameRefID", "options": target["refId"]}
        if target["legendFormat"] in panel.counts:
            result.append({"matcher": matcher, "properties": right})
        if panel.stacked and target["legendFormat"] == "limit":
            result.append({"matcher": matcher, "properties": line})
    return result


def panel_json(panel: Panel, number: int, place: dict) -> dict:
    """Returns a panel in the form of Grafana."""
    field = {"unit": panel.unit, "thresholds": thresholds(panel)}
    if panel.kind == "stat":
        reduce = {"calcs": ["lastNotNull"], "fields": "", "values": False}
        options = {"reduceOptions": reduce, "graphMode": "none"}
        options["colorMode"] = "background" if panel.limits else "none"
    else:
        stacking = {"mode": "normal" if panel.stacked else "none"}
        custom = {"fillOpacity": 10, "showPoints": "never", "spanNulls": False}
        field |= {"min": 0, "custom": custom | {"stacking": stacking}}
        options = {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": field, "overrides": overrides(panel)},
        "options": options,
        "targets": targets(panel),
    }


def panels() -> list[dict]:
    """Returns all rows and panels, with their places."""
    result: list[dict] = []
    numbers = iter(range(1, 1_000))
    top = 0
    for title, (row, is_collapsed) in ROWS.items():
        place = {"h": 1, "w": COLUMNS, "x": 0, "y": top}
        head = {"id": next(numbers), "type": "row", "title": title, "gridPos": place}
        result.append(head | {"collapsed": is_collapsed, "panels": []})
        # A collapsed row contains its panels; those of an open one follow it.
        inside = result[-1]["panels"] if is_collapsed else result
        top += 1
        left = 0
        width, height = (4, 4) if row is OVERVIEW else (8, 8)
        for panel in row:
            if left == COLUMNS:
                left, top = 0, top + height
            place = {"h": height, "w": width, "x": left, "y": top}
            inside.append(panel_json(panel, next(numbers), place))
            left += width
        top += height
    return result


def variable(name: str, label: str, query: str, all_values: str) -> dict:
    """Returns a variable with the values of a label."""
    return {
        "name": name, "label": label, "type": "query", "datasource": DATASOURCE,
        "query": {"query": query, "refId": name}, "definition": query,
        "multi": True, "includeAll": True, "allValue": all_values, "refresh": 2, "sort": 1,
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def dashboard() -> dict:
    """Returns the dashboard in the form of Grafana."""
    source = {
        "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
    }
    return {
        "uid": "nuthatch",
        "title": "Nuthatch",
        "description": "Cache, disk tier, cluster, snapshots, store and chunk cache. Each panel "
                       "says what to do when it looks bad.",
        "tags": ["nuthatch"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [
            source,
            variable("job", "Job", 'label_values(up{job=~"nuthatch.*"}, job)', "nuthatch.*"),
            variable("instance", "Instance", 'label_values(up{job=~"$job"}, instance)', ".*"),
        ]},
        "panels": panels(),
    }


if __name__ == "__main__":
    print(json.dumps(dashboard(), indent=1, ensure_ascii=False))
