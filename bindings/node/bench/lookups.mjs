// Compares lookups in a snapshot with those in a Map, in LMDB and in SQLite.
//
//   node lookups.mjs FILE.nut [RUNS]
//
// The snapshot has the keys key_0, key_1 … with the strings val_0, val_1 …. Keys are looked up in a
// shuffled order, which is the same each time. Prints a JSON object for each system: the median of
// the runs in nanoseconds per lookup. All systems run one after the other, several times. Also
// measures opening the file that BENCH_OPEN_FILE names, if it is set.

import { open } from "@nuthatch/snapshot";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

const [file, runs = "7"] = process.argv.slice(2);
if (file === undefined) throw new Error("usage: node lookups.mjs FILE.nut [RUNS]");
const snapshot = await open(file);
const count = snapshot.size;
const BATCH = 1000;

/** Returns the keys in shuffled order, each as a string of its own. */
function shuffledKeys() {
  const numbers = Uint32Array.from({ length: count }, (_, i) => i);
  let state = 0x2545f491;
  for (let i = count - 1; i > 0; i--) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    const j = Math.floor(((state >>> 0) / 2 ** 32) * (i + 1));
    [numbers[i], numbers[j]] = [numbers[j], numbers[i]];
  }
  return Array.from(numbers, (n) => Buffer.from(`key_${n}`).toString("latin1"));
}

/** Opens LMDB with the same entries, if the package is installed. */
async function openLmdb(folder) {
  const { open: openStore } = await import("lmdb");
  const store = openStore({ path: path.join(folder, "lmdb"), encoding: "string" });
  await store.batch(() => {
    for (let i = 0; i < count; i++) store.put(`key_${i}`, `val_${i}`);
  });
  await store.flushed;
  return store;
}

/** Opens SQLite with the same entries, if the package is installed. */
async function openSqlite(folder) {
  const { default: Database } = await import("better-sqlite3");
  const database = new Database(path.join(folder, "sqlite"));
  database.exec("create table entries (key text primary key, value text) without rowid");
  const insert = database.prepare("insert into entries values (?, ?)");
  database.transaction(() => {
    for (let i = 0; i < count; i++) insert.run(`key_${i}`, `val_${i}`);
  })();
  database.pragma("mmap_size = 1073741824");
  return database.prepare("select value from entries where key = ?").pluck();
}

/** Runs a function for all keys. Returns nanoseconds per key. */
function measure(run, keys) {
  const begin = process.hrtime.bigint();
  const total = run(keys);
  const ns = Number(process.hrtime.bigint() - begin) / keys.length;
  if (total !== expectedLength) throw new Error(`${total} characters, expected ${expectedLength}`);
  return ns;
}

/**
 * Returns the nanoseconds that opening a file took, many times. The files are closed afterwards:
 * closing makes the garbage collector run soon, which takes as long as the heap is large.
 */
async function measureOpening(file) {
  const taken = [];
  const all = [];
  for (let i = 0; i < 101; i++) {
    const begin = process.hrtime.bigint();
    all.push(await open(file));
    taken.push(Number(process.hrtime.bigint() - begin));
  }
  for (const opened of all) opened.close();
  return taken;
}

const each = (get) => (keys) => {
  let total = 0;
  for (let i = 0; i < keys.length; i++) total += get(keys[i]).length;
  return total;
};

function manyOf(keys) {
  let total = 0;
  for (let at = 0; at < keys.length; at += BATCH) {
    const values = snapshot.getMany(keys.slice(at, at + BATCH));
    for (let i = 0; i < values.length; i++) total += values[i].length;
  }
  return total;
}

const keys = shuffledKeys();
const expectedLength = keys.reduce((sum, key) => sum + key.length, 0);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "nuthatch-bench-"));
const map = new Map(Array.from({ length: count }, (_, i) => [`key_${i}`, `val_${i}`]));
const lmdb = await openLmdb(folder);
const sqlite = await openSqlite(folder);
const systems = [
  ["nuthatch get", "get", each((key) => snapshot.get(key))],
  ["nuthatch getString", "get", each((key) => snapshot.getString(key))],
  ["nuthatch getMany", "get_many", manyOf],
  ["Map", "get", each((key) => map.get(key))],
  ["lmdb", "get", each((key) => lmdb.get(key))],
  ["better-sqlite3", "get", each((key) => sqlite.get(key))],
];
const results = systems.map(() => []);
for (const [, , run] of systems) run(keys);
for (let i = 0; i < Number(runs); i++) {
  for (const [number, [, , run]] of systems.entries()) results[number].push(measure(run, keys));
}
if (process.env.BENCH_OPEN_FILE) {
  systems.push(["nuthatch open", "open"]);
  results.push(await measureOpening(process.env.BENCH_OPEN_FILE));
}
for (const [number, [system, operation]] of systems.entries()) {
  const sorted = results[number].sort((a, b) => a - b);
  const ns = Number(sorted[Math.floor(sorted.length / 2)].toFixed(1));
  const [min, max] = [sorted[0], sorted.at(-1)].map((value) => Number(value.toFixed(1)));
  const language = "javascript";
  console.log(JSON.stringify({ language, system, operation, ns, min, max, runs: sorted.length }));
}
await lmdb.close();
fs.rmSync(folder, { recursive: true });
