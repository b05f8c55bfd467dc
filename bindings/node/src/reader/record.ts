/** Records: head, key, and the value or a reference to it. */

import type { Windows } from "../bytes/windows.js";
import {
  LONG_HEAD_LEN,
  MAX_VALUE_LEN,
  REFERENCE_LEN,
  SHORT_HEAD_LEN,
  TAG_COMPRESSED,
  TAG_LONG,
  TAG_RESERVED,
  TAG_SHARED,
  TAG_TYPE,
  alignUp,
} from "../format/layout.js";
import { ALIGNMENTS, LAST_CODE } from "../values/types.js";

/** A record. All offsets are in the file. */
export interface Record {
  readonly at: number;
  readonly tag: number;
  readonly keyAt: number;
  readonly keyLen: number;
  readonly valueAt: number;
  /** Length of the stored value. */
  readonly valueLen: number;
  /** The offset at which the record ends. */
  readonly end: number;
}

/** Creates the error for damage at an offset of the file. */
export type Corrupt = (offset: number, expected: string, found: string | number) => Error;

/**
 * Decodes and validates the record at an offset, except the form of its value.
 *
 * @param dataAt offset at which the data section begins
 * @param dataEnd offset at which it ends
 * @throws the error of `corrupt` if the record contradicts the format
 */
export function readRecord(
  windows: Windows,
  dataAt: number,
  dataEnd: number,
  at: number,
  corrupt: Corrupt,
): Record {
  if (at + SHORT_HEAD_LEN > dataEnd) {
    throw corrupt(at, "a record head before the end of the data", `offset ${at}`);
  }
  const { view, start } = windows.range(at, Math.min(LONG_HEAD_LEN, dataEnd - at));
  const head = at - start;
  const tag = view.getUint8(head);
  const isLong = (tag & TAG_LONG) !== 0;
  let keyLen = view.getUint8(head + 1);
  let valueLen = view.getUint8(head + 2);
  if (isLong) {
    if (at + LONG_HEAD_LEN > dataEnd) {
      throw corrupt(at, "a long record head before the end of the data", `offset ${at}`);
    }
    keyLen = view.getUint16(head + 1, true);
    valueLen = view.getUint32(head + 3, true) + view.getUint8(head + 7) * 2 ** 32;
    if (valueLen > MAX_VALUE_LEN) throw corrupt(at + 3, "a value of at most 4 GiB", valueLen);
  }
  const type = tag & TAG_TYPE;
  if (type === 0 || type > LAST_CODE || (tag & TAG_RESERVED) !== 0) {
    throw corrupt(at, "a tag with a known type and without bit 7", tag);
  }
  const keyAt = at + (isLong ? LONG_HEAD_LEN : SHORT_HEAD_LEN);
  const keyEnd = keyAt + keyLen;
  if (keyEnd > dataEnd) throw corrupt(at, "a key before the end of the data", `end ${keyEnd}`);
  const isShared = (tag & TAG_SHARED) !== 0;
  const alignment = (tag & TAG_COMPRESSED) !== 0 ? 1 : ALIGNMENTS[type]!;
  let valueAt = keyEnd;
  if (isShared) {
    if (keyEnd + REFERENCE_LEN > dataEnd) {
      throw corrupt(keyEnd, "a reference before the end of the data", `offset ${keyEnd}`);
    }
    const window = windows.range(keyEnd, REFERENCE_LEN);
    const reference = keyEnd - window.start;
    const low = window.view.getUint32(reference, true);
    valueAt = dataAt + low + window.view.getUint16(reference + 4, true) * 2 ** 32;
  } else if (isLong) {
    // The data section begins at a multiple of 64.
    valueAt = alignUp(keyEnd, alignment);
  }
  if (valueAt % alignment !== 0) {
    throw corrupt(at, `a value at a multiple of ${alignment}`, `offset ${valueAt}`);
  }
  const valueEnd = valueAt + valueLen;
  if (valueEnd > dataEnd) {
    const place = isShared ? keyEnd : at;
    throw corrupt(place, "a value within the data section", `end ${valueEnd}`);
  }
  const end = isShared ? keyEnd + REFERENCE_LEN : valueEnd;
  return { at, tag, keyAt, keyLen, valueAt, valueLen, end };
}
