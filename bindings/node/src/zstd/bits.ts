/** Readers of bits: forward, for tables, and backward, for streams. */

import { InvalidFrame } from "./error.js";

/** Number of readable bytes that must follow the bytes of a reader in its view. */
export const PADDING = 8;

/** Reads bits from the first byte on, lowest bit first. */
export class ForwardBits {
  private readonly view: DataView;
  private readonly end: number;
  /** Number of the next bit in the view. */
  private bit: number;

  constructor(view: DataView, begin: number, end: number) {
    this.view = view;
    this.bit = 8 * begin;
    this.end = end;
  }

  /** Returns the next bits without reading them: at most 24. Bits after the end are any. */
  peek(count: number): number {
    const word = this.view.getUint32(this.bit >>> 3, true) >>> (this.bit & 7);
    return word & ((1 << count) - 1);
  }

  /** Reads bits: at most 24. */
  skip(count: number): void {
    this.bit += count;
    if (this.bit > 8 * this.end) throw new InvalidFrame("a table beyond the end of its block");
  }

  /** Returns the offset in the view of the first byte that was not read. */
  position(): number {
    return (this.bit + 7) >>> 3;
  }
}

/**
 * Reads bits from the last byte on, highest bit first. The highest bit that is set in the last byte
 * marks the end of the stream.
 */
export class BackwardBits {
  private view: DataView;
  private beginBit = 0;
  /** Number of bits in the stream that are not read yet; negative after a read beyond its begin. */
  left = 0;

  constructor(view: DataView) {
    this.view = view;
  }

  /** Begins with the stream of the bytes from `begin` to `end` of the view. */
  open(view: DataView, begin: number, end: number): void {
    if (end <= begin) throw new InvalidFrame("an empty stream of bits");
    const last = view.getUint8(end - 1);
    if (last === 0) throw new InvalidFrame("a stream of bits without its end mark");
    this.view = view;
    this.beginBit = 8 * begin;
    this.left = 8 * (end - begin - 1) + 31 - Math.clz32(last);
  }

  /**
   * Returns the next bits without reading them: at most 25. Bits before the begin of the stream are
   * zeros.
   */
  peek(count: number): number {
    const bit = this.left - count;
    if (bit < 0) return this.peekAtBegin(count);
    const at = this.beginBit + bit;
    return (this.view.getUint32(at >>> 3, true) >>> (at & 7)) & ((1 << count) - 1);
  }

  /** Reads and returns bits: at most 25. */
  read(count: number): number {
    const bits = this.peek(count);
    this.left -= count;
    return bits;
  }

  /** Reads and returns up to 32 bits. */
  readLong(count: number): number {
    if (count <= 24) return this.read(count);
    const high = this.read(count - 16);
    return high * 65_536 + this.read(16);
  }

  private peekAtBegin(count: number): number {
    if (this.left <= 0) return 0;
    const word = this.view.getUint32(this.beginBit >>> 3, true) & (2 ** this.left - 1);
    return (word << (count - this.left)) & ((1 << count) - 1);
  }
}
