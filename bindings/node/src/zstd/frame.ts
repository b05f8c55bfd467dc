/**
 * Decompression of zstd frames (RFC 8878), with dictionaries. The packages for zstd on npm either
 * lack dictionaries, or start asynchronously and prepare the dictionary for each value.
 */

import { MAX_DECOMPRESSED_LEN } from "../format/layout.js";
import { PADDING } from "./bits.js";
import type { Dictionary } from "./dictionary.js";
import { InvalidFrame } from "./error.js";
import { MAX_BLOCK_LEN, readLiterals } from "./literals.js";
import { runSequences, type Output } from "./sequences.js";
import { initialState, type DecoderState } from "./tables.js";
import { xxh64 } from "./xxh64.js";

const MAGIC = 0xfd2fb528;
const RAW = 0;
const REPEATED = 1;
const COMPRESSED = 2;
const NO_PREFIX = new Uint8Array(0);

interface FrameHeader {
  /** Length in bytes of the header. */
  readonly length: number;
  readonly contentLen: number;
  readonly maxBlockLen: number;
  readonly dictionaryId: number;
  readonly hasChecksum: boolean;
}

/** A copy of the frame that is being decompressed, followed by at least `PADDING` bytes. */
let scratch = new Uint8Array(4096);
let scratchView = new DataView(scratch.buffer);

/**
 * Decompresses one frame, with at most 16 MiB of content.
 *
 * @returns the content, in a buffer of its own
 * @throws InvalidFrame if the bytes are not exactly one valid frame
 */
export function decompress(
  frame: Uint8Array,
  dictionary: Dictionary | undefined,
): Uint8Array<ArrayBuffer> {
  if (frame.length + PADDING > scratch.length) {
    // Valid frames are hardly longer than their content.
    if (frame.length > 2 * MAX_DECOMPRESSED_LEN) throw new InvalidFrame("a frame above 32 MiB");
    scratch = new Uint8Array(2 * frame.length + PADDING);
    scratchView = new DataView(scratch.buffer);
  }
  scratch.set(frame);
  scratch.fill(0, frame.length, frame.length + PADDING);
  try {
    return decompressScratch(frame.length, dictionary);
  } finally {
    if (scratch.length > 2 ** 20) {
      scratch = new Uint8Array(4096);
      scratchView = new DataView(scratch.buffer);
    }
  }
}

function decompressScratch(
  len: number,
  dictionary: Dictionary | undefined,
): Uint8Array<ArrayBuffer> {
  const header = readHeader(scratchView, len);
  const id = header.dictionaryId;
  if (id !== 0 && id !== (dictionary?.id ?? 0)) throw new InvalidFrame(`dictionary ${id}`);
  const bytes = new Uint8Array(header.contentLen);
  const out: Output = { bytes, length: 0, prefix: dictionary?.content ?? NO_PREFIX };
  const end = readBlocks(header, len, out, dictionary?.initialState() ?? initialState());
  if (out.length !== header.contentLen) {
    throw new InvalidFrame(`${out.length} bytes in a frame that claims ${header.contentLen}`);
  }
  let last = end;
  if (header.hasChecksum) {
    last += 4;
    if (last > len) throw new InvalidFrame("a frame without its checksum");
    const computed = Number(BigInt.asUintN(32, xxh64(bytes)));
    if (scratchView.getUint32(end, true) !== computed) throw new InvalidFrame("a wrong checksum");
  }
  if (last !== len) throw new InvalidFrame("bytes after the frame");
  return bytes;
}

function readHeader(view: DataView, len: number): FrameHeader {
  if (len < 5 || view.getUint32(0, true) !== MAGIC) throw new InvalidFrame("no frame");
  const descriptor = view.getUint8(4);
  if ((descriptor & 8) !== 0) throw new InvalidFrame("a reserved bit in the frame header");
  const isSingleSegment = (descriptor & 32) !== 0;
  let at = 5;
  const windowByte = isSingleSegment ? 0 : view.getUint8(at++);
  const dictionaryLen = [0, 1, 2, 4][descriptor & 3]!;
  const dictionaryAt = at;
  at += dictionaryLen;
  const contentCode = descriptor >>> 6;
  const contentWidth = contentCode === 0 && isSingleSegment ? 1 : [0, 2, 4, 8][contentCode]!;
  if (at + contentWidth > len) throw new InvalidFrame("a cut frame header");
  if (contentWidth === 0) throw new InvalidFrame("a frame without the length of its content");
  let contentLen = readNumber(view, at, contentWidth);
  if (contentWidth === 2) contentLen += 256;
  if (contentLen > MAX_DECOMPRESSED_LEN) throw new InvalidFrame(`one of ${contentLen} bytes`);
  const windowLog = 10 + (windowByte >>> 3);
  if (windowLog > 31) throw new InvalidFrame(`a window of 2^${windowLog} bytes`);
  const windowLen = isSingleSegment ? contentLen : 2 ** windowLog * (1 + (windowByte & 7) / 8);
  return {
    length: at + contentWidth,
    contentLen,
    maxBlockLen: Math.min(windowLen, MAX_BLOCK_LEN),
    dictionaryId: readNumber(view, dictionaryAt, dictionaryLen),
    hasChecksum: (descriptor & 4) !== 0,
  };
}

/** Reads all blocks. Returns the offset of the first byte after them. */
function readBlocks(header: FrameHeader, len: number, out: Output, state: DecoderState): number {
  const view = scratchView;
  let at = header.length;
  for (;;) {
    if (at + 3 > len) throw new InvalidFrame("a frame without its last block");
    const head = readNumber(view, at, 3);
    at += 3;
    const kind = (head >>> 1) & 3;
    const size = head >>> 3;
    const stored = kind === REPEATED ? 1 : size;
    if (at + stored > len) throw new InvalidFrame("a block beyond the end of the frame");
    if (stored > header.maxBlockLen) throw new InvalidFrame(`a block of ${size} bytes`);
    if (kind === COMPRESSED) {
      if (size < 2) throw new InvalidFrame("a compressed block that is too short");
      const { length, end } = readLiterals(view, at, at + size, state);
      runSequences(view, end, at + size, length, state, out);
    } else if (kind === RAW || kind === REPEATED) {
      if (size > out.bytes.length - out.length) {
        throw new InvalidFrame("more content than the frame claims");
      }
      const to = out.length;
      if (kind === RAW) out.bytes.set(scratch.subarray(at, at + size), to);
      else out.bytes.fill(view.getUint8(at), to, to + size);
      out.length = to + size;
    } else {
      throw new InvalidFrame("a block of a reserved kind");
    }
    at += stored;
    if ((head & 1) !== 0) return at;
  }
}

/** Reads a little-endian number of up to eight bytes, rounded if it is above 2^53. */
function readNumber(view: DataView, at: number, len: number): number {
  let number = 0;
  for (let i = len - 1; i >= 0; i--) number = number * 256 + view.getUint8(at + i);
  return number;
}
