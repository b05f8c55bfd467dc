/** Keys: their bytes and their hashes. */

import { MAX_KEY_LEN } from "../format/layout.js";
import { LongHash } from "../hash/long_hash.js";
import { MAX_SHORT_INPUT, ShortHash } from "../hash/short_hash.js";

/** A key: a string stands for its UTF-8. */
export type Key = string | Uint8Array;

const encoder = new TextEncoder();

/**
 * The bytes of the key that is being looked up. There is one for all snapshots of a thread: a
 * lookup neither waits nor calls functions of the caller.
 */
export class KeyBuffer {
  /** The bytes; the first `length` of them are the key. */
  readonly bytes = new Uint8Array(MAX_KEY_LEN + 1);
  readonly view = new DataView(this.bytes.buffer);
  length = 0;

  /** Takes a key. Returns false if no snapshot can have it: it is too long or not UTF-16. */
  set(key: Key): boolean {
    if (typeof key !== "string") return this.setBytes(key);
    const { bytes } = this;
    const len = key.length;
    if (len > MAX_KEY_LEN) return false;
    for (let i = 0; i < len; i++) {
      const code = key.charCodeAt(i);
      if (code >= 0x80) return this.setText(key);
      bytes[i] = code;
    }
    this.length = len;
    return true;
  }

  private setBytes(key: Uint8Array): boolean {
    if (!(key instanceof Uint8Array)) {
      throw new TypeError("a key is a string or a Uint8Array");
    }
    if (key.length > MAX_KEY_LEN) return false;
    this.bytes.set(key);
    this.length = key.length;
    return true;
  }

  private setText(key: string): boolean {
    // A lone surrogate would be encoded as another character.
    if (LONE_SURROGATE.test(key)) return false;
    const { read, written } = encoder.encodeInto(key, this.bytes);
    this.length = written;
    return read === key.length && written <= MAX_KEY_LEN;
  }
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/** The key that is being looked up. */
export const keyBuffer = new KeyBuffer();

/** Hashes keys with the seed of a snapshot. The hash is in `low` and `high`, two int32. */
export class KeyHash {
  low = 0;
  high = 0;
  private readonly short: ShortHash;
  private readonly long: LongHash;

  constructor(seed: bigint) {
    const low = Number(BigInt.asIntN(32, seed));
    const high = Number(BigInt.asIntN(32, seed >> 32n));
    this.short = new ShortHash(low, high);
    this.long = new LongHash(low, high);
  }

  /** Hashes the first `len` bytes of a view. */
  hash(view: DataView, len: number): void {
    const { short } = this;
    if (len > MAX_SHORT_INPUT) {
      this.hashLong(view, len);
      return;
    }
    short.hash(view, 0, len);
    this.low = short.low;
    this.high = short.high;
  }

  private hashLong(view: DataView, len: number): void {
    const { long } = this;
    long.hash(view, len);
    this.low = long.low;
    this.high = long.high;
  }

  /** Returns the number of the shard of the hashed key in a set of `shards` shards. */
  shardOf(shards: number): number {
    const bits = ((this.low >>> 19) | (this.high << 13)) & 0xffff;
    return Math.floor((bits * shards) / 65_536);
  }
}
