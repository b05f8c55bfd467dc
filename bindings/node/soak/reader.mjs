// A reader for scripts/follow_soak: node reader.mjs PATH INTERVAL_MS KEYS.
//
// Watches the snapshot at PATH, in which the keys key:0 to key:KEYS-1 all have the number of the
// generation as text. Prints "generation N" when it reads a later one than before. If it finds
// another value than expected, it prints both and fails. Runs until it is killed.

import { watch } from "@nuthatch/snapshot";
import { setTimeout } from "node:timers/promises";

/** Milliseconds between two groups of lookups. Six readers share the processors. */
const PAUSE_MS = 1;

const [file, interval, keys] = process.argv.slice(2);
if (keys === undefined) {
  console.error("usage: node reader.mjs PATH INTERVAL_MS KEYS");
  process.exit(2);
}

function value(snapshot, key) {
  const text = snapshot.getString(`key:${key}`);
  const number = Number.parseInt(text ?? "", 10);
  if (Number.isNaN(number)) throw new Error(`key:${key}: expected a number, found ${text}`);
  return number;
}

/** Returns the generation of a snapshot. */
async function read(snapshot) {
  const generation = value(snapshot, 0);
  for (let key = 1; key < Number(keys); key++) {
    // The follower may replace the file here: the snapshot stays readable.
    if (key === Math.floor(Number(keys) / 2)) await setTimeout(PAUSE_MS);
    const found = value(snapshot, key);
    if (found !== generation) {
      throw new Error(`key:${key}: expected ${generation}, found ${found}`);
    }
  }
  return generation;
}

try {
  const watched = await watch(file, { interval: Number(interval) });
  for (let last = 0; ;) {
    const generation = await read(watched.current);
    if (generation < last) {
      throw new Error(`key:0: expected ${last} or more, found ${generation}`);
    }
    if (generation > last) console.log(`generation ${generation}`);
    last = generation;
  }
} catch (error) {
  console.log(error.message);
  process.exitCode = 1;
}
