/** The secret of XXH3: 192 pseudo-random bytes, and the words of it that a seed changes. */

import { carryOf } from "./multiply.js";

const HEX =
  "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f" +
  "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c" +
  "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8" +
  "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364" +
  "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e" +
  "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e";

/** Length in bytes of the secret. */
export const SECRET_LEN = 192;

/** The secret. */
export const SECRET = new DataView(new ArrayBuffer(SECRET_LEN));
for (let i = 0; i < SECRET_LEN; i++) {
  SECRET.setUint8(i, Number.parseInt(HEX.slice(2 * i, 2 * i + 2), 16));
}

/**
 * Returns words of the secret, four int32 for each round of 16 bytes: the seed is added to the
 * first 64 bits of a round, and subtracted from the others.
 *
 * @param at offset in the secret, in bytes
 * @param rounds number of rounds
 */
export function secretWords(
  at: number,
  rounds: number,
  seedLow: number,
  seedHigh: number,
): Int32Array {
  const words = new Int32Array(4 * rounds);
  for (let i = 0; i < rounds; i++) {
    const begin = at + 16 * i;
    let low = SECRET.getInt32(begin, true);
    const sum = (low + seedLow) | 0;
    words[4 * i] = sum;
    words[4 * i + 1] = SECRET.getInt32(begin + 4, true) + seedHigh + carryOf(low, seedLow, sum);
    low = SECRET.getInt32(begin + 8, true);
    const borrow = low >>> 0 < seedLow >>> 0 ? 1 : 0;
    words[4 * i + 2] = low - seedLow;
    words[4 * i + 3] = SECRET.getInt32(begin + 12, true) - seedHigh - borrow;
  }
  return words;
}
