/**
 * XXH3-64, the hash of keys and of checksums, as specified in
 * https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md. Inputs of up to 240 bytes are
 * here; `long_hash.ts` has longer ones.
 */

import { carryOf, mulHigh, mulMiddle } from "./multiply.js";
import { SECRET, secretWords } from "./secret.js";

/** Maximum length in bytes of the inputs that {@link ShortHash} hashes. */
export const MAX_SHORT_INPUT = 240;

/** Words of the secret at the offsets that inputs of 1 to 16 bytes use, combined in pairs. */
const FLIP_0 = pairs(56, 64);
const FLIP_4 = pairs(8, 16);
const FLIP_9_LOW = pairs(24, 32);
const FLIP_9_HIGH = pairs(40, 48);
const FLIP_1 = (SECRET.getInt32(0, true) ^ SECRET.getInt32(4, true)) | 0;

/** Returns the exclusive or of two 64-bit words of the secret. */
function pairs(first: number, second: number): readonly [low: number, high: number] {
  return [
    SECRET.getInt32(first, true) ^ SECRET.getInt32(second, true),
    SECRET.getInt32(first + 4, true) ^ SECRET.getInt32(second + 4, true),
  ];
}

/**
 * A hash of inputs of up to 240 bytes with a seed. Each method that computes a hash stores it in
 * `low` and `high`, two int32, rather than to allocate a result.
 */
export class ShortHash {
  /** The lower half of the hash. */
  low = 0;
  /** The upper half of the hash. */
  high = 0;

  /** The secret with the seed added or subtracted, as the rounds of 16 bytes need it. */
  private readonly words: Int32Array;
  /** The same from an offset of three bytes, for inputs of more than 128 bytes. */
  private readonly shifted: Int32Array;
  /** The same at the two offsets that the last rounds use. */
  private readonly lastWords: Int32Array;
  private readonly flip0Low: number;
  private readonly flip0High: number;
  private readonly flip1Low: number;
  private readonly flip1High: number;
  private readonly flip4Low: number;
  private readonly flip4High: number;
  private readonly flip9aLow: number;
  private readonly flip9aHigh: number;
  private readonly flip9bLow: number;
  private readonly flip9bHigh: number;

  /**
   * @param seedLow the lower half of the seed
   * @param seedHigh the upper half of the seed
   */
  constructor(seedLow: number, seedHigh: number) {
    this.words = secretWords(0, 8, seedLow, seedHigh);
    this.shifted = secretWords(3, 8, seedLow, seedHigh);
    this.lastWords = secretWords(136 - 17, 1, seedLow, seedHigh);
    this.flip0Low = FLIP_0[0] ^ seedLow;
    this.flip0High = FLIP_0[1] ^ seedHigh;
    [this.flip1Low, this.flip1High] = sum(FLIP_1, 0, seedLow, seedHigh);
    [this.flip4Low, this.flip4High] = difference(
      FLIP_4[0],
      FLIP_4[1],
      seedLow,
      seedHigh ^ swap(seedLow),
    );
    [this.flip9aLow, this.flip9aHigh] = sum(FLIP_9_LOW[0], FLIP_9_LOW[1], seedLow, seedHigh);
    [this.flip9bLow, this.flip9bHigh] = difference(
      FLIP_9_HIGH[0],
      FLIP_9_HIGH[1],
      seedLow,
      seedHigh,
    );
  }

  /**
   * Hashes `len` bytes from offset `at` of a view.
   *
   * @param len at most {@link MAX_SHORT_INPUT}
   */
  hash(view: DataView, at: number, len: number): void {
    if (len > 8) {
      if (len <= 16) this.hash9To16(view, at, len);
      else if (len <= 128) this.hash17To128(view, at, len);
      else this.hash129To240(view, at, len);
    } else if (len > 3) {
      this.hash4To8(view, at, len);
    } else if (len > 0) {
      this.hash1To3(view, at, len);
    } else {
      this.oldAvalanche(this.flip0Low, this.flip0High);
    }
  }

  private hash1To3(view: DataView, at: number, len: number): void {
    const first = view.getUint8(at);
    const middle = view.getUint8(at + (len >> 1));
    const last = view.getUint8(at + len - 1);
    const combined = (first << 16) | (middle << 24) | last | (len << 8);
    this.oldAvalanche(combined ^ this.flip1Low, this.flip1High);
  }

  private hash4To8(view: DataView, at: number, len: number): void {
    let low = view.getInt32(at + len - 4, true) ^ this.flip4Low;
    let high = view.getInt32(at, true) ^ this.flip4High;
    // h ^= rotl(h, 49) ^ rotl(h, 24); 49 = 32 + 17.
    const rotatedLow = (high << 17) | (low >>> 15);
    const rotatedHigh = (low << 17) | (high >>> 15);
    const nextLow = low ^ rotatedLow ^ ((low << 24) | (high >>> 8));
    const nextHigh = high ^ rotatedHigh ^ ((high << 24) | (low >>> 8));
    // h *= PRIME_MX2; h ^= (h >> 35) + len; h *= PRIME_MX2; h ^= h >> 28.
    high = mulMiddle(nextLow, nextHigh, 0x1e98df25, 0x9fb21c65);
    low = Math.imul(nextLow, 0x1e98df25);
    low ^= (high >>> 3) + len;
    high = mulMiddle(low, high, 0x1e98df25, 0x9fb21c65);
    low = Math.imul(low, 0x1e98df25);
    this.low = low ^ ((low >>> 28) | (high << 4));
    this.high = high ^ (high >>> 28);
  }

  private hash9To16(view: DataView, at: number, len: number): void {
    const aLow = view.getInt32(at, true) ^ this.flip9aLow;
    const aHigh = view.getInt32(at + 4, true) ^ this.flip9aHigh;
    const bLow = view.getInt32(at + len - 8, true) ^ this.flip9bLow;
    const bHigh = view.getInt32(at + len - 4, true) ^ this.flip9bHigh;
    this.low = len;
    this.high = 0;
    this.add(swap(aHigh), swap(aLow));
    this.add(bLow, bHigh);
    this.addFoldedProduct(aLow, aHigh, bLow, bHigh);
    this.avalanche();
  }

  private hash17To128(view: DataView, at: number, len: number): void {
    this.begin(len);
    const end = at + len;
    const words = this.words;
    if (len > 96) {
      this.mix(view, at + 48, words, 24);
      this.mix(view, end - 64, words, 28);
    }
    if (len > 64) {
      this.mix(view, at + 32, words, 16);
      this.mix(view, end - 48, words, 20);
    }
    if (len > 32) {
      this.mix(view, at + 16, words, 8);
      this.mix(view, end - 32, words, 12);
    }
    this.mix(view, at, words, 0);
    this.mix(view, end - 16, words, 4);
    this.avalanche();
  }

  private hash129To240(view: DataView, at: number, len: number): void {
    this.begin(len);
    for (let i = 0; i < 8; i++) this.mix(view, at + 16 * i, this.words, 4 * i);
    this.avalanche();
    const rounds = len >>> 4;
    for (let i = 8; i < rounds; i++) this.mix(view, at + 16 * i, this.shifted, 4 * (i - 8));
    this.mix(view, at + len - 16, this.lastWords, 0);
    this.avalanche();
  }

  /** Sets the hash to `len * PRIME64_1`. */
  private begin(len: number): void {
    this.low = Math.imul(len, 0x85ebca87);
    this.high = mulMiddle(len, 0, 0x85ebca87, 0x9e3779b1);
  }

  /** Adds 16 bytes of the input, mixed with four words of the secret. */
  private mix(view: DataView, at: number, words: Int32Array, word: number): void {
    this.addFoldedProduct(
      view.getInt32(at, true) ^ words[word]!,
      view.getInt32(at + 4, true) ^ words[word + 1]!,
      view.getInt32(at + 8, true) ^ words[word + 2]!,
      view.getInt32(at + 12, true) ^ words[word + 3]!,
    );
  }

  /** Adds 64 bits to the hash. */
  private add(low: number, high: number): void {
    const sumLow = (this.low + low) | 0;
    this.high = (this.high + high + carryOf(this.low, low, sumLow)) | 0;
    this.low = sumLow;
  }

  /** Adds the exclusive or of both halves of a product of 128 bits. */
  addFoldedProduct(aLow: number, aHigh: number, bLow: number, bHigh: number): void {
    const lowHigh = Math.imul(aLow, bHigh);
    const highLow = Math.imul(aHigh, bLow);
    const highHigh = Math.imul(aHigh, bHigh);
    // The four words of the product, from the lowest.
    const word0 = Math.imul(aLow, bLow);
    const partial = mulHigh(aLow, bLow);
    const sum1 = (partial + lowHigh) | 0;
    const word1 = (sum1 + highLow) | 0;
    const carry1 = carryOf(partial, lowHigh, sum1) + carryOf(sum1, highLow, word1);
    const left = mulHigh(aLow, bHigh);
    const right = mulHigh(aHigh, bLow);
    const sum2 = (left + right) | 0;
    const sum3 = (sum2 + highHigh) | 0;
    const word2 = (sum3 + carry1) | 0;
    const carry2 =
      carryOf(left, right, sum2) + carryOf(sum2, highHigh, sum3) + carryOf(sum3, carry1, word2);
    const word3 = (mulHigh(aHigh, bHigh) + carry2) | 0;
    this.add(word0 ^ word2, word1 ^ word3);
  }

  /** Sets the hash to `len * PRIME64_1` for a long input. */
  beginLong(lenLow: number, lenHigh: number): void {
    this.low = Math.imul(lenLow, 0x85ebca87);
    this.high = mulMiddle(lenLow, lenHigh, 0x85ebca87, 0x9e3779b1);
  }

  /** Applies the final step: h ^= h >> 37; h *= PRIME_MX1; h ^= h >> 32. */
  avalanche(): void {
    const low = this.low ^ (this.high >>> 5);
    const high = mulMiddle(low, this.high, 0x9e3779f9, 0x16566791);
    this.high = high;
    this.low = Math.imul(low, 0x9e3779f9) ^ high;
  }

  /** Sets the hash to 64 bits after the final step of XXH64, which inputs below 4 bytes use. */
  private oldAvalanche(low: number, high: number): void {
    // h ^= h >> 33; h *= PRIME64_2; h ^= h >> 29; h *= PRIME64_3; h ^= h >> 32.
    low ^= high >>> 1;
    high = mulMiddle(low, high, 0x27d4eb4f, 0xc2b2ae3d);
    low = Math.imul(low, 0x27d4eb4f);
    low ^= (low >>> 29) | (high << 3);
    high ^= high >>> 29;
    high = mulMiddle(low, high, 0x9e3779f9, 0x165667b1);
    low = Math.imul(low, 0x9e3779f9);
    this.high = high;
    this.low = low ^ high;
  }
}

/** Returns the bytes of a 32-bit integer in reverse order. */
function swap(word: number): number {
  const halves = (word << 16) | (word >>> 16);
  return ((halves & 0x00ff00ff) << 8) | ((halves >>> 8) & 0x00ff00ff);
}

function sum(aLow: number, aHigh: number, bLow: number, bHigh: number): [number, number] {
  const low = (aLow + bLow) | 0;
  return [low, (aHigh + bHigh + carryOf(aLow, bLow, low)) | 0];
}

function difference(aLow: number, aHigh: number, bLow: number, bHigh: number): [number, number] {
  const borrow = aLow >>> 0 < bLow >>> 0 ? 1 : 0;
  return [(aLow - bLow) | 0, (aHigh - bHigh - borrow) | 0];
}
