/** A mapped file as a source of bytes. */

import type { Source } from "../bytes/source.js";
import { closed } from "../error.js";
import type { Addon, MapHandle } from "./addon.js";

/** A file that the add-on has mapped. Each view keeps the whole file mapped. */
export class MappedSource implements Source {
  readonly path: string;
  readonly length: number;
  private readonly addon: Addon;
  private readonly map: MapHandle;
  /** One number, which the signal handler sets when a page cannot be read. */
  private readonly lost: Int32Array;
  private isReleased = false;

  /**
   * Maps an open file.
   *
   * @param length length of the file, at least 1
   * @throws an error of the system
   */
  constructor(addon: Addon, fd: number, length: number, path: string) {
    this.addon = addon;
    this.path = path;
    this.length = length;
    this.map = addon.open(fd, length);
    this.lost = new Int32Array(addon.lost(this.map));
  }

  view(at: number, len: number): Uint8Array<ArrayBuffer> {
    if (this.isReleased) throw closed(this.path);
    return new Uint8Array(this.addon.view(this.map, at, len));
  }

  isLost(): boolean {
    return this.lost[0] !== 0;
  }

  retire(): void {
    if (!this.isReleased) this.addon.retire(this.map);
  }

  release(): void {
    if (this.isReleased) return;
    this.isReleased = true;
    this.addon.release(this.map);
  }
}
