/** XXH3-64 of inputs of more than 240 bytes, which are read in blocks of 1024 bytes. */

import { carryOf, mulHigh, mulMiddle } from "./multiply.js";
import { ShortHash } from "./short_hash.js";
import { SECRET_LEN, secretWords, SECRET } from "./secret.js";

/** Length in bytes of a block. */
export const BLOCK_LEN = 1024;
const STRIPE_LEN = 64;
const STRIPES_PER_BLOCK = BLOCK_LEN / STRIPE_LEN;

const INITIAL = [
  0xc2b2ae3d, 0, 0x85ebca87, 0x9e3779b1, 0x27d4eb4f, 0xc2b2ae3d, 0x9e3779f9, 0x165667b1, 0xc2b2ae63,
  0x85ebca77, 0x85ebca77, 0, 0x165667c5, 0x27d4eb2f, 0x9e3779b1, 0,
];

/** The state of the hash of a long input. Like {@link ShortHash}, it has its result in fields. */
export class LongHash {
  /** The lower half of the hash. */
  low = 0;
  /** The upper half of the hash. */
  high = 0;

  private readonly final = new ShortHash(0, 0);
  /** Eight accumulators of 64 bits, each as lower and upper half. */
  private readonly lanes = new Int32Array(16);
  private readonly secret: Int32Array;
  /** The secret at the offsets of the last stripe and of the final mix, which are not aligned. */
  private readonly lastSecret: Int32Array;
  private readonly mixSecret: Int32Array;

  constructor(seedLow: number, seedHigh: number) {
    const seeded = secretWords(0, SECRET_LEN / 16, seedLow, seedHigh);
    const view = new DataView(seeded.buffer);
    const isSeeded = seedLow !== 0 || seedHigh !== 0;
    const source = isSeeded ? view : SECRET;
    const words = (at: number) =>
      Int32Array.from({ length: 16 }, (_, i) => source.getInt32(at + 4 * i, true));
    this.secret = seeded;
    this.lastSecret = words(SECRET_LEN - STRIPE_LEN - 7);
    this.mixSecret = words(11);
  }

  /** Hashes the first `len` bytes of a view, more than 240. */
  hash(view: DataView, len: number): void {
    const end = lastBlockOf(len);
    this.begin();
    this.addBlocks(view, 0, end / BLOCK_LEN);
    this.finish(view, end, len - end, len);
  }

  /** Begins a hash. */
  begin(): void {
    this.lanes.set(INITIAL);
  }

  /** Adds whole blocks: `count` of them from offset `at` of a view. */
  addBlocks(view: DataView, at: number, count: number): void {
    for (let block = 0; block < count; block++) {
      this.addStripes(view, at + BLOCK_LEN * block, STRIPES_PER_BLOCK);
      this.scramble();
    }
  }

  /**
   * Adds the end of the input, which follows the whole blocks, and computes the hash.
   *
   * @param at offset of the end, which has 1 to 1024 bytes; the 63 bytes before it are readable,
   *   too
   * @param len length of the end
   * @param allLen length of the whole input
   */
  finish(view: DataView, at: number, len: number, allLen: number): void {
    this.addStripes(view, at, Math.floor((len - 1) / STRIPE_LEN));
    this.addStripe(view, at + len - STRIPE_LEN, this.lastSecret, 0);
    const { final, lanes, mixSecret } = this;
    final.beginLong(allLen | 0, Math.floor(allLen / 2 ** 32));
    for (let i = 0; i < 16; i += 4) {
      final.addFoldedProduct(
        lanes[i]! ^ mixSecret[i]!,
        lanes[i + 1]! ^ mixSecret[i + 1]!,
        lanes[i + 2]! ^ mixSecret[i + 2]!,
        lanes[i + 3]! ^ mixSecret[i + 3]!,
      );
    }
    final.avalanche();
    this.low = final.low;
    this.high = final.high;
  }

  private addStripes(view: DataView, at: number, count: number): void {
    for (let i = 0; i < count; i++) {
      this.addStripe(view, at + STRIPE_LEN * i, this.secret, 2 * i);
    }
  }

  private addStripe(view: DataView, at: number, secret: Int32Array, word: number): void {
    const lanes = this.lanes;
    for (let i = 0; i < 16; i += 2) {
      const low = view.getInt32(at + 4 * i, true);
      const high = view.getInt32(at + 4 * i + 4, true);
      const keyLow = low ^ secret[word + i]!;
      const keyHigh = high ^ secret[word + i + 1]!;
      add(lanes, i ^ 2, low, high);
      add(lanes, i, Math.imul(keyLow, keyHigh), mulHigh(keyLow, keyHigh));
    }
  }

  /** Mixes the lanes after a block: x ^= x >> 47; x ^= secret; x *= PRIME32_1. */
  private scramble(): void {
    const { lanes, secret } = this;
    const word = (SECRET_LEN - STRIPE_LEN) / 4;
    for (let i = 0; i < 16; i += 2) {
      const high = lanes[i + 1]! ^ secret[word + i + 1]!;
      const low = lanes[i]! ^ (lanes[i + 1]! >>> 15) ^ secret[word + i]!;
      lanes[i] = Math.imul(low, 0x9e3779b1);
      lanes[i + 1] = mulMiddle(low, high, 0x9e3779b1, 0);
    }
  }
}

/** Returns the offset of the last block, of 1 to 1024 bytes, of an input of `len` bytes. */
export function lastBlockOf(len: number): number {
  return (Math.ceil(len / BLOCK_LEN) - 1) * BLOCK_LEN;
}

function add(lanes: Int32Array, lane: number, low: number, high: number): void {
  const before = lanes[lane]!;
  const sum = (before + low) | 0;
  lanes[lane] = sum;
  lanes[lane + 1] = lanes[lane + 1]! + high + carryOf(before, low, sum);
}
