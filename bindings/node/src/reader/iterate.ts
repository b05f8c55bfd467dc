/** Iteration over the entries of a file, in the order of the file. */

import { LINE_LEN, SLOTS } from "../format/layout.js";
import type { Value } from "../values/decode.js";
import { decodeText } from "../values/text.js";
import type { SnapshotFile } from "./file.js";
import type { Key } from "./key.js";
import type { Record } from "./record.js";

/** How iteration returns keys. */
export type KeyForm = "auto" | "bytes";

/** Returns the records of a file, in the order of the file. */
export function* recordsOf(file: SnapshotFile): Generator<Record, void, undefined> {
  const lines = file.lines();
  for (let line = 0; line < lines; line++) {
    const at = file.header.index.offset + line * LINE_LEN;
    const window = file.windows.at(at);
    for (let slot = 0; slot < SLOTS; slot++) {
      const fingerprint = window.view.getUint16(at - window.start + 2 * slot, true);
      if (fingerprint !== 0) yield file.record(file.recordAt(window, at, slot));
    }
  }
  file.checkReadable();
}

/** Returns the key of a record: a string if it is UTF-8 and the form allows it, or a copy. */
export function keyOf(file: SnapshotFile, record: Record, form: KeyForm): Key {
  const window = file.windows.range(record.keyAt, record.keyLen);
  const begin = record.keyAt - window.start;
  const text = form === "bytes" ? undefined : decodeText(window, begin, record.keyLen);
  const key = text ?? window.bytes.slice(begin, begin + record.keyLen);
  file.checkReadable();
  return key;
}

/** Returns the value of a record. */
export function valueOf(file: SnapshotFile, record: Record): Value {
  return file.valueOf(record.tag, record.valueAt, record.valueLen);
}
