/** The origin of the bytes of a file: memory, or a map of a file. */
export interface Source {
  /** The path of the file, or `(memory)`. */
  readonly path: string;
  /** Length in bytes. */
  readonly length: number;
  /**
   * Returns a view of bytes, without a copy. The view stays valid for as long as it is referenced.
   *
   * @param at offset, a multiple of 8
   * @param len length in bytes, at most 4 GiB; the range is within the file
   */
  view(at: number, len: number): Uint8Array<ArrayBuffer>;
  /** Returns whether bytes could not be read, so that zeros took their place. */
  isLost(): boolean;
  /** Says that no new reader will use the source, so that memory can be released soon. */
  retire(): void;
  /** Releases what the source holds besides its views. */
  release(): void;
}

/** Bytes in memory as a source. */
export class MemorySource implements Source {
  readonly path: string;
  readonly length: number;
  private readonly bytes: Uint8Array<ArrayBuffer>;

  /** @param bytes the bytes, which must not change; they are copied if they are not aligned */
  constructor(bytes: Uint8Array, path = "(memory)") {
    const { buffer } = bytes;
    const inPlace = bytes.byteOffset % 8 === 0 && buffer instanceof ArrayBuffer;
    this.bytes = inPlace
      ? new Uint8Array(buffer, bytes.byteOffset, bytes.length)
      : new Uint8Array(bytes);
    this.length = bytes.length;
    this.path = path;
  }

  view(at: number, len: number): Uint8Array<ArrayBuffer> {
    return this.bytes.subarray(at, at + len);
  }

  isLost(): boolean {
    return false;
  }

  retire(): void {}

  release(): void {}
}
