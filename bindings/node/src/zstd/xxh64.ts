/** XXH64, the checksum of the content of a zstd frame. Frames of Nuthatch do not have one. */

const PRIME_1 = 0x9e3779b185ebca87n;
const PRIME_2 = 0xc2b2ae3d27d4eb4fn;
const PRIME_3 = 0x165667b19e3779f9n;
const PRIME_4 = 0x85ebca77c2b2ae63n;
const PRIME_5 = 0x27d4eb2f165667c5n;
const MASK = (1n << 64n) - 1n;

/** Returns the hash of bytes without a seed. */
export function xxh64(bytes: Uint8Array): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const len = bytes.length;
  let at = 0;
  let hash = PRIME_5;
  if (len >= 32) {
    const lanes = [(PRIME_1 + PRIME_2) & MASK, PRIME_2, 0n, (MASK + 1n - PRIME_1) & MASK];
    for (; at + 32 <= len; at += 32) {
      for (let i = 0; i < 4; i++) lanes[i] = round(lanes[i]!, view.getBigUint64(at + 8 * i, true));
    }
    const [a, b, c, d] = lanes as [bigint, bigint, bigint, bigint];
    hash = (rotate(a, 1n) + rotate(b, 7n) + rotate(c, 12n) + rotate(d, 18n)) & MASK;
    for (const lane of lanes) hash = ((hash ^ round(0n, lane)) * PRIME_1 + PRIME_4) & MASK;
  }
  hash = (hash + BigInt(len)) & MASK;
  for (; at + 8 <= len; at += 8) {
    const word = round(0n, view.getBigUint64(at, true));
    hash = (rotate(hash ^ word, 27n) * PRIME_1 + PRIME_4) & MASK;
  }
  if (at + 4 <= len) {
    const word = (BigInt(view.getUint32(at, true)) * PRIME_1) & MASK;
    hash = (rotate(hash ^ word, 23n) * PRIME_2 + PRIME_3) & MASK;
    at += 4;
  }
  for (; at < len; at++) {
    const word = (BigInt(view.getUint8(at)) * PRIME_5) & MASK;
    hash = (rotate(hash ^ word, 11n) * PRIME_1) & MASK;
  }
  hash = ((hash ^ (hash >> 33n)) * PRIME_2) & MASK;
  hash = ((hash ^ (hash >> 29n)) * PRIME_3) & MASK;
  return hash ^ (hash >> 32n);
}

function round(lane: bigint, word: bigint): bigint {
  return (rotate((lane + word * PRIME_2) & MASK, 31n) * PRIME_1) & MASK;
}

function rotate(word: bigint, count: bigint): bigint {
  return ((word << count) | (word >> (64n - count))) & MASK;
}
