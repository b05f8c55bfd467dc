/** Opening of snapshots by their path: files, and sets of shards. */

import * as path from "node:path";
import type { Source } from "../bytes/source.js";
import { SnapshotError, corrupt, unreadable } from "../error.js";
import { hasMagic } from "../format/header.js";
import { HEADER, MANIFEST_MAGIC } from "../format/layout.js";
import { MAX_MANIFEST_LEN, readManifest, type Manifest } from "../format/manifest.js";
import { SnapshotFile } from "../reader/file.js";
import { Snapshot } from "../reader/snapshot.js";
import { openFile, openFileSync, type Residency } from "./files.js";

/** Options for opening a snapshot. */
export interface OpenOptions {
  /** Where the bytes of the files are kept. Default: `mapped`. */
  readonly residency?: Residency;
  /**
   * Whether bytes and lists are copies of the bytes in the file. Default: false; then they are
   * views, which must not be written to.
   */
  readonly copy?: boolean;
}

/**
 * Opens a snapshot: a file, or a set of shards by the path of its manifest. Checks headers and
 * dictionaries only, so the time does not depend on the size of the files, unless they are copied.
 *
 * @throws SnapshotError with the code `io` if a file cannot be opened or is not a regular file,
 *   `not-a-snapshot` or `unsupported` for another kind of file or version, and `corrupt` or
 *   `unreadable` for a damaged file
 * @throws TypeError if an option is invalid
 * @throws Error if the add-on cannot be loaded; the message says how to build it
 */
export async function open(file: string, options: OpenOptions = {}): Promise<Snapshot> {
  const residency = options.residency ?? "mapped";
  const steps = opening(file, options.copy ?? false);
  let step = steps.next();
  while (step.done !== true) {
    let source: Source;
    try {
      source = await openFile(step.value, residency);
    } catch (error) {
      step = steps.throw(error);
      continue;
    }
    step = steps.next(source);
  }
  return step.value;
}

/** Does the same as {@link open}, and blocks until it is done. */
export function openSync(file: string, options: OpenOptions = {}): Snapshot {
  const residency = options.residency ?? "mapped";
  const steps = opening(file, options.copy ?? false);
  let step = steps.next();
  while (step.done !== true) {
    let source: Source;
    try {
      source = openFileSync(step.value, residency);
    } catch (error) {
      step = steps.throw(error);
      continue;
    }
    step = steps.next(source);
  }
  return step.value;
}

/** Opens a snapshot. Yields paths, and continues with their sources or with an error. */
function* opening(file: string, copy: boolean): Generator<string, Snapshot, Source> {
  const sources: Source[] = [];
  try {
    let source = yield file;
    sources.push(source);
    let bytes = firstBytes(source);
    for (;;) {
      if (!hasMagic(bytes, MANIFEST_MAGIC)) {
        return new Snapshot(file, [new SnapshotFile(source, copy)]);
      }
      const manifest = decodeManifest(source, bytes);
      try {
        const shards = yield* openingShards(file, manifest, copy, sources);
        source.release();
        return new Snapshot(file, shards, manifest);
      } catch (error) {
        if (!isMissingFile(error)) throw error;
        // The writer of a new set or file removes the shards of the set that it replaces.
        source = yield file;
        sources.push(source);
        const now = firstBytes(source);
        if (Buffer.compare(now, bytes) === 0) throw error;
        bytes = now;
      }
    }
  } catch (error) {
    for (const source of sources) source.release();
    throw error;
  }
}

/** Returns a copy of the bytes of a manifest, or the first bytes of another file. */
function firstBytes(source: Source): Uint8Array {
  const magic = source.length < 8 ? new Uint8Array(0) : source.view(0, 8);
  if (!hasMagic(magic, MANIFEST_MAGIC)) return magic;
  return source.view(0, Math.min(source.length, MAX_MANIFEST_LEN)).slice();
}

function decodeManifest(source: Source, bytes: Uint8Array): Manifest {
  // Zeros in the place of a page that cannot be read are not damage of the file.
  if (source.isLost()) throw unreadable(source.path);
  return readManifest(bytes, source.length, source.path);
}

/** Opens the shards of a manifest. Adds their sources to `sources`. */
function* openingShards(
  file: string,
  manifest: Manifest,
  copy: boolean,
  sources: Source[],
): Generator<string, SnapshotFile[], Source> {
  const shards: SnapshotFile[] = [];
  const folder = path.dirname(file);
  for (const [number, { name }] of manifest.shards.entries()) {
    const source = yield path.join(folder, name);
    sources.push(source);
    const shard = new SnapshotFile(source, copy);
    checkShard(shard, manifest, number);
    shards.push(shard);
  }
  return shards;
}

/** Compares a shard with the manifest. */
function checkShard(
  { header, path: file }: SnapshotFile,
  manifest: Manifest,
  number: number,
): void {
  const entry = manifest.shards[number]!;
  for (const [at, what, expected, found] of [
    [HEADER.hash, "checksum", entry.headerHash, header.hash],
    [HEADER.seed, "seed", manifest.seed, header.seed],
    [HEADER.fileLen, "file length", entry.fileLen, BigInt(header.fileLen)],
    [HEADER.entries, "number of entries", entry.entries, BigInt(header.entries)],
  ] as const) {
    if (found !== expected) {
      throw corrupt(file, at, `the ${what} in the manifest, ${expected}`, found);
    }
  }
  const shards = manifest.shards.length;
  if (header.shards !== shards || header.shard !== number) {
    const found = `shard ${header.shard} of ${header.shards}`;
    throw corrupt(file, HEADER.shard, `shard ${number} of ${shards}`, found);
  }
}

function isMissingFile(error: unknown): boolean {
  if (!(error instanceof SnapshotError) || error.code !== "io") return false;
  return (error.cause as { code?: unknown }).code === "ENOENT";
}
