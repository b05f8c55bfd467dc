/** The manifest of a set: decoding and validation. */

import { checksumOf } from "../hash/checksum.js";
import { hex } from "../error.js";
import { Fields, compareChecksums } from "./fields.js";
import {
  MANIFEST,
  MANIFEST_LEN,
  MAX_METADATA_LEN,
  MAX_SHARDS,
  SHARD_ENTRY,
  SHARD_ENTRY_LEN,
  VERSION_MAJOR,
  VERSION_MINOR,
} from "./layout.js";

/** What a manifest says about a shard. */
export interface ShardEntry {
  /** Name of the file, which is in the folder of the manifest. */
  readonly name: string;
  readonly fileLen: bigint;
  readonly entries: bigint;
  readonly headerHash: bigint;
}

/** Maximum length of a manifest in bytes. */
export const MAX_MANIFEST_LEN = MANIFEST_LEN + SHARD_ENTRY_LEN * MAX_SHARDS + MAX_METADATA_LEN;

/** A validated manifest. */
export interface Manifest {
  readonly versionMinor: number;
  readonly seed: bigint;
  readonly shards: readonly ShardEntry[];
  /** The metadata of the set. */
  readonly metadata: Uint8Array;
  /** The offset of the metadata in the manifest. */
  readonly metadataAt: number;
}

/**
 * Decodes and validates a manifest, in the order of the format's page.
 *
 * @param bytes the first bytes of the file, which begin with the magic of a manifest: all of them,
 *   or {@link MAX_MANIFEST_LEN} if there are more
 * @param fileLen length of the file in bytes
 * @throws SnapshotError with the code `unsupported` or `corrupt`
 */
export function readManifest(bytes: Uint8Array, fileLen: number, path: string): Manifest {
  const raw = new Fields(bytes.subarray(0, MANIFEST_LEN), path);
  if (bytes.length < MANIFEST_LEN) {
    const found = `the end of the file after ${bytes.length} bytes`;
    throw raw.corrupt(bytes.length, `a header of ${MANIFEST_LEN} bytes`, found);
  }
  checkHeader(raw, fileLen);
  const count = raw.u32(MANIFEST.shards);
  const metadataAt = MANIFEST_LEN + SHARD_ENTRY_LEN * count;
  const table = bytes.subarray(MANIFEST_LEN, metadataAt);
  const metadata = bytes.slice(metadataAt);
  const tableHash = raw.u64(MANIFEST.tableHash);
  compareChecksums(path, MANIFEST.tableHash, "the table", tableHash, checksumOf(table));
  const metadataHash = raw.u64(MANIFEST.metadataHash);
  compareChecksums(path, MANIFEST.metadataHash, "the metadata", metadataHash, checksumOf(metadata));
  const shards = Array.from({ length: count }, (_, i) => shardEntry(table, i));
  const sum = shards.reduce((all, shard) => all + shard.entries, 0n);
  raw.requireEqual(MANIFEST.entries, "the entries of all shards", raw.u64(MANIFEST.entries), sum);
  const versionMinor = raw.u16(MANIFEST.versionMinor);
  return { versionMinor, seed: raw.u64(MANIFEST.seed), shards, metadata, metadataAt };
}

function checkHeader(raw: Fields, fileLen: number): void {
  raw.checkVersion(MANIFEST.versionMajor, VERSION_MAJOR);
  raw.checkHash(MANIFEST.hash, "the header of the manifest");
  const flags = raw.u32(MANIFEST.flags);
  if (flags !== 0) throw raw.unsupported(MANIFEST.flags, "no flags", `flags ${flags}`);
  raw.requireEqual(
    MANIFEST.headerLen,
    "the header length",
    MANIFEST_LEN,
    raw.u32(MANIFEST.headerLen),
  );
  const fileLenAt = MANIFEST.fileLen;
  raw.requireEqual(fileLenAt, "the file length", raw.u64(fileLenAt), BigInt(fileLen));
  const shards = raw.u32(MANIFEST.shards);
  raw.within(MANIFEST.shards, "the number of shards", 1, MAX_SHARDS, shards);
  const metadataLen = raw.number(MANIFEST.metadataLen);
  raw.within(MANIFEST.metadataLen, "the length of the metadata", 0, MAX_METADATA_LEN, metadataLen);
  const computed = MANIFEST_LEN + SHARD_ENTRY_LEN * shards + metadataLen;
  raw.requireEqual(fileLenAt, "the file length", computed, fileLen);
  if (raw.u16(MANIFEST.versionMinor) <= VERSION_MINOR) {
    raw.checkZeros(MANIFEST.reserved, MANIFEST.hash);
  }
}

function shardEntry(table: Uint8Array, number: number): ShardEntry {
  const view = new DataView(table.buffer, table.byteOffset + SHARD_ENTRY_LEN * number);
  const headerHash = view.getBigUint64(SHARD_ENTRY.headerHash, true);
  return {
    name: `${String(number).padStart(5, "0")}-${hex(headerHash)}.shard`,
    fileLen: view.getBigUint64(SHARD_ENTRY.fileLen, true),
    entries: view.getBigUint64(SHARD_ENTRY.entries, true),
    headerHash,
  };
}
