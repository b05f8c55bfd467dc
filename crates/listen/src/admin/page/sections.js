// The sections of the cache server.

import { bar, histogram, stacked } from "./charts.js";
import { element } from "./dom.js";
import * as format from "./format.js";
import { quantile } from "./metrics.js";
import { History } from "./rates.js";
import { Table } from "./tables.js";

const QUANTILES = [["p50", 0.5], ["p99", 0.99], ["p99.9", 0.999]];
const OTHER = "other";
const DURATION = "nuthatch_command_duration_seconds";

/** Replaces the content of a place by tiles: a title, a value and a detail of each. */
export function tiles(place, entries) {
  const tile = ([title, value, detail = "", isAlarm = false]) =>
    element("div", { class: isAlarm ? "alarm" : undefined },
      element("dt", {}, title, detail === "" ? "" : ` ${detail}`), element("dd", {}, value));
  place.replaceChildren(element("dl", { class: "tiles" }, entries.map(tile)));
}

/** Hits and misses by tier and cause, in lookups per second. */
function lookups(view) {
  const misses = view.rates("nuthatch_misses_total", "cause");
  const fromDisk = view.rate("nuthatch_disk_hits_total");
  const hits = view.rate("nuthatch_hits_total");
  const values = new Map([["memory", Math.max(0, hits - (fromDisk || 0))]]);
  if (view.now.has("nuthatch_disk_limit_bytes")) values.set("disk", fromDisk);
  for (const [cause, rate] of misses) values.set(cause, rate);
  return values;
}

function overview() {
  return {
    id: "overview", title: "Overview", size: "wide",
    applies: (view) => view.now.has("nuthatch_memory_limit_bytes"),
    render({ body }, view) {
      const metrics = view.now;
      const rates = lookups(view);
      const all = [...rates.values()].reduce((sum, rate) => sum + rate, 0);
      const hits = (rates.get("memory") ?? 0) + (rates.get("disk") ?? 0);
      const times = view.histogram(DURATION);
      const used = metrics.sum("nuthatch_memory_bytes");
      const limit = metrics.value("nuthatch_memory_limit_bytes");
      const failed = view.rate("nuthatch_commands_failed_total")
        + view.rate("nuthatch_commands_rejected_total");
      const threads = metrics.by("nuthatch_event_loop_lag_seconds_sum", "thread").size;
      const busy = view.rate("nuthatch_event_loop_lag_seconds_sum") / threads;
      tiles(body, [
        ["Requests", format.rate(view.rate("nuthatch_commands_total"))],
        ["Errors", format.rate(failed), "", failed > 0],
        ["Hit ratio", format.percent(hits / all)],
        ["p99 of commands", format.time(quantile(times, 0.99))],
        ["Items", format.count(metrics.value("nuthatch_items"))],
        ["Memory", format.percent(used / limit), `of ${format.bytes(limit)}`],
        ["Clients", format.count(metrics.value("nuthatch_connections"))],
        ["Threads busy", format.percent(busy), `of ${threads}`],
        ["Received", format.byteRate(view.rate("nuthatch_received_bytes_total"))],
        ["Sent", format.byteRate(view.rate("nuthatch_sent_bytes_total"))],
        ["Evicted", format.rate(view.rate("nuthatch_items_evicted_total"))],
        ["Processor", format.percent(view.rate("process_cpu_seconds_total")), "of one core"],
      ]);
    },
  };
}

function requests() {
  const history = new History();
  return {
    id: "requests", title: "Requests", hint: "per second, by command",
    applies: (view) => view.now.has("nuthatch_commands_total"),
    sample: (view) => history.add(view.at, view.rates("nuthatch_commands_total", "command")),
    render({ body }) {
      const sums = [...history.series].map(([name, points]) =>
        [name, points.reduce((sum, point) => sum + (point || 0), 0)]);
      sums.sort(([one, a], [other, b]) => b - a || one.localeCompare(other));
      const names = sums.slice(0, sums.length > 6 ? 5 : 6).map(([name]) => name);
      const shown = new History();
      shown.times = history.times;
      for (const name of names) shown.series.set(name, history.series.get(name));
      if (sums.length > names.length) {
        const rest = sums.slice(names.length).map(([name]) => history.series.get(name));
        shown.series.set(OTHER, history.times.map((_, at) =>
          rest.reduce((sum, points) => sum + (points[at] || 0), 0)));
        names.push(OTHER);
      }
      stacked(body, shown, { names, label: "Requests per second by command", text: format.rate });
    },
  };
}

function hits() {
  const history = new History();
  const titles = { memory: "hit in memory", disk: "hit on disk", absent: "miss: absent",
    expired: "miss: expired", evicted: "miss: evicted" };
  return {
    id: "hits", title: "Hits and misses", hint: "share of lookups, by tier and cause",
    applies: (view) => view.now.has("nuthatch_hits_total"),
    sample: (view) => history.add(view.at, lookups(view)),
    render({ body }) {
      const names = ["memory", "disk", "absent", "expired", "evicted"];
      const present = names.filter((name) => name !== "disk" || history.series.has(name));
      stacked(body, history, { names: present, titles, isShare: true, text: format.percent,
        label: "Share of lookups by result" });
    },
  };
}

function latency() {
  return {
    id: "latency", title: "Latency of commands", hint: "execution time, without the network",
    applies: (view) => view.now.has(`${DURATION}_bucket`),
    render({ body }, view) {
      const recent = view.histogram(DURATION);
      const isIdle = recent.every(({ count }) => count === 0);
      const buckets = isIdle ? view.now.histogram(DURATION) : recent;
      const marks = QUANTILES.map(([name, part]) => ({ name, value: quantile(buckets, part) }));
      const span = isIdle ? "since the start" : "in the last seconds";
      histogram(body, buckets, marks, `Distribution of execution times ${span}`);
      body.append(element("p", { class: "note" }, `Requests ${span}.`));
    },
  };
}

function memory() {
  return {
    id: "memory", title: "Memory and disk",
    applies: (view) => view.now.has("nuthatch_memory_limit_bytes"),
    render({ body }, view) {
      const metrics = view.now;
      const kinds = [...metrics.by("nuthatch_memory_bytes", "kind")];
      const parts = kinds.map(([title, value]) => ({ title, value }));
      const nodes = [
        element("h3", { class: "note" }, "Memory by kind"),
        ...bar(parts, metrics.value("nuthatch_memory_limit_bytes"), "Memory by kind"),
      ];
      if (metrics.has("nuthatch_disk_limit_bytes")) nodes.push(...disk(view));
      const resident = metrics.value("process_resident_memory_bytes");
      nodes.push(element("p", { class: "note" },
        `Resident memory of the process: ${format.bytes(resident)}.`));
      body.replaceChildren(...nodes);
    },
  };
}

function disk(view) {
  const metrics = view.now;
  const items = [{ title: "item files", value: metrics.value("nuthatch_disk_bytes") }];
  const details = [
    `${format.count(metrics.value("nuthatch_disk_items"))} items only on disk`,
    `read ${format.byteRate(view.rate("nuthatch_disk_read_bytes_total"))}`,
    `written ${format.byteRate(view.rate("nuthatch_disk_written_bytes_total"))}`,
    `dropped ${format.rate(view.rate("nuthatch_disk_dropped_items_total"))}`,
  ];
  const isOff = metrics.value("nuthatch_disk_off") > 0;
  return [
    element("h3", { class: "note" }, "Disk tier"),
    ...bar(items, metrics.value("nuthatch_disk_limit_bytes"), "Disk tier"),
    element("p", { class: "note" }, `${details.join(", ")}.`),
    isOff ? element("p", { class: "alarm-text" }, "Off after an error: nothing is written.") : "",
  ].filter((node) => node !== "");
}

/** A section with a table of the report. */
function report(id, title, size, { name = id, caption, columns, none, note = () => "" }) {
  let table;
  return {
    id, title, size,
    applies: (_, live) => Boolean(live?.tables[name]),
    render({ body }, view, live) {
      table ??= new Table(body, caption, columns, none);
      const { rows, summary } = live.tables[name];
      table.update(rows, note(summary, rows));
    },
  };
}

const number = (title, cell) => ({ title, cell, isNumber: true });
const column = (title, cell) => ({ title, cell });

function hotKeys() {
  return report("hot-keys", "Hot keys", "", {
    name: "hot_keys", caption: "Keys that most requests name, from a sample",
    columns: [
      column("Key", (row) => row.key),
      number("Share of requests", (row) => format.percent(row.share)),
      number("Error", (row) => `± ${format.percent(row.error)}`),
    ],
    none: "No key is named much more often than others.",
    note: ({ samples }) => `From ${format.count(samples)} samples of about the last 15 seconds.`,
  });
}

function bigKeys() {
  return report("big-keys", "Big keys", "", {
    name: "big_keys", caption: "Longest items in memory",
    columns: [
      column("Key", (row) => row.key),
      number("Bytes", (row) => format.bytes(row.bytes)),
      column("Value", (row) => (row.compressed ? "compressed" : "raw")),
    ],
    none: "No items were found yet.",
    note: ({ examined, items, scans }) => (scans > 0
      ? `From all items in memory; scan ${format.count(scans + 1)} is running.`
      : `From ${format.count(examined)} of ${format.count(items)} items so far.`),
  });
}

function slow() {
  return report("slow", "Slow commands", "wide", {
    caption: "Newest entries of the slow log",
    columns: [
      column("Time", (row) => format.clock(new Date(1000 * row.time_seconds))),
      number("Duration", (row) => format.time(row.seconds)),
      column("Command", (row) => row.command),
      column("Arguments", (row) => row.arguments),
      column("Client", (row) => row.client),
      column("Name", (row) => row.name),
    ],
    none: "No command took longer than slow-log-threshold.",
    note: ({ logged }) => `${format.count(logged)} since the start.`,
  });
}

function clients() {
  return report("clients", "Clients", "wide", {
    caption: "Connections, those with the most memory first",
    columns: [
      number("Id", (row) => row.id),
      column("Address", (row) => row.client),
      column("Name", (row) => row.name),
      column("User", (row) => row.user),
      column("Last command", (row) => row.command),
      number("Memory", (row) => format.bytes(row.bytes)),
      number("Age", (row) => format.age(row.age_seconds)),
      number("Idle", (row) => format.age(row.idle_seconds)),
    ],
    none: "No client is connected.",
    note: ({ all }, rows) => (all > rows.length
      ? `${format.count(rows.length)} of ${format.count(all)} clients.` : ""),
  });
}

function snapshots() {
  return report("snapshots", "Snapshots", "wide", {
    caption: "Snapshots whose keys are served",
    columns: [
      column("Name", (row) => row.name),
      number("Entries", (row) => format.count(row.entries)),
      number("Size", (row) => format.bytes(row.bytes)),
      number("Age", (row) => format.age(row.age_seconds)),
      column("State", (row) => (row.error.bytes > 0
        ? element("span", { class: "alarm-text" }, "outdated") : "current")),
      column("Problem", (row) => row.error),
      column("Path", (row) => row.path),
    ],
    none: "No snapshot is served.",
  });
}

/** Creates the sections of the cache server, each with its own history. */
export function cacheSections() {
  return [overview(), requests(), hits(), latency(), memory(), hotKeys(), bigKeys(), slow(),
    clients(), snapshots()];
}
