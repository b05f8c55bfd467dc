/** Verification of every byte of a file. */

import { decodeMetadata } from "../format/metadata.js";
import type { Section } from "../format/header.js";
import {
  ADDITIONAL,
  DIRECTORY,
  DIRECTORY_ENTRY_LEN,
  HEADER,
  HEADER_LEN,
  KIND_METADATA,
  LINE,
  LINE_LEN,
  MAX_SHIFT,
  MAX_SHORT_RECORD,
  SECTION_ALIGN,
  SLOTS,
  TAG_COMPRESSED,
  TAG_SHARED,
  TAG_TYPE,
  alignUp,
} from "../format/layout.js";
import { Window } from "../bytes/windows.js";
import { decodeValue } from "../values/decode.js";
import { nameOfType } from "../values/types.js";
import type { SnapshotFile } from "./file.js";
import { KeyHash, keyBuffer } from "./key.js";
import type { Record } from "./record.js";

/** The data of a partition, with offsets in the file. */
interface Partition {
  readonly number: number;
  readonly begin: number;
  readonly end: number;
}

/** Returns the metadata of a file, after checking its checksum and its form. */
export function metadataOfFile(file: SnapshotFile): Map<string, Uint8Array> {
  const found = file.header.additional.find(({ kind }) => kind === KIND_METADATA);
  if (found === undefined) return new Map();
  file.checkHash(found.at + ADDITIONAL.checksum, "the metadata", found.section, found.checksum);
  const bytes = file.section(found.section).slice();
  const pairs = decodeMetadata(bytes, found.section.offset, file.path);
  file.checkReadable();
  return pairs;
}

/** The verification of one file, in the order of the format's page. */
export class Verification {
  private readonly file: SnapshotFile;
  private readonly hash: KeyHash;
  private entries = 0;
  private keyBytes = 0n;
  private valueBytes = 0n;
  private storedValueBytes = 0n;
  private sharedEntries = 0;
  private compressedEntries = 0;
  private readonly byType = new Array<number>(16).fill(0);
  /** The offset at which the last record of the partition ended. */
  private recordEnd = 0;

  constructor(file: SnapshotFile) {
    this.file = file;
    this.hash = new KeyHash(file.header.seed);
  }

  /**
   * Verifies the file. Yields after each partition, so that the caller can do other work.
   *
   * @throws SnapshotError for the first contradiction to the format
   */
  *run(): Generator<void, void, undefined> {
    const { file } = this;
    this.verifySections();
    const { directory, directoryHash } = file.header;
    file.checkHash(HEADER.directoryHash, "the directory", directory, directoryHash);
    this.verifyDirectory();
    for (let number = 0; number < file.header.partitions; number++) {
      this.verifyPartition(this.partition(number));
      yield;
    }
    this.verifyCounts();
    file.checkReadable();
  }

  /** Checks the zeros between sections, and the checksums of all sections but the partitions. */
  private verifySections(): void {
    const { file } = this;
    const { header } = file;
    let end = HEADER_LEN;
    for (const { offset, length } of [
      header.dictionary,
      header.directory,
      header.index,
      header.data,
    ]) {
      this.verifyZeros(end, offset);
      end = offset + length;
    }
    const { dictionary, dictionaryHash } = header;
    file.checkHash(HEADER.dictionaryHash, "the dictionary", dictionary, dictionaryHash);
    for (const { at, kind, section, checksum } of header.additional) {
      this.verifyZeros(end, section.offset);
      const what = `the additional section of kind ${kind}`;
      file.checkHash(at + ADDITIONAL.checksum, what, section, checksum);
      end = section.offset + section.length;
    }
    metadataOfFile(file);
  }

  /** Checks the offsets and lengths of all partitions, and the zeros between them. */
  private verifyDirectory(): void {
    const { file } = this;
    const { data, directory, partitions } = file.header;
    const dataEnd = data.offset + data.length;
    let expected = data.offset;
    for (let number = 0; number < partitions; number++) {
      const at = directory.offset + DIRECTORY_ENTRY_LEN * number;
      const { begin, end } = this.partition(number);
      if (begin !== expected) {
        const what = `the data of partition ${number} at ${expected - data.offset}`;
        throw file.corrupt(at, what, begin - data.offset);
      }
      if (end > dataEnd) {
        const what = `at most ${dataEnd - begin} bytes of data in partition ${number}`;
        throw file.corrupt(at + DIRECTORY.dataLen, what, end - begin);
      }
      expected = data.offset + alignUp(end - data.offset, SECTION_ALIGN);
      this.verifyZeros(end, Math.min(expected, dataEnd));
    }
    const length = alignUp(expected - data.offset + MAX_SHORT_RECORD, SECTION_ALIGN);
    if (length !== data.length) {
      throw file.corrupt(HEADER.data + 8, `${data.length} bytes of data`, length);
    }
    this.verifyZeros(expected, dataEnd);
  }

  /** Returns a partition. Offsets that are not valid are rounded, and not within the file. */
  private partition(number: number): Partition {
    const { begin, view } = this.entry(number);
    const data = this.file.header.data.offset;
    const offset = Number(view.getBigUint64(begin + DIRECTORY.dataOffset, true));
    const length = Number(view.getBigUint64(begin + DIRECTORY.dataLen, true));
    return { number, begin: data + offset, end: data + offset + length };
  }

  /** Returns a view with an entry of the directory, and the offset of the entry in the view. */
  private entry(number: number): { view: DataView; begin: number } {
    const at = this.file.header.directory.offset + DIRECTORY_ENTRY_LEN * number;
    const { view, start } = this.file.windows.range(at, DIRECTORY_ENTRY_LEN);
    return { view, begin: at - start };
  }

  private verifyPartition(partition: Partition): void {
    const { file } = this;
    const { number, begin, end } = partition;
    const lines = file.header.linesPerPartition;
    const at = file.header.directory.offset + DIRECTORY_ENTRY_LEN * number;
    const offset = file.header.index.offset + LINE_LEN * lines * number;
    const index = { offset, length: LINE_LEN * lines };
    this.verifyStoredHash(at + DIRECTORY.indexHash, `the index of partition ${number}`, index);
    const data = { offset: begin, length: end - begin };
    this.verifyStoredHash(at + DIRECTORY.dataHash, `the data of partition ${number}`, data);
    this.recordEnd = begin;
    for (let line = 0; line < lines; line++) {
      this.verifyLine(lines * number + line, offset + LINE_LEN * line, end);
    }
    this.verifyZeros(this.recordEnd, end);
    file.checkReadable();
  }

  /** Checks the checksum of a section against the one at an offset of the file. */
  private verifyStoredHash(at: number, what: string, section: Section): void {
    const { view, start } = this.file.windows.range(at, 8);
    this.file.checkHash(at, what, section, view.getBigUint64(at - start, true));
  }

  /** Checks a line and its records. `end` is the offset at which the data of the partition ends. */
  private verifyLine(number: number, at: number, end: number): void {
    const { file } = this;
    const window = file.windows.at(at);
    const { view } = window;
    const begin = at - window.start;
    const shift = view.getUint8(begin + LINE.shift);
    if (shift > MAX_SHIFT) {
      throw file.corrupt(at + LINE.shift, `a shift of at most ${MAX_SHIFT}`, shift);
    }
    let used = 0;
    while (used < SLOTS && view.getUint16(begin + 2 * used, true) !== 0) used++;
    for (let slot = used; slot < SLOTS; slot++) {
      if (view.getUint16(begin + 2 * slot, true) !== 0) {
        throw file.corrupt(at, "slots in use before free ones", `a free slot ${used}`);
      }
    }
    for (let slot = used; slot < SLOTS; slot++) {
      const offset = view.getUint16(begin + LINE.offsets + 2 * slot, true);
      if (offset !== 0) {
        const field = at + LINE.offsets + 2 * used;
        throw file.corrupt(field, "offsets of 0 in free slots", offset);
      }
    }
    for (let slot = 0; slot < used; slot++) {
      const field = at + LINE.offsets + 2 * slot;
      const recordAt = file.recordAt(window, at, slot);
      if (recordAt < this.recordEnd || recordAt >= end) {
        const expected = `a record from ${this.recordEnd} up to ${end}`;
        throw file.corrupt(field, expected, recordAt);
      }
      this.verifyZeros(this.recordEnd, recordAt);
      this.verifyRecord(number, slot, recordAt, end);
    }
  }

  /** Checks the record of a slot, and counts the entry. */
  private verifyRecord(line: number, slot: number, at: number, end: number): void {
    const { file } = this;
    const record = file.record(at);
    if (record.end > end) {
      throw file.corrupt(at, `the end of a record by ${end}`, record.end);
    }
    this.recordEnd = record.end;
    this.verifyLookup(line, slot, record);
    const content = this.verifyValue(record);
    const isShared = (record.tag & TAG_SHARED) !== 0;
    if (!isShared) this.verifyZeros(record.keyAt + record.keyLen, record.valueAt);
    this.entries++;
    this.keyBytes += BigInt(record.keyLen);
    this.valueBytes += BigInt(content);
    this.storedValueBytes += isShared ? 0n : BigInt(record.valueLen);
    this.sharedEntries += isShared ? 1 : 0;
    this.compressedEntries += (record.tag & TAG_COMPRESSED) === 0 ? 0 : 1;
    this.byType[record.tag & TAG_TYPE]! += 1;
  }

  /** Checks that the key belongs to the shard, and that its lookup finds this record. */
  private verifyLookup(line: number, slot: number, record: Record): void {
    const { file, hash } = this;
    const { bytes, start } = file.windows.range(record.keyAt, record.keyLen);
    const begin = record.keyAt - start;
    keyBuffer.set(bytes.subarray(begin, begin + record.keyLen));
    hash.hash(keyBuffer.view, keyBuffer.length);
    const { shard, shards } = file.header;
    const found = hash.shardOf(shards);
    if (found !== shard) throw file.corrupt(record.at, `a key of shard ${shard}`, found);
    if (!file.find(keyBuffer, hash.low, hash.high)) {
      throw file.corrupt(record.at, "a key that its hash leads to", "one that lookups do not find");
    }
    if (file.line !== line || file.slot !== slot) {
      throw file.corrupt(record.at, "each key once", "a key that is found elsewhere");
    }
  }

  /** Checks the value of a record. Returns the length of its content. */
  private verifyValue({ tag, valueAt, valueLen }: Record): number {
    const { file } = this;
    let window: Window;
    let begin = 0;
    let len = valueLen;
    if ((tag & TAG_COMPRESSED) === 0) {
      window = file.windows.range(valueAt, valueLen);
      begin = valueAt - window.start;
    } else {
      window = new Window(0, file.decompress(valueAt, valueLen));
      len = window.length;
    }
    const code = tag & TAG_TYPE;
    if (decodeValue(code, window, begin, len, false) === undefined) {
      throw file.corrupt(valueAt, `a value of the type ${nameOfType(code)}`, "other bytes");
    }
    return len;
  }

  /** Compares the counts of the entries with the header. */
  private verifyCounts(): void {
    const { file } = this;
    const { header } = file;
    for (const [at, what, stored, found] of [
      [HEADER.entries, "entries", header.entries, this.entries],
      [HEADER.keyBytes, "bytes of keys", header.keyBytes, this.keyBytes],
      [HEADER.valueBytes, "bytes of values", header.valueBytes, this.valueBytes],
      [
        HEADER.storedValueBytes,
        "bytes of stored values",
        header.storedValueBytes,
        this.storedValueBytes,
      ],
      [HEADER.sharedEntries, "shared entries", header.sharedEntries, this.sharedEntries],
      [
        HEADER.compressedEntries,
        "compressed entries",
        header.compressedEntries,
        this.compressedEntries,
      ],
      [
        HEADER.entriesByType,
        "entries by type",
        header.entriesByType.join(" "),
        this.byType.join(" "),
      ],
    ] as const) {
      if (stored !== found) throw file.corrupt(at, `${stored} ${what}`, found);
    }
  }

  /** Checks that the bytes from `begin` to `end` are zero. */
  private verifyZeros(begin: number, end: number): void {
    const { windows } = this.file;
    for (let at = begin; at < end;) {
      const { bytes, start, length } = windows.at(at);
      const from = at - start;
      const to = Math.min(length, end - start);
      for (let i = from; i < to; i++) {
        if (bytes[i] !== 0) throw this.file.corrupt(start + i, "a zero", bytes[i]!);
      }
      at = start + to;
    }
  }
}
