// The sections of the store server, the chunk server and the follower.

import { bar, stacked } from "./charts.js";
import { element } from "./dom.js";
import * as format from "./format.js";
import { History } from "./rates.js";
import { tiles } from "./sections.js";
import { Table } from "./tables.js";

const number = (title, cell) => ({ title, cell, isNumber: true });
const column = (title, cell) => ({ title, cell });

function storeCalls() {
  const history = new History();
  return {
    id: "store-calls", title: "Calls to the store", hint: "per second, by method",
    applies: (view) => view.now.has("nuthatch_rpc_calls_total"),
    sample: (view) => history.add(view.at, view.rates("nuthatch_rpc_calls_total", "method")),
    render({ body }, view) {
      const names = [...history.series.keys()].slice(0, 6);
      stacked(body, history, { names, label: "Calls per second by method", text: format.rate });
      const failed = view.rate("nuthatch_rpc_calls_failed_total");
      const held = view.now.value("nuthatch_rpc_held_bytes");
      body.append(element("p", { class: "note" }, `Failed ${format.rate(failed)}; requests and `
        + `responses hold ${format.bytes(held)}.`));
    },
  };
}

function storeTables() {
  let table;
  return {
    id: "store-tables", title: "Store tables",
    applies: (_, live) => Boolean(live?.tables.store_tables),
    render({ body }, _, live) {
      table ??= new Table(body, "Tables of the store", [
        column("Table", (row) => row.table),
        number("Rows", (row) => format.count(row.rows)),
        number("Size", (row) => format.bytes(row.bytes)),
        number("Depth", (row) => row.depth),
      ], "The store has no tables.");
      const { rows, summary } = live.tables.store_tables;
      const file = `File ${format.bytes(summary.file_bytes)}, in use ${format.bytes(
        summary.used_bytes - summary.free_bytes)}, readers ${summary.readers}.`;
      const isPart = summary.tables > rows.length;
      table.update(rows, isPart ? `${rows.length} of ${summary.tables} tables. ${file}` : file);
    },
  };
}

function chunkTraffic() {
  const history = new History();
  const names = ["from the cache", "from the origin", "shared fetch"];
  return {
    id: "chunk-traffic", title: "Bytes served", hint: "per second, by source",
    applies: (view) => view.now.has("nuthatch_chunks_responses_total"),
    sample: (view) => history.add(view.at, new Map([
      [names[0], view.rate("nuthatch_chunks_from_cache_bytes_total")],
      [names[1], view.rate("nuthatch_chunks_from_origin_bytes_total")],
      [names[2], view.rate("nuthatch_chunks_coalesced_bytes_total")],
    ])),
    render({ body }) {
      stacked(body, history, { names, text: format.byteRate, base: 1024,
        label: "Bytes served per second by source" });
    },
  };
}

function chunkCache() {
  return {
    id: "chunk-cache", title: "Chunk cache",
    applies: (view) => view.now.has("nuthatch_chunks_responses_total"),
    render({ body }, view) {
      const metrics = view.now;
      const place = element("div");
      tiles(place, [
        ["Responses", format.rate(view.rate("nuthatch_chunks_responses_total"))],
        ["Requests open", format.count(metrics.value("nuthatch_chunks_requests_open"))],
        ["Connections", format.count(metrics.value("nuthatch_chunks_connections"))],
        ["Chunks", format.count(metrics.value("nuthatch_chunks_cache_chunks"))],
        ["Origin requests", format.rate(view.rate("nuthatch_chunks_origin_requests_total"))],
        ["Evicted segments", format.rate(view.rate("nuthatch_chunks_cache_evicted_total"))],
      ]);
      const used = [{ title: "folder", value: metrics.value("nuthatch_chunks_cache_bytes") }];
      body.replaceChildren(place,
        ...bar(used, metrics.value("nuthatch_chunks_cache_limit_bytes"), "Chunk cache"));
      if (metrics.value("nuthatch_chunks_cache_read_only") > 0) {
        body.append(element("p", { class: "alarm-text" }, "Read-only: nothing is stored."));
      }
    },
  };
}

function follower() {
  let table;
  const metric = (name) => (row) => row.get(`nuthatch_follow_${name}`);
  return {
    id: "follower", title: "Followed folders", size: "wide",
    applies: (view) => view.now.has("nuthatch_follow_check_age_seconds"),
    render({ body }, view) {
      table ??= new Table(body, "Folders and their generations", [
        column("Folder", (row) => row.get("folder")),
        number("Generation", (row) => metric("generation")(row) ?? "none"),
        number("Published", (row) => format.age(metric("age_seconds")(row))),
        number("Checked", (row) => format.age(metric("check_age_seconds")(row))),
        number("Left to fetch", (row) => format.bytes(metric("remaining_bytes")(row))),
        number("Swaps", (row) => metric("swaps_total")(row)),
        number("Fetched", (row) => format.bytes(metric("fetched_bytes_total")(row))),
        number("Failed checks", (row) => metric("failures_total")(row) ?? 0),
      ], "No folder is followed.");
      const all = [...view.now.samples.keys()];
      const names = all.filter((name) => name.startsWith("nuthatch_follow_"));
      const folders = view.now.by("nuthatch_follow_check_age_seconds", "folder");
      table.update([...folders.keys()].map((folder) => {
        const values = names.map((name) => [name, view.now.by(name, "folder").get(folder)]);
        return new Map([["folder", folder], ...values]);
      }));
    },
  };
}

/** Creates the sections of the other servers. */
export function otherSections() {
  return [storeCalls(), storeTables(), chunkTraffic(), chunkCache(), follower()];
}
