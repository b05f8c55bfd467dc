/** One open file: a snapshot, or a shard of one. */

import { checksumOfRange } from "../bytes/range_checksum.js";
import type { Source } from "../bytes/source.js";
import { Window, Windows, type WindowSize } from "../bytes/windows.js";
import { corrupt, unreadable, wrongChecksum, type SnapshotError } from "../error.js";
import { readHeader, type Header, type Section } from "../format/header.js";
import {
  FLAG_DICTIONARY,
  HEADER,
  HEADER_LEN,
  LINE,
  LINE_LEN,
  MAX_SHIFT,
  MAX_SHORT_RECORD,
  SHORT_HEAD_LEN,
  TAG_COMPRESSED,
  TAG_TYPE,
} from "../format/layout.js";
import { mulHigh64 } from "../hash/multiply.js";
import { decodeValue, type Value } from "../values/decode.js";
import { decodeText } from "../values/text.js";
import { ALIGNMENTS, LAST_CODE, STRING, nameOfType } from "../values/types.js";
import { Dictionary } from "../zstd/dictionary.js";
import { InvalidFrame } from "../zstd/error.js";
import { decompress } from "../zstd/frame.js";
import type { KeyBuffer } from "./key.js";
import { readRecord, type Record } from "./record.js";

/** An open file. The last lookup leaves the place of the value that it found in fields. */
export class SnapshotFile {
  readonly path: string;
  readonly header: Header;
  readonly windows: Windows;
  /** The tag of the record that was found last, and the place of its value in the file. */
  tag = 0;
  valueAt = 0;
  valueLen = 0;
  /** The number of the line and of the slot that were found last. */
  line = 0;
  slot = 0;

  private readonly indexAt: number;
  private readonly dataAt: number;
  private readonly dataEnd: number;
  /** Short records before this offset are within the data section. */
  private readonly shortEnd: number;
  /** Number of lines, as upper and lower half. */
  private readonly linesHigh: number;
  private readonly linesLow: number;
  private readonly source: Source;
  private readonly copy: boolean;
  private readonly dictionary: Dictionary | undefined;

  /**
   * Validates the header and the dictionary of a file.
   *
   * @param copy whether values of bytes and lists are copies
   * @throws SnapshotError if the file contradicts the format
   */
  constructor(source: Source, copy: boolean, size?: WindowSize) {
    this.path = source.path;
    this.source = source;
    this.copy = copy;
    this.windows = new Windows(source, size);
    const { bytes } = this.windows.range(0, Math.min(HEADER_LEN, source.length));
    // A copy of the header, so that it cannot change between two checks.
    const first = bytes.slice(0, HEADER_LEN);
    this.checkReadable();
    const header = readHeader(first, source.length, this.path);
    this.header = header;
    this.indexAt = header.index.offset;
    this.dataAt = header.data.offset;
    this.dataEnd = header.data.offset + header.data.length;
    this.shortEnd = this.dataEnd - MAX_SHORT_RECORD;
    const lines = this.lines();
    this.linesHigh = Math.floor(lines / 2 ** 32);
    this.linesLow = lines | 0;
    this.dictionary = (header.flags & FLAG_DICTIONARY) === 0 ? undefined : this.readDictionary();
  }

  /** Returns the number of lines of the index. */
  lines(): number {
    return this.header.index.length / LINE_LEN;
  }

  /** Throws the error `unreadable` if a part of the file could not be read. */
  checkReadable(): void {
    if (this.source.isLost()) throw unreadable(this.path);
  }

  /** Returns the error for damage, or the one for a file that could not be read. */
  readonly corrupt = (
    offset: number,
    expected: string,
    found: string | number | bigint,
  ): SnapshotError =>
    this.source.isLost() ? unreadable(this.path) : corrupt(this.path, offset, expected, found);

  /**
   * Looks up a key with a hash. If it exists, sets the fields of the last lookup.
   *
   * @returns whether the key exists
   * @throws SnapshotError if the lookup reads damaged bytes
   */
  find(key: KeyBuffer, low: number, high: number): boolean {
    let line = mulHigh64(low, high, this.linesLow, this.linesHigh);
    const pair = (low & 0x7fff) | 0x8000 | (low << 16) | 0x80000000;
    for (let probe = 0; ; probe++) {
      const at = this.indexAt + line * LINE_LEN;
      const window = this.windows.at(at);
      const view = window.view;
      const begin = (at - window.start) | 0;
      for (let i = 0; i < LINE.offsets; i += 4) {
        // Finds halves of the word that are zero: those with the fingerprint of the key.
        const word = view.getInt32(begin + i, true) ^ pair;
        if (((word - 0x00010001) & ~word & 0x80008000) === 0) continue;
        const slot = i >> 1;
        if ((word & 0xffff) === 0 && this.matches(window, at, slot, key)) {
          this.line = line;
          return true;
        }
        if (word >>> 16 === 0 && this.matches(window, at, slot + 1, key)) {
          this.line = line;
          return true;
        }
      }
      const overflow = view.getUint8(begin + LINE.overflow);
      if (((overflow >>> ((low >>> 16) & 7)) & 1) === 0 || probe === this.header.maxProbe) break;
      line = this.lineAfter(line);
    }
    this.checkReadable();
    return false;
  }

  /** Returns the value that the last lookup found. */
  value(): Value {
    const { tag, valueAt, valueLen } = this;
    if (tag === STRING) {
      const window = this.windows.at(valueAt);
      const begin = valueAt - window.start;
      // Such a record is short, so its value is within the window.
      const text = decodeText(window, begin, valueLen);
      this.checkReadable();
      if (text !== undefined) return text;
    }
    return this.valueOf(tag, valueAt, valueLen);
  }

  /** Returns the stored value at an offset of the file. */
  valueOf(tag: number, at: number, len: number): Value {
    const code = tag & TAG_TYPE;
    let window: Window;
    let begin = 0;
    if ((tag & TAG_COMPRESSED) === 0) {
      window = this.windows.range(at, len);
      begin = at - window.start;
    } else {
      window = new Window(0, this.decompress(at, len));
      len = window.length;
    }
    const value = decodeValue(code, window, begin, len, this.copy);
    this.checkReadable();
    if (value === undefined) {
      throw this.corrupt(at, `a value of the type ${nameOfType(code)}`, `other bytes (${len})`);
    }
    return value;
  }

  /** Decompresses the value at an offset of the file. */
  decompress(at: number, len: number): Uint8Array<ArrayBuffer> {
    const { bytes, start } = this.windows.range(at, len);
    try {
      return decompress(bytes.subarray(at - start, at - start + len), this.dictionary);
    } catch (error) {
      if (!(error instanceof InvalidFrame)) throw error;
      throw this.corrupt(at, "a zstd frame of at most 16 MiB", error.message);
    }
  }

  /** Returns the line that is probed after a line: after the last of a partition, its first. */
  lineAfter(line: number): number {
    const { linesPerPartition } = this.header;
    const last = line % linesPerPartition === linesPerPartition - 1;
    return last ? line - linesPerPartition + 1 : line + 1;
  }

  /**
   * Returns the offset in the file of the record of a slot.
   *
   * @param window a window with the line
   * @param lineAt offset of the line in the file
   */
  recordAt(window: Window, lineAt: number, slot: number): number {
    const { view } = window;
    const begin = lineAt - window.start;
    const unit = view.getUint16(begin + LINE.offsets + 2 * slot, true);
    const tail = view.getUint32(begin + LINE.shift, true);
    const base = (tail >>> 16) + view.getUint32(begin + LINE.base + 2, true) * 65_536;
    const shift = tail & 0xff;
    if (shift === 0) return this.dataAt + base + unit;
    if (shift > MAX_SHIFT) {
      throw this.corrupt(lineAt + LINE.shift, `a shift of at most ${MAX_SHIFT}`, shift);
    }
    return this.dataAt + base + unit * 2 ** shift;
  }

  /** Decodes the record at an offset of the file. */
  record(at: number): Record {
    return readRecord(this.windows, this.dataAt, this.dataEnd, at, this.corrupt);
  }

  /** Throws an error if the checksum of a section differs from the one that is stored at `at`. */
  checkHash(at: number, what: string, section: Section, stored: bigint): void {
    const computed = checksumOfRange(this.windows, section.offset, section.length);
    this.checkReadable();
    if (stored !== computed) throw wrongChecksum(this.path, at, what, stored, computed);
  }

  /** Returns the bytes of a section, without a copy. */
  section({ offset, length }: Section): Uint8Array {
    const { bytes, start } = this.windows.range(offset, length);
    return bytes.subarray(offset - start, offset - start + length);
  }

  /** Returns whether the record of a slot has the key. Then sets the fields of the lookup. */
  private matches(line: Window, lineAt: number, slot: number, key: KeyBuffer): boolean {
    const at = this.recordAt(line, lineAt, slot);
    if (at >= this.shortEnd) return this.matchesAnyRecord(at, slot, key);
    const { view, start } = this.windows.at(at);
    const head = (at - start) | 0;
    const tag = view.getUint8(head);
    if (tag === 0 || tag > LAST_CODE) return this.matchesAnyRecord(at, slot, key);
    const { length } = key;
    if (view.getUint8(head + 1) !== length) return false;
    if (!sameBytes(view, head + SHORT_HEAD_LEN, key.view, length)) return false;
    // Windows begin at multiples of 8.
    if (((head + SHORT_HEAD_LEN + length) & (ALIGNMENTS[tag]! - 1)) !== 0)
      return this.matchesAnyRecord(at, slot, key);
    this.tag = tag;
    this.valueAt = at + SHORT_HEAD_LEN + length;
    this.valueLen = view.getUint8(head + 2);
    this.slot = slot;
    return true;
  }

  /** Does the same as `matches` for any kind of record. */
  private matchesAnyRecord(at: number, slot: number, key: KeyBuffer): boolean {
    const record = this.record(at);
    if (record.keyLen !== key.length) return false;
    const { view, start } = this.windows.range(record.keyAt, record.keyLen);
    if (!sameBytes(view, record.keyAt - start, key.view, key.length)) return false;
    this.tag = record.tag;
    this.valueAt = record.valueAt;
    this.valueLen = record.valueLen;
    this.slot = slot;
    return true;
  }

  private readDictionary(): Dictionary {
    const { dictionary, dictionaryHash } = this.header;
    this.checkHash(HEADER.dictionaryHash, "the dictionary", dictionary, dictionaryHash);
    try {
      return new Dictionary(this.section(dictionary).slice());
    } catch (error) {
      if (!(error instanceof InvalidFrame)) throw error;
      throw this.corrupt(dictionary.offset, "a zstd dictionary", error.message);
    }
  }
}

/** Compares `len` bytes of a view with the first ones of another. */
function sameBytes(view: DataView, at: number, key: DataView, len: number): boolean {
  let i = 0;
  for (; i <= len - 4; i += 4) {
    if (view.getInt32(at + i, true) !== key.getInt32(i, true)) return false;
  }
  for (; i < len; i++) {
    if (view.getUint8(at + i) !== key.getUint8(i)) return false;
  }
  return true;
}
