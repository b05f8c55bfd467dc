// Charts as SVG, as wide as their place.

import { element, svg } from "./dom.js";
import { MAX_POINTS } from "./rates.js";
import * as format from "./format.js";

const COLORS = 6;
const HEIGHT = 190;
const LEFT = 58;
const BOTTOM = 20;
const TOP = 8;
const RIGHT = 6;

function widthOf(place) {
  return Math.max(260, Math.round(place.clientWidth) || 600);
}

/** The next round number that is not less. */
function ceiling(number, base = 10) {
  if (!(number > 0)) return 1;
  return base ** Math.floor(Math.log(number) / Math.log(base)) * nice(number, base);
}

function nice(number, base) {
  const part = number / base ** Math.floor(Math.log(number) / Math.log(base));
  const powers = Array.from({ length: 11 }, (_, power) => 2 ** power);
  const steps = base === 10 ? [1, 2, 3, 4, 5, 6, 8, 10] : powers;
  return steps.find((step) => step >= part) ?? base;
}

/**
 * Replaces the content of `place` by a stacked area chart of a history, with a legend.
 * `names` are the series from the bottom up. With `isShare`, each point is divided by its sum.
 */
export function stacked(place, history, options) {
  const { names, titles, label, text, isShare = false, base = 10 } = options;
  const width = widthOf(place);
  const count = history.times.length;
  const rows = names.map((name) => history.series.get(name) ?? Array(count).fill(NaN));
  const sums = history.times.map((_, at) => rows.reduce((sum, row) => sum + (row[at] || 0), 0));
  const isKnown = history.times.map((_, at) => rows.some((row) => !Number.isNaN(row[at])));
  const max = isShare ? 1 : ceiling(Math.max(0, ...sums), base);
  const x = (at) => LEFT + ((width - LEFT - RIGHT) * (MAX_POINTS - count + at)) / (MAX_POINTS - 1);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / max);
  const below = Array(count).fill(0);
  const areas = rows.map((row, number) => {
    const tops = row.map((value, at) => {
      const part = isShare ? (value || 0) / (sums[at] || Infinity) : value || 0;
      return below[at] + part;
    });
    const path = areaPath(below, tops, isKnown, x, y);
    tops.forEach((top, at) => { below[at] = top; });
    return svg("path", { class: `area f${number % COLORS}`, d: path });
  });
  const last = count - 1;
  const values = rows.map((row) => (isShare ? row[last] / (sums[last] || NaN) : row[last]));
  const summary = names.map((name, number) => `${titles?.[name] ?? name} ${text(values[number])}`);
  const chart = svg(
    "svg",
    { class: "chart", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img",
      "aria-label": `${label}. Now: ${summary.join(", ")}.` },
    grid(width, y, [0, max / 2, max], text), areas, timeAxis(history, width),
  );
  place.replaceChildren(chart, legend(names.map((name, number) => ({
    color: number % COLORS, title: titles?.[name] ?? name, value: text(values[number]),
  }))));
}

/** The area between two series, with a gap where values are not known. */
function areaPath(bottoms, tops, isKnown, x, y) {
  const point = (values, at) => `${x(at).toFixed(1)},${y(values[at]).toFixed(1)}`;
  let path = "";
  for (let start = 0; start < tops.length; start += 1) {
    if (!isKnown[start]) continue;
    let end = start;
    while (end + 1 < tops.length && isKnown[end + 1]) end += 1;
    const there = [];
    const back = [];
    for (let at = start; at <= end; at += 1) {
      there.push(point(tops, at));
      back.unshift(point(bottoms, at));
    }
    // A single point is as wide as a step.
    if (start === end) there.push(`${(x(start) + 2).toFixed(1)},${y(tops[start]).toFixed(1)}`);
    path += `M${there.join("L")}L${back.join("L")}Z`;
    start = end;
  }
  return path;
}

function grid(width, y, values, text) {
  return values.flatMap((value) => [
    svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }),
    svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, text(value)),
  ]);
}

function timeAxis(history, width) {
  if (history.times.length < 2) return [];
  const last = history.times.length - 1;
  const seconds = (history.times[last] - history.times[0]) / 1000;
  const step = (width - LEFT - RIGHT) / (MAX_POINTS - 1);
  const start = width - RIGHT - step * last;
  const labels = [svg("text", { x: width - RIGHT, y: HEIGHT - 5, "text-anchor": "end" }, "now")];
  if (width - start > 120) {
    const anchor = start < LEFT + 30 ? "start" : "middle";
    labels.push(svg("text", { x: Math.max(LEFT, start), y: HEIGHT - 5, "text-anchor": anchor },
      `${format.age(seconds)} ago`));
  }
  return labels;
}

export function legend(entries) {
  return element("ul", { class: "legend" }, entries.map(({ color, title, value }) =>
    element("li", {}, element("i", { class: `b${color}`, "aria-hidden": "true" }), title,
      element("b", {}, value))));
}

/** Replaces the content of `place` by the bars of a histogram, with marked quantiles. */
export function histogram(place, buckets, marks, label) {
  const width = widthOf(place);
  const used = buckets.map(({ count }, at) => (count > 0 ? at : -1)).filter((at) => at >= 0);
  if (used.length === 0) {
    place.replaceChildren(element("p", { class: "note" }, "No requests yet."));
    return;
  }
  const first = Math.max(0, used[0] - 1);
  const shown = buckets.slice(first, Math.min(buckets.length, used[used.length - 1] + 2));
  const total = shown.reduce((sum, { count }) => sum + count, 0);
  const max = Math.max(...shown.map(({ count }) => count / total));
  const top = ceiling(max);
  const y = (part) => TOP + 14 + (HEIGHT - TOP - BOTTOM - 14) * (1 - part / top);
  const step = (width - LEFT - RIGHT) / shown.length;
  const bars = shown.map(({ count }, at) => {
    const part = count / total;
    return svg("rect", { class: "f0", x: LEFT + at * step + 1, width: Math.max(1, step - 2),
      y: y(part), height: Math.max(0, y(0) - y(part)) });
  });
  const ends = shown.map(({ end }) => end);
  const every = Math.ceil(64 / step);
  const labels = ends.map((end, at) => (at % every === every - 1 && Number.isFinite(end)
    ? [svg("text", { x: LEFT + (at + 1) * step, y: HEIGHT - 5, "text-anchor": "middle" },
      format.time(end))] : []));
  let rightmost = -Infinity;
  const lines = marks.filter(({ value }) => Number.isFinite(value)).map(({ name, value }) => {
    const x = LEFT + step * positionOf(value, ends);
    const isFree = x - rightmost > 34;
    if (isFree) rightmost = x;
    return [
      svg("line", { class: "mark", x1: x, x2: x, y1: TOP + 12, y2: y(0) }),
      isFree ? svg("text", { x, y: TOP + 8, "text-anchor": "middle" }, name) : [],
    ].flat();
  });
  const summary = marks.map(({ name, value }) => `${name} ${format.time(value)}`).join(", ");
  place.replaceChildren(
    svg("svg", { class: "chart", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img",
      "aria-label": `${label}. ${summary}.` },
      grid(width, y, [0, top / 2, top], format.percent), bars, labels, lines),
    element("ul", { class: "legend" }, marks.map(({ name, value }) =>
      element("li", {}, name, element("b", {}, format.time(value))))),
  );
}

/** The place of a duration among the ends of buckets, which double. */
function positionOf(value, ends) {
  const at = ends.findIndex((end) => value <= end);
  if (at < 0 || !Number.isFinite(ends[at])) return ends.length - 1;
  const start = at > 0 ? ends[at - 1] : ends[at] / 2;
  return at + Math.min(1, Math.max(0, (value - start) / (ends[at] - start)));
}

/** A bar of parts of a limit, with a legend. */
export function bar(parts, limit, label) {
  const used = parts.reduce((sum, { value }) => sum + value, 0);
  const rest = Math.max(0, limit - used);
  const pieces = parts.map(({ value }, number) => {
    const piece = element("i", { class: `b${number % COLORS}` });
    piece.style.flexGrow = String(value);
    return piece;
  });
  const free = element("i");
  free.style.flexGrow = String(rest);
  const summary = parts.map(({ title, value }) => `${title} ${format.bytes(value)}`).join(", ");
  const text = limit > 0 ? `${format.bytes(used)} of ${format.bytes(limit)}` : format.bytes(used);
  return [
    element("div", { class: "bar", role: "img", "aria-label": `${label}: ${text}. ${summary}.` },
      pieces, free),
    legend(parts.map(({ title, value }, number) =>
      ({ color: number % COLORS, title, value: format.bytes(value) }))),
  ];
}
