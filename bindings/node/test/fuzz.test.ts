// Random damage gives documented errors or other values, but never a crash, a hang or another
// error.
//
// NUTHATCH_FUZZ_MUTATIONS is the number of mutations (default 10000), NUTHATCH_FUZZ_SEED the seed.

import { SnapshotError } from "@nuthatch/snapshot";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { checksumOf } from "../dist/cjs/hash/checksum.js";
import { openBytes } from "../dist/cjs/reader/snapshot.js";
import { random, type Random } from "./random.js";
import { keyOf } from "./values.js";
import { VECTORS, documentOf, goodFiles } from "./vectors.js";

const MUTATIONS = Number(process.env["NUTHATCH_FUZZ_MUTATIONS"] ?? 10_000);
const SEED = Number(process.env["NUTHATCH_FUZZ_SEED"] ?? 1);
const MAX_FILE = 10_000;
/** Small windows, so that records cross their ends. */
const WINDOWS = { stride: 1024, overlap: 1024 };
const CODES = new Set(["not-a-snapshot", "unsupported", "corrupt", "wrong-type"]);

const files = goodFiles()
  .filter((name) => !name.includes("set-"))
  .map((name) => ({ name, bytes: fs.readFileSync(path.join(VECTORS, name)) }))
  .filter(({ bytes }) => bytes.length < MAX_FILE);
const keys = new Map(files.map(({ name }) => [name, keysOf(name)]));

function keysOf(name: string) {
  const { entries, absent } = documentOf(name);
  return [...entries.map(({ key }) => key), ...absent].map(keyOf);
}

/** Changes some bytes, or the length. */
function mutate(good: Buffer, next: Random): Buffer {
  let bytes = Buffer.from(good);
  for (let count = 1 + next(4); count > 0; count--) {
    const at = next(bytes.length);
    const kind = next(10);
    if (kind < 4) bytes[at]! ^= 1 << next(8);
    else if (kind < 7) bytes[at] = next(256);
    else if (kind === 7) bytes.fill(next(2) * 255, at, Math.min(at + 1 + next(16), bytes.length));
    else if (kind === 8) bytes.copy(bytes, at, next(bytes.length), bytes.length);
    else if (next(4) === 0) bytes = Buffer.from(bytes.subarray(0, Math.max(at, 1)));
  }
  return bytes;
}

/** Corrects the checksums of a file, as far as its header says where they are. */
function mend(bytes: Buffer): void {
  if (bytes.length < 512) return;
  const number = (at: number) => Number(bytes.readBigUInt64LE(at));
  const write = (at: number, from: number, len: number) => {
    if (from + len <= bytes.length)
      bytes.writeBigUInt64LE(checksumOf(bytes.subarray(from, from + len)), at);
  };
  const [directory, index, data] = [number(72), number(88), number(104)] as const;
  const partitions = 2 ** Math.min(bytes.readUInt32LE(40), 4);
  for (let i = 0; i < partitions && directory + 32 * i + 32 <= bytes.length; i++) {
    const entry = directory + 32 * i;
    const lines = 64 * bytes.readUInt32LE(44);
    write(entry + 16, index + lines * i, lines);
    write(entry + 24, data + number(entry), number(entry + 8));
  }
  write(120, number(56), number(64));
  write(128, directory, number(80));
  write(504, 0, 504);
}

/** Calls a function, which may throw a documented error. */
function allow(run: () => void): void {
  try {
    run();
  } catch (error) {
    if (!(error instanceof SnapshotError) || !CODES.has(error.code)) throw error;
  }
}

test(`${MUTATIONS} random mutations of files give documented errors only`, () => {
  const next = random(SEED);
  for (let i = 0; i < MUTATIONS; i++) {
    const { name, bytes: good } = files[next(files.length)]!;
    const bytes = mutate(good, next);
    if (next(2) === 0) mend(bytes);
    try {
      check(bytes, keys.get(name)!, next(2) === 0);
    } catch (error) {
      const { stack } = error as Error;
      throw new Error(`mutation ${i} of seed ${SEED}: ${name}: ${stack}`, { cause: error });
    }
  }
});

function check(bytes: Buffer, found: ReturnType<typeof keysOf>, hasSmallWindows: boolean): void {
  allow(() => {
    const copy = new Uint8Array(bytes);
    const snapshot = openBytes(copy, {}, hasSmallWindows ? WINDOWS : undefined);
    for (const key of found) allow(() => snapshot.get(key));
    for (const key of found.slice(0, 3)) allow(() => snapshot.getStringList(key));
    allow(() => void [...snapshot]);
    allow(() => void snapshot.metadata());
    allow(() => snapshot.verifySync());
  });
}
