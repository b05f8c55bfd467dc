// The section of a cluster of cache servers.

import { element } from "./dom.js";
import * as format from "./format.js";
import { tiles } from "./sections.js";
import { Table } from "./tables.js";

const SLOTS = 16384;
const SHORT_ID = 8;

const number = (title, cell) => ({ title, cell, isNumber: true });
const column = (title, cell) => ({ title, cell });

/** A bar as long as the share of the slots, and the share as text. */
function share({ share }) {
  const filled = element("i", { class: "b0" });
  filled.style.flexGrow = String(share);
  const free = element("i");
  free.style.flexGrow = String(1 - share);
  const bar = element("span", { class: "bar small", "aria-hidden": "true" }, filled, free);
  return element("span", { class: "share" }, bar, format.percent(share));
}

function state({ state }) {
  return state === "failed" ? element("span", { class: "alarm-text" }, "failed") : state;
}

function cluster() {
  let place;
  let table;
  return {
    id: "cluster", title: "Cluster", size: "wide",
    hint: "this node, and all nodes as it knows them",
    applies: (_, live) => Boolean(live?.tables.cluster),
    render({ body }, view, live) {
      if (!table) {
        place = element("div");
        const rows = element("div");
        body.replaceChildren(place, rows);
        table = new Table(rows, "Nodes and their slots", [
          column("Node", (row) => row.id.slice(0, SHORT_ID) + (row.this_node ? " (this)" : "")),
          column("Address", (row) => row.address),
          column("State", state),
          number("Weight", (row) => format.count(row.weight)),
          number("Slots", (row) => format.count(row.slots)),
          column("Share", share),
          number("Moving out", (row) => format.count(row.moving_out)),
          number("Moving in", (row) => format.count(row.moving_in)),
        ], "The node has no lease in etcd, and knows no nodes.");
      }
      showNode(place, view);
      const { rows, summary } = live.tables.cluster;
      const isPart = summary.all > rows.length;
      table.update(rows, isPart ? `${rows.length} of ${format.count(summary.all)} nodes.` : "");
    },
  };
}

/** Shows the state of this node. */
function showNode(place, view) {
  const value = (name) => view.now.value(`nuthatch_cluster_${name}`);
  const isPermitted = value("permitted") === 1;
  const covered = value("slots_covered");
  const refused = view.rates("nuthatch_cluster_refused_requests_total", "kind");
  const down = refused.get("clusterdown") ?? 0;
  tiles(place, [
    ["Lease", isPermitted ? format.time(value("permit_seconds")) : "none", "left", !isPermitted],
    ["Slots served", format.count(value("slots_served")),
      `of ${format.count(value("slots_owned"))}`],
    ["Slots covered", format.count(covered), `of ${format.count(SLOTS)}`, covered < SLOTS],
    ["Nodes", format.count(value("nodes"))],
    ["Moved", format.rate(refused.get("moved") ?? 0)],
    ["Cluster down", format.rate(down), "", down > 0],
  ]);
}

/** Creates the sections of a cluster. */
export function clusterSections() {
  return [cluster()];
}
