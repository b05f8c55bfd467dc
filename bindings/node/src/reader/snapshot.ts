/** An open snapshot: one file, or a set of shards. */

import { MemorySource } from "../bytes/source.js";
import type { WindowSize } from "../bytes/windows.js";
import { closed, unsupported, wrongType } from "../error.js";
import { hasMagic } from "../format/header.js";
import { MANIFEST_MAGIC, TAG_TYPE } from "../format/layout.js";
import type { Manifest } from "../format/manifest.js";
import { decodeMetadata } from "../format/metadata.js";
import type { Value } from "../values/decode.js";
import {
  BOOL,
  BYTES,
  EMPTY_LIST,
  F32_LIST,
  F64,
  F64_LIST,
  I64,
  I64_LIST,
  STRING,
  STRING_LIST,
  nameOfType,
  type ValueType,
} from "../values/types.js";
import { SnapshotFile } from "./file.js";
import { keyOf, recordsOf, valueOf, type KeyForm } from "./iterate.js";
import { KeyHash, keyBuffer, type Key } from "./key.js";
import { statsOf, type Stats } from "./stats.js";
import { Verification, metadataOfFile } from "./verify.js";

/** Options for opening a snapshot from bytes in memory. */
export interface BufferOptions {
  /** Name of the bytes in errors. Default: `(memory)`. */
  readonly path?: string;
  /**
   * Whether bytes and lists are copies of the bytes in memory. Default: false; then they are views,
   * which must not be written to.
   */
  readonly copy?: boolean;
}

/** Options of iterations. */
export interface IterationOptions<F extends KeyForm = KeyForm> {
  /**
   * The form of keys: with `auto`, the default, a string if the key is UTF-8, otherwise a
   * `Uint8Array`; with `bytes`, always a `Uint8Array`. Both are copies.
   */
  readonly keys?: F;
}

/** A key in the form of an iteration. */
type KeyIn<F extends KeyForm> = F extends "bytes" ? Uint8Array : Key;

/** How long an asynchronous verification blocks the event loop at a time, in milliseconds. */
const VERIFY_MS = 10;

/**
 * An open snapshot: an immutable map from keys to typed values.
 *
 * A key is a string, which stands for its UTF-8, or a `Uint8Array`. Lookups return `undefined` for
 * a missing key. They throw a {@link SnapshotError} with the code `corrupt` or `unreadable` if they
 * read damaged bytes, `wrong-type` if a typed lookup finds another type, and `closed` after
 * {@link Snapshot.close}.
 *
 * Bytes and lists of numbers are views of the file, unless they are compressed or the option `copy`
 * is set. A view stays valid after `close`. It keeps the whole file mapped until the garbage
 * collector frees it, and it must not be written to.
 *
 * A snapshot belongs to the thread that opened it. Other worker threads open the file themselves;
 * all share its pages.
 */
export class Snapshot {
  /** The path that the snapshot was opened with, or `(memory)`. */
  readonly path: string;
  /** Number of entries. It stays the same after `close`. */
  readonly size: number;
  /** The file, unless this is a set of several shards or closed. */
  private single: SnapshotFile | undefined;
  private files: readonly SnapshotFile[];
  private readonly manifest: Manifest | undefined;
  private readonly hash: KeyHash;

  /** @internal */
  constructor(path: string, files: readonly SnapshotFile[], manifest?: Manifest) {
    this.path = path;
    this.files = files;
    this.single = files.length === 1 ? files[0] : undefined;
    this.manifest = manifest;
    this.size = files.reduce((sum, file) => sum + file.header.entries, 0);
    this.hash = new KeyHash(files[0]!.header.seed);
  }

  /**
   * Opens a snapshot from bytes in memory, without a copy if they begin at a multiple of 8 in their
   * `ArrayBuffer`. The bytes must not change, and the buffer must not be transferred, while the
   * snapshot is open.
   *
   * @throws SnapshotError with the code `not-a-snapshot`, `unsupported` or `corrupt`; the manifest
   *   of a set is `unsupported`, because its shards are other files
   */
  static fromBuffer(bytes: Uint8Array, options: BufferOptions = {}): Snapshot {
    return openBytes(bytes, options);
  }

  /**
   * Returns the value of a key, or `undefined` for a missing key. An empty list is an empty array.
   *
   * @throws SnapshotError with the code `corrupt`, `unreadable` or `closed`
   * @throws TypeError if the key is neither a string nor a `Uint8Array`
   * @throws RangeError if the value is longer than the longest string of the engine
   */
  get(key: Key): Value | undefined {
    const file = this.find(key);
    return file === undefined ? undefined : file.value();
  }

  /** Returns a value of type bytes: a view of the file, or a copy with the option `copy`. */
  getBytes(key: Key): Uint8Array | undefined {
    return this.getTyped(key, BYTES) as Uint8Array | undefined;
  }

  /** Returns a string. */
  getString(key: Key): string | undefined {
    return this.getTyped(key, STRING) as string | undefined;
  }

  /** Returns a boolean. */
  getBool(key: Key): boolean | undefined {
    return this.getTyped(key, BOOL) as boolean | undefined;
  }

  /** Returns an integer. */
  getI64(key: Key): bigint | undefined {
    return this.getTyped(key, I64) as bigint | undefined;
  }

  /** Returns a float. */
  getF64(key: Key): number | undefined {
    return this.getTyped(key, F64) as number | undefined;
  }

  /** Returns a list of integers. Reads an empty list of any type. */
  getI64List(key: Key): BigInt64Array | undefined {
    const value = this.getTyped(key, I64_LIST) as BigInt64Array | [] | undefined;
    return Array.isArray(value) ? new BigInt64Array(0) : value;
  }

  /** Returns a list of 64-bit floats. Reads an empty list of any type. */
  getF64List(key: Key): Float64Array | undefined {
    const value = this.getTyped(key, F64_LIST) as Float64Array | [] | undefined;
    return Array.isArray(value) ? new Float64Array(0) : value;
  }

  /** Returns a list of 32-bit floats. Reads an empty list of any type. */
  getF32List(key: Key): Float32Array | undefined {
    const value = this.getTyped(key, F32_LIST) as Float32Array | [] | undefined;
    return Array.isArray(value) ? new Float32Array(0) : value;
  }

  /** Returns a list of strings. Reads an empty list of any type. */
  getStringList(key: Key): string[] | undefined {
    return this.getTyped(key, STRING_LIST) as string[] | undefined;
  }

  /** Returns whether a key exists. Does not check the bytes of its value. */
  has(key: Key): boolean {
    return this.find(key) !== undefined;
  }

  /**
   * Returns the type of the value of a key, or `undefined` for a missing key. Does not check the
   * bytes of the value.
   */
  typeOf(key: Key): ValueType | undefined {
    const file = this.find(key);
    if (file === undefined) return undefined;
    file.checkReadable();
    return nameOfType(file.tag & TAG_TYPE);
  }

  /** Returns the values of keys, in their order; `undefined` for each missing key. */
  getMany(keys: Iterable<Key>): (Value | undefined)[] {
    return Array.from(keys, (key) => this.get(key));
  }

  /**
   * Iterates over all entries, in the order of the file: it is unrelated to the order of the keys,
   * and the same each time. The first damaged entry ends the iteration with an error, and so does
   * `close`.
   */
  entries(): Generator<[Key, Value], void, undefined>;
  entries<F extends KeyForm>(
    options: IterationOptions<F>,
  ): Generator<[KeyIn<F>, Value], void, undefined>;
  *entries(options: IterationOptions = {}): Generator<[Key, Value], void, undefined> {
    for (const file of this.openFiles()) {
      for (const record of recordsOf(file)) {
        this.checkOpen();
        yield [keyOf(file, record, options.keys ?? "auto"), valueOf(file, record)];
      }
    }
  }

  /** Iterates over all keys, in the order of the file. */
  keys(): Generator<Key, void, undefined>;
  keys<F extends KeyForm>(options: IterationOptions<F>): Generator<KeyIn<F>, void, undefined>;
  *keys(options: IterationOptions = {}): Generator<Key, void, undefined> {
    for (const file of this.openFiles()) {
      for (const record of recordsOf(file)) {
        this.checkOpen();
        yield keyOf(file, record, options.keys ?? "auto");
      }
    }
  }

  /** Iterates over all values, in the order of the file. */
  *values(): Generator<Value, void, undefined> {
    for (const file of this.openFiles()) {
      for (const record of recordsOf(file)) {
        this.checkOpen();
        yield valueOf(file, record);
      }
    }
  }

  /** Does the same as {@link Snapshot.entries}. */
  [Symbol.iterator](): Generator<[Key, Value], void, undefined> {
    return this.entries();
  }

  /** Returns statistics, from the headers of the files. */
  stats(): Stats {
    return statsOf(this.openFiles(), this.manifest?.metadata.length);
  }

  /**
   * Returns the metadata that the writer was given: values by name, in ascending order of the
   * names. The values are copies.
   */
  metadata(): Map<string, Uint8Array> {
    const [first] = this.openFiles();
    const { manifest } = this;
    return manifest === undefined
      ? metadataOfFile(first!)
      : decodeMetadata(manifest.metadata, manifest.metadataAt, this.path);
  }

  /**
   * Verifies every byte: checksums, offsets, values, and that a lookup finds every entry. Opening
   * checks headers and dictionaries only, and lookups check the bytes that they read. Runs in the
   * calling thread. It gives other events a turn about every 10 ms, but only between two partitions
   * of some 10,000 entries.
   *
   * @throws SnapshotError with the code `corrupt` for the first contradiction to the format,
   *   `unreadable` if a page could not be read, or `closed` if the snapshot is closed meanwhile
   */
  async verify(): Promise<void> {
    let started = Number.NEGATIVE_INFINITY;
    for (const _ of this.verification()) {
      if (Date.now() - started < VERIFY_MS) continue;
      await new Promise<void>((resolve) => setTimeout(resolve, 0));
      this.checkOpen();
      started = Date.now();
    }
  }

  /** Does the same as {@link Snapshot.verify}, and blocks until it is done. */
  verifySync(): void {
    for (const _ of this.verification());
  }

  /**
   * Checks that all bytes read so far came from the file. Lookups check this by themselves, but the
   * bytes of a view that was returned before can have become zeros.
   *
   * @throws SnapshotError with the code `unreadable` if a read met a page that is missing since the
   *   file was truncated, or that its device failed to read; `closed` after {@link Snapshot.close}
   */
  checkReadable(): void {
    for (const file of this.openFiles()) file.checkReadable();
  }

  /** Whether the snapshot is closed. */
  get isClosed(): boolean {
    return this.files.length === 0;
  }

  /**
   * Closes the snapshot: later lookups and iterations throw the error `closed`. A second call does
   * nothing. The files are unmapped when the garbage collector has freed all views of them. The
   * snapshot of a watch is closed by the watch.
   */
  close(): void {
    for (const file of this.files) file.windows.source.release();
    this.files = [];
    this.single = undefined;
  }

  /**
   * Says that another snapshot takes the place of this one, so that memory can be released soon
   * after the last reader has dropped it.
   *
   * @internal
   */
  retire(): void {
    for (const file of this.files) file.windows.source.retire();
  }

  /** Finds a key. Returns the file that has it, whose fields say where. */
  private find(key: Key): SnapshotFile | undefined {
    const { hash, single } = this;
    if (!keyBuffer.set(key)) return this.noFile();
    hash.hash(keyBuffer.view, keyBuffer.length);
    const file = single ?? this.shard();
    return file.find(keyBuffer, hash.low, hash.high) ? file : undefined;
  }

  /** Returns `undefined`, unless the snapshot is closed. */
  private noFile(): undefined {
    this.checkOpen();
    return undefined;
  }

  /** Returns the shard of the hashed key. */
  private shard(): SnapshotFile {
    const files = this.openFiles();
    return files[this.hash.shardOf(files.length)]!;
  }

  /** Returns a value that must have a type, or be an empty list if that is a type of lists. */
  private getTyped(key: Key, code: number): Value | undefined {
    const file = this.find(key);
    if (file === undefined) return undefined;
    const found = file.tag & TAG_TYPE;
    if (found !== code && !(found === EMPTY_LIST && code >= I64_LIST)) {
      file.checkReadable();
      throw wrongType(this.path, nameOfType(code), nameOfType(found));
    }
    return file.value();
  }

  private *verification(): Generator<void, void, undefined> {
    this.metadata();
    for (const file of this.openFiles()) yield* new Verification(file).run();
  }

  private openFiles(): readonly SnapshotFile[] {
    this.checkOpen();
    return this.files;
  }

  private checkOpen(): void {
    if (this.files.length === 0) throw closed(this.path);
  }
}

export interface Snapshot extends Disposable {}

// Not all engines have the symbol yet. It is a method, so that `using` closes a snapshot.
if (typeof Symbol.dispose === "symbol") {
  Object.defineProperty(Snapshot.prototype, Symbol.dispose, {
    configurable: true,
    writable: true,
    value(this: Snapshot): void {
      this.close();
    },
  });
}

/**
 * Opens a snapshot from bytes in memory.
 *
 * @param size the size of windows, for tests
 */
export function openBytes(
  bytes: Uint8Array,
  { path = "(memory)", copy = false }: BufferOptions = {},
  size?: WindowSize,
): Snapshot {
  if (hasMagic(bytes, MANIFEST_MAGIC)) {
    const found = "a manifest, which names the files of its shards: open it by its path";
    throw unsupported(path, 0, "the bytes of one file", found);
  }
  const file = new SnapshotFile(new MemorySource(bytes, path), copy, size);
  return new Snapshot(path, [file]);
}
