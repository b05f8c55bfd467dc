/**
 * Windows on the bytes of a file. An `ArrayBuffer` has at most 4 GiB, and creating one of 64 MiB or
 * more makes the engine collect garbage, even if it is mapped. So a file is read through windows of
 * 48 MiB.
 */

import type { Source } from "./source.js";

/** Distance in bytes between the starts of two windows, and how far one reaches into the next. */
export interface WindowSize {
  readonly stride: number;
  readonly overlap: number;
}

const DEFAULT_SIZE: WindowSize = { stride: 2 ** 25, overlap: 2 ** 24 };

/** A part of a file. Offsets in it count from its start. */
export class Window {
  /** The offset in the file at which the window begins, a multiple of 8. */
  readonly start: number;
  readonly length: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly view: DataView;

  constructor(start: number, bytes: Uint8Array<ArrayBuffer>) {
    this.start = start;
    this.length = bytes.length;
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }
}

/** The windows of a file. They are created when they are first needed. */
export class Windows {
  readonly source: Source;
  readonly length: number;
  /** The first window. Offsets below `firstLimit` are read through it. */
  readonly first: Window;
  /** The stride, or infinity if the file has one window. */
  readonly firstLimit: number;
  /** Minimum number of bytes that follow any offset in its window, if the file has as many. */
  readonly overlap: number;
  private readonly stride: number;
  private readonly others: (Window | undefined)[] = [];

  constructor(source: Source, size: WindowSize = DEFAULT_SIZE) {
    this.source = source;
    this.length = source.length;
    this.stride = size.stride;
    this.overlap = size.overlap;
    const hasOne = source.length <= size.stride + size.overlap;
    this.firstLimit = hasOne ? Number.POSITIVE_INFINITY : size.stride;
    this.first = this.create(0);
  }

  /**
   * Returns a window with an offset of the file. At least `overlap` bytes follow the offset in the
   * window, or the file ends with it.
   */
  at(offset: number): Window {
    return offset < this.firstLimit ? this.first : this.other(offset);
  }

  /**
   * Returns a window with all bytes of a range, which must be within the file. Creates one for the
   * range if it crosses the end of a window.
   */
  range(offset: number, len: number): Window {
    const window = this.at(offset);
    if (offset - window.start + len <= window.length) return window;
    const start = offset - (offset % 8);
    return new Window(start, this.source.view(start, offset - start + len));
  }

  private other(offset: number): Window {
    const number = Math.floor(offset / this.stride);
    return (this.others[number] ??= this.create(number));
  }

  private create(number: number): Window {
    const start = number * this.stride;
    const len = Math.min(this.stride + this.overlap, this.length - start);
    return new Window(start, this.source.view(start, len));
  }
}
