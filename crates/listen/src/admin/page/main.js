// The live page: reads /metrics and /live.json again and again, and shows them.

import { clusterSections } from "./cluster.js";
import { section, setText } from "./dom.js";
import * as format from "./format.js";
import { Metrics } from "./metrics.js";
import { View } from "./rates.js";
import { cacheSections } from "./sections.js";
import { otherSections } from "./servers.js";

const DEFAULT_INTERVAL_MS = 2000;
const TIMEOUT_MS = 5000;
const TOKEN = "nuthatch-token";

const find = (id) => document.getElementById(id);
const sections = [...cacheSections(), ...clusterSections(), ...otherSections()];
const state = { before: null, answered: null, isPaused: false, timer: 0, isReading: false };

/** The time between samples: of the parameter `interval` in milliseconds, if it is valid. */
function interval() {
  const wanted = Number(new URLSearchParams(location.search).get("interval"));
  return wanted >= 250 && wanted <= 60_000 ? wanted : DEFAULT_INTERVAL_MS;
}

async function read(path, headers = {}) {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const options = { cache: "no-store", credentials: "omit", redirect: "error", headers, signal };
  const response = await fetch(path, options);
  return { status: response.status, text: await response.text() };
}

async function readMetrics() {
  const { status, text } = await read("/metrics");
  if (status !== 200) throw new Error(`${status}: ${text.trim()}`);
  return new Metrics(text);
}

/** Reads the report; null if the server has none. A token that is refused is reported once. */
async function readReport() {
  const token = sessionStorage.getItem(TOKEN);
  let reply = await read("/live.json", token ? { Authorization: `Bearer ${token}` } : {});
  if (token && reply.status === 401) {
    sessionStorage.removeItem(TOKEN);
    setText(find("token-problem"), reply.text.trim());
  }
  if (token && reply.status === 429) setText(find("token-problem"), reply.text.trim());
  if (token && reply.status !== 200) reply = await read("/live.json");
  return reply.status === 200 ? JSON.parse(reply.text) : null;
}

/** Takes a sample and shows it. */
async function poll() {
  if (state.isReading) return;
  state.isReading = true;
  try {
    const at = performance.now();
    const [metrics, live] = await Promise.all([readMetrics(), readReport()]);
    const view = new View({ metrics, at }, state.before);
    state.before = { metrics, at };
    state.answered = new Date();
    show(view, live);
    showResult(`Live, every ${interval() / 1000} s`, "live");
  } catch (error) {
    const since = state.answered ? ` since ${format.clock(state.answered)}` : "";
    const reason = /^\d{3}:/.test(error.message) ? ` (${error.message})` : "";
    showResult(`No answer${since}; trying again${reason}`, "lost");
  } finally {
    state.isReading = false;
  }
}

/** Shows the status of a sample, unless the page was paused while it was taken. */
function showResult(text, kind) {
  if (!state.isPaused) showStatus(text, kind);
}

function showStatus(text, kind) {
  const status = find("status");
  setText(status, text);
  status.className = `status ${kind}`;
  document.body.classList.toggle("old", kind === "lost");
}

function show(view, live) {
  showIdentity(view, live);
  showPrivacy(live);
  for (const one of sections) {
    if (!one.applies(view, live)) {
      if (one.place) one.place.root.hidden = true;
      continue;
    }
    one.sample?.(view);
    one.place ??= place(one);
    one.place.root.hidden = false;
    one.render(one.place, view, live);
  }
}

/** Adds the place of a section, in the order of all sections. */
function place(one) {
  const made = section(one.id, one.title, one.size);
  if (one.hint) made.hint.textContent = one.hint;
  const later = sections.slice(sections.indexOf(one) + 1).find((other) => other.place);
  find("sections").insertBefore(made.root, later?.place.root ?? null);
  return made;
}

function showIdentity(view, live) {
  const version = view.now.all("nuthatch_build_info")[0]?.labels.version;
  const parts = [live?.server, version ? `version ${version}` : "", location.host];
  if (view.now.has("nuthatch_uptime_seconds")) {
    parts.push(`up ${format.age(view.now.value("nuthatch_uptime_seconds"))}`);
  }
  const text = parts.filter(Boolean).join(" · ");
  setText(find("identity"), text);
  document.title = `${live?.server ?? "server"} · ${location.host} · Nuthatch`;
}

function showPrivacy(live) {
  const isShown = live?.private_values === "shown";
  setText(find("privacy"), isShown ? "shown" : "hidden");
  find("token").disabled = live !== null && !live.has_token;
  if (live !== null && !live.has_token) {
    setText(find("token-help"), "Keys are always hidden: the server has no --admin-token-file.");
  }
}

function schedule() {
  clearInterval(state.timer);
  if (!state.isPaused && !document.hidden) {
    poll();
    state.timer = setInterval(poll, interval());
  }
}

function setPaused(isPaused) {
  state.isPaused = isPaused;
  const button = find("pause");
  button.setAttribute("aria-pressed", String(isPaused));
  if (isPaused) showStatus("Paused", "paused");
  schedule();
}

find("pause").addEventListener("click", () => setPaused(!state.isPaused));
find("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = find("token").value.trim();
  find("token").value = "";
  // Other characters cannot be in a header of a request.
  const isToken = /^[\x21-\x7e]+$/.test(token);
  const problem = token === "" ? "Enter the token first." : "A token has visible ASCII characters.";
  setText(find("token-problem"), isToken ? "" : problem);
  if (!isToken) return;
  sessionStorage.setItem(TOKEN, token);
  poll();
});
find("forget").addEventListener("click", () => {
  sessionStorage.removeItem(TOKEN);
  setText(find("token-problem"), "");
  poll();
});
find("access").addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  find("access").open = false;
  find("access").querySelector("summary").focus();
});
document.addEventListener("visibilitychange", schedule);
schedule();
