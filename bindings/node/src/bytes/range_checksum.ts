/** Checksums of parts of a file. */

import { checksumOf, hashBits } from "../hash/checksum.js";
import { BLOCK_LEN, LongHash, lastBlockOf } from "../hash/long_hash.js";
import { MAX_SHORT_INPUT } from "../hash/short_hash.js";
import type { Windows } from "./windows.js";

const hash = new LongHash(0, 0);

/** Returns the checksum of `len` bytes from an offset of a file. The range is within the file. */
export function checksumOfRange(windows: Windows, at: number, len: number): bigint {
  if (len <= MAX_SHORT_INPUT) {
    const window = windows.range(at, len);
    const begin = at - window.start;
    return checksumOf(window.bytes.subarray(begin, begin + len));
  }
  const end = at + lastBlockOf(len);
  hash.begin();
  for (let offset = at; offset < end;) {
    const window = windows.range(offset, BLOCK_LEN);
    const begin = offset - window.start;
    const count = Math.floor(Math.min(window.length - begin, end - offset) / BLOCK_LEN);
    hash.addBlocks(window.view, begin, count);
    offset += count * BLOCK_LEN;
  }
  // The last stripe of 64 bytes may begin before the last block.
  const from = Math.max(at, end - 64);
  const window = windows.range(from, at + len - from);
  hash.finish(window.view, end - window.start, at + len - end, len);
  return hashBits(hash);
}
