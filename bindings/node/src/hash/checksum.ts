/** Checksums: XXH3-64 without a seed. */

import { LongHash } from "./long_hash.js";
import { MAX_SHORT_INPUT, ShortHash } from "./short_hash.js";

const short = new ShortHash(0, 0);
const long = new LongHash(0, 0);

/** Returns the checksum of bytes. */
export function checksumOf(bytes: Uint8Array): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length <= MAX_SHORT_INPUT) {
    short.hash(view, 0, bytes.length);
    return hashBits(short);
  }
  long.hash(view, bytes.length);
  return hashBits(long);
}

/** Returns a hash as 64 bits. */
export function hashBits(hash: { readonly low: number; readonly high: number }): bigint {
  return (BigInt(hash.high >>> 0) << 32n) | BigInt(hash.low >>> 0);
}
