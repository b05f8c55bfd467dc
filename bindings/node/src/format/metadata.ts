/** The metadata: pairs of a name and a value, in ascending order of the names. */

import { corrupt } from "../error.js";
import { decodeText } from "../values/text.js";
import { MAX_METADATA_NAME, METADATA_HEAD_LEN } from "./layout.js";

/**
 * Decodes metadata.
 *
 * @param bytes the bytes of the section
 * @param at the offset of the section in the file, for errors
 * @returns the values by name, in ascending order of the names; the values are copies
 * @throws SnapshotError with the code `corrupt` at the offset of the first invalid pair
 */
export function decodeMetadata(
  bytes: Uint8Array,
  at: number,
  path: string,
): Map<string, Uint8Array> {
  const pairs = new Map<string, Uint8Array>();
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let before: Uint8Array = new Uint8Array(0);
  for (let begin = 0; begin < bytes.length;) {
    const invalid = (expected: string, found: string | number) =>
      corrupt(path, at + begin, expected, found);
    if (begin + METADATA_HEAD_LEN > bytes.length) {
      throw invalid("the lengths of a name and a value", `${bytes.length - begin} bytes`);
    }
    const nameLen = view.getUint16(begin, true);
    if (nameLen < 1 || nameLen > MAX_METADATA_NAME) {
      throw invalid(`a name of 1 to ${MAX_METADATA_NAME} bytes`, nameLen);
    }
    const nameEnd = begin + METADATA_HEAD_LEN + nameLen;
    const end = nameEnd + view.getUint32(begin + 2, true);
    if (end > bytes.length) throw invalid("a pair within the section", `an end at ${end}`);
    const name = bytes.subarray(begin + METADATA_HEAD_LEN, nameEnd);
    const text = decodeText({ bytes, view }, begin + METADATA_HEAD_LEN, nameLen);
    if (text === undefined) throw invalid("a name in UTF-8", "other bytes");
    if (compare(before, name) >= 0) {
      throw invalid("names in ascending order, each once", JSON.stringify(text));
    }
    pairs.set(text, bytes.slice(nameEnd, end));
    before = name;
    begin = end;
  }
  return pairs;
}

/** Compares bytes. Returns a number below, equal to or above 0. */
function compare(a: Uint8Array, b: Uint8Array): number {
  const len = Math.min(a.length, b.length);
  for (let i = 0; i < len; i++) {
    const difference = a[i]! - b[i]!;
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
