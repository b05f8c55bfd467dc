/** Statistics of a snapshot. */

import { KIND_METADATA, LINE_LEN, SLOTS, VERSION_MAJOR } from "../format/layout.js";
import { TYPE_NAMES, type ValueType } from "../values/types.js";
import type { SnapshotFile } from "./file.js";

/**
 * Statistics with the names of `nuthatch info --json`, from the headers of the files. For a set
 * they are sums, except `version` and `max_probe`, which are the maximum of all shards. Numbers
 * above 2^53 are rounded.
 */
export interface Stats {
  /** Version of the format: major and minor number. */
  version: string;
  /** Number of shards; 0 for a file that was opened without a manifest. */
  shards: number;
  /** Length of the file in bytes; for a set, of all shards without the manifest. */
  file_bytes: number;
  /** Number of entries. */
  entries: number;
  /** Sum of the lengths of all keys in bytes. */
  key_bytes: number;
  /** Sum of the lengths of all values in bytes, decompressed. */
  value_bytes: number;
  /** Sum of the lengths of all stored values in bytes; a shared value counts once. */
  stored_value_bytes: number;
  /** Number of entries that refer to a value that another entry stores. */
  shared_entries: number;
  /** Number of entries whose value is compressed. */
  compressed_entries: number;
  /** Length of the compression dictionary in bytes. */
  dictionary_bytes: number;
  /** Length of the metadata in bytes; for a set, of that in the manifest. */
  metadata_bytes: number;
  /** Length of the index in bytes. */
  index_bytes: number;
  /** Length of the data in bytes. */
  data_bytes: number;
  /** Number of partitions of the index. */
  partitions: number;
  /** Number of lines of the index. */
  lines: number;
  /** Maximum number of lines from the home line of a key to the line that holds it. */
  max_probe: number;
  /** Seed of the key hash, the same in all shards. */
  seed: bigint;
  /** Fraction of the slots of the index that are in use, from 0 to 1. */
  load: number;
  /** Number of bytes per entry that the file takes beyond keys and stored values. */
  overhead_bytes_per_entry: number;
  /** Number of entries of each type that occurs. */
  entries_by_type: Partial<Record<ValueType, number>>;
}

/**
 * Returns the statistics of files.
 *
 * @param metadataBytes length of the metadata of a set, or `undefined` for a single file
 */
export function statsOf(files: readonly SnapshotFile[], metadataBytes: number | undefined): Stats {
  const headers = files.map((file) => file.header);
  const sum = (field: (header: (typeof headers)[number]) => number | bigint) =>
    headers.reduce((all, header) => all + Number(field(header)), 0);
  const ofMetadata = (header: (typeof headers)[number]) =>
    header.additional.find(({ kind }) => kind === KIND_METADATA)?.section.length ?? 0;
  const file_bytes = sum((header) => header.fileLen);
  const entries = sum((header) => header.entries);
  const key_bytes = sum((header) => header.keyBytes);
  const stored_value_bytes = sum((header) => header.storedValueBytes);
  const lines = sum((header) => header.index.length / LINE_LEN);
  const overhead = Math.max(file_bytes - key_bytes - stored_value_bytes, 0);
  const entries_by_type: Partial<Record<ValueType, number>> = {};
  for (const [code, name] of TYPE_NAMES.entries()) {
    const count = sum((header) => header.entriesByType[code] ?? 0);
    if (name !== undefined && count > 0) entries_by_type[name] = count;
  }
  return {
    version: `${VERSION_MAJOR}.${Math.max(...headers.map((header) => header.versionMinor))}`,
    shards: metadataBytes === undefined ? 0 : files.length,
    file_bytes,
    entries,
    key_bytes,
    value_bytes: sum((header) => header.valueBytes),
    stored_value_bytes,
    shared_entries: sum((header) => header.sharedEntries),
    compressed_entries: sum((header) => header.compressedEntries),
    dictionary_bytes: sum((header) => header.dictionary.length),
    metadata_bytes: metadataBytes ?? sum(ofMetadata),
    index_bytes: sum((header) => header.index.length),
    data_bytes: sum((header) => header.data.length),
    partitions: sum((header) => header.partitions),
    lines,
    max_probe: Math.max(...headers.map((header) => header.maxProbe)),
    seed: headers[0]?.seed ?? 0n,
    load: entries / (Math.max(lines, 1) * SLOTS),
    overhead_bytes_per_entry: entries === 0 ? 0 : overhead / entries,
    entries_by_type,
  };
}
