/** Opening of snapshots by their path: files, and sets of shards. */

import * as path from "node:path";
import type { Source } from "../bytes/source.js";
import { SnapshotError, corrupt, ioError, unreadable } from "../error.js";
import { hasMagic } from "../format/header.js";
import { HEADER, MANIFEST_MAGIC } from "../format/layout.js";
import { MAX_MANIFEST_LEN, readManifest, type Manifest } from "../format/manifest.js";
import { SnapshotFile } from "../reader/file.js";
import { Snapshot } from "../reader/snapshot.js";
import { openFile, openFileSync, realPath, realPathSync, type Residency } from "./files.js";

/** Maximum number of lookups of a path at which no file is found. */
const MAX_LOOKUPS = 8;

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
  const calls = opening(file, options.copy ?? false);
  let call = calls.next();
  while (call.done !== true) {
    const { name, path } = call.value;
    let result: Source | string | undefined;
    try {
      result = await (name === "open" ? openFile(path, residency) : realPath(path));
    } catch (error) {
      call = calls.throw(error);
      continue;
    }
    call = calls.next(result);
  }
  return call.value;
}

/** Does the same as {@link open}, and blocks until it is done. */
export function openSync(file: string, options: OpenOptions = {}): Snapshot {
  const residency = options.residency ?? "mapped";
  const calls = opening(file, options.copy ?? false);
  let call = calls.next();
  while (call.done !== true) {
    const { name, path } = call.value;
    let result: Source | string | undefined;
    try {
      result = name === "open" ? openFileSync(path, residency) : realPathSync(path);
    } catch (error) {
      call = calls.throw(error);
      continue;
    }
    call = calls.next(result);
  }
  return call.value;
}

/** A call of the system: opens a file, or resolves the symbolic links of a path. */
interface SystemCall {
  readonly name: "open" | "realpath";
  readonly path: string;
}

/** Yields calls of the system, and continues with their results or with an error. */
type Calls<T> = Generator<SystemCall, T, Source | string | undefined>;

/** A manifest and its place. */
interface FoundManifest {
  readonly source: Source;
  readonly bytes: Uint8Array;
  /** The absolute path without symbolic links; undefined if the file was removed. */
  readonly realPath: string | undefined;
  /** The folder of its shards. */
  readonly folder: string;
}

/** Opens a snapshot. */
function* opening(file: string, copy: boolean): Calls<Snapshot> {
  const sources: Source[] = [];
  try {
    let found = yield* finding(file, sources);
    for (;;) {
      const { source, bytes } = found;
      if (!hasMagic(bytes, MANIFEST_MAGIC)) {
        return new Snapshot(file, [new SnapshotFile(source, copy)]);
      }
      const manifest = decodeManifest(found, file);
      try {
        const shards = yield* openingShards(found.folder, manifest, copy, sources);
        source.release();
        return new Snapshot(file, shards, manifest);
      } catch (error) {
        if (!isMissingFile(error)) throw error;
        // The writer of a new set or file removes the shards of the set that it replaces, and a
        // symbolic link may have been switched to another set.
        const now = yield* finding(file, sources);
        const isSame = Buffer.compare(now.bytes, bytes) === 0 && now.realPath === found.realPath;
        if (isSame) throw error;
        found = now;
      }
    }
  } catch (error) {
    for (const source of sources) source.release();
    throw error;
  }
}

/**
 * Opens the file at a path. If it is a manifest and the path is a symbolic link to another folder,
 * opens the manifest again at its real path, so that it is the one of the folder whose shards are
 * opened. Adds sources to `sources`.
 */
function* finding(file: string, sources: Source[]): Calls<FoundManifest> {
  const source = yield* openingLinked(file, sources);
  const bytes = firstBytes(source);
  const folder = path.dirname(file);
  if (!hasMagic(bytes, MANIFEST_MAGIC)) return { source, bytes, realPath: undefined, folder };
  const realPath = yield* resolving(file);
  if (realPath === undefined || path.dirname(realPath) === (yield* resolving(folder))) {
    return { source, bytes, realPath, folder };
  }
  const found = { source, bytes, realPath, folder: path.dirname(realPath) };
  try {
    const linked = yield* openingFile(realPath, sources);
    const linkedBytes = firstBytes(linked);
    if (!hasMagic(linkedBytes, MANIFEST_MAGIC)) return found;
    return { ...found, source: linked, bytes: linkedBytes };
  } catch (error) {
    // A manifest that has just been removed has no shards either, so opening them is tried again.
    if (isMissingFile(error)) return found;
    const isIo = error instanceof SnapshotError && error.code === "io";
    throw isIo ? ioError(file, "open", error.cause) : error;
  }
}

/**
 * Opens a file whose path can have symbolic links. Looks a missing file up again: while the system
 * resolves the path, a link can be switched to another file and the old one removed.
 */
function* openingLinked(file: string, sources: Source[]): Calls<Source> {
  for (let lookups = 1; ; lookups++) {
    try {
      return yield* openingFile(file, sources);
    } catch (error) {
      if (lookups === MAX_LOOKUPS || !isMissingFile(error)) throw error;
    }
  }
}

/** Opens a file. Adds its source to `sources`. */
function* openingFile(file: string, sources: Source[]): Calls<Source> {
  const source = (yield { name: "open", path: file }) as Source;
  sources.push(source);
  return source;
}

function* resolving(file: string): Calls<string | undefined> {
  return (yield { name: "realpath", path: file }) as string | undefined;
}

/** Returns a copy of the bytes of a manifest, or the first bytes of another file. */
function firstBytes(source: Source): Uint8Array {
  const magic = source.length < 8 ? new Uint8Array(0) : source.view(0, 8);
  if (!hasMagic(magic, MANIFEST_MAGIC)) return magic;
  return source.view(0, Math.min(source.length, MAX_MANIFEST_LEN)).slice();
}

/** Decodes a manifest. Its errors have the path `file`. */
function decodeManifest({ source, bytes }: FoundManifest, file: string): Manifest {
  // Zeros in the place of a page that cannot be read are not damage of the file.
  if (source.isLost()) throw unreadable(file);
  return readManifest(bytes, source.length, file);
}

/** Opens the shards of a manifest. Adds their sources to `sources`. */
function* openingShards(
  folder: string,
  manifest: Manifest,
  copy: boolean,
  sources: Source[],
): Calls<SnapshotFile[]> {
  const shards: SnapshotFile[] = [];
  for (const [number, { name }] of manifest.shards.entries()) {
    const source = yield* openingFile(path.join(folder, name), sources);
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
