/** The literals of a block. */

import { InvalidFrame } from "./error.js";
import { decodeStream, readHuffmanTable, type HuffmanTable } from "./huffman.js";
import type { DecoderState } from "./tables.js";

/** Maximum length in bytes of a block, and of its literals. */
export const MAX_BLOCK_LEN = 2 ** 17;

const RAW = 0;
const REPEATED = 1;
const COMPRESSED = 2;

/** The literals of the block that is being decoded. */
export const literals = new Uint8Array(MAX_BLOCK_LEN);

/** Lengths of the literals, and the offset of the first byte after them. */
export interface Literals {
  readonly length: number;
  readonly end: number;
}

/** Decodes the literals of the block from `begin` to `end` into `literals`. */
export function readLiterals(
  view: DataView,
  begin: number,
  end: number,
  state: DecoderState,
): Literals {
  const head = view.getUint32(begin, true);
  const kind = head & 3;
  const format = (head >>> 2) & 3;
  if (kind === RAW || kind === REPEATED) {
    const headLen = format === 1 ? 2 : format === 3 ? 3 : 1;
    const length =
      format === 1
        ? (head & 0xffff) >>> 4
        : format === 3
          ? (head & 0xffffff) >>> 4
          : (head & 0xff) >>> 3;
    const at = begin + headLen;
    const last = at + (kind === RAW ? length : 1);
    check(length, last, end);
    if (kind === RAW) {
      literals.set(new Uint8Array(view.buffer, view.byteOffset + at, length));
    } else {
      literals.fill(view.getUint8(at), 0, length);
    }
    return { length, end: last };
  }
  return readCompressed(view, begin, end, kind, format, state);
}

function readCompressed(
  view: DataView,
  begin: number,
  end: number,
  kind: number,
  format: number,
  state: DecoderState,
): Literals {
  const width = format < 2 ? 10 : format === 2 ? 14 : 18;
  const headLen = format < 2 ? 3 : format === 2 ? 4 : 5;
  const head = view.getUint32(begin, true) + view.getUint8(begin + 4) * 2 ** 32;
  const mask = 2 ** width;
  const length = Math.floor(head / 16) % mask;
  const stored = Math.floor(head / 16 / mask) % mask;
  let at = begin + headLen;
  const last = at + stored;
  check(length, last, end);
  let table: HuffmanTable | undefined = state.huffman;
  if (kind === COMPRESSED) [table, at] = readHuffmanTable(view, at, last);
  if (table === undefined) throw new InvalidFrame("literals without a Huffman table to repeat");
  state.huffman = table;
  if (format === 0) decodeStream(table, view, at, last, literals, 0, length);
  else decodeFour(table, view, at, last, length);
  return { length, end: last };
}

/** Decodes four streams, whose lengths are before them. */
function decodeFour(
  table: HuffmanTable,
  view: DataView,
  begin: number,
  end: number,
  length: number,
): void {
  if (length < 6 || end - begin < 10) throw new InvalidFrame("four streams that are too short");
  const quarter = (length + 3) >>> 2;
  let at = begin + 6;
  for (let i = 0; i < 4; i++) {
    const next = i === 3 ? end : at + view.getUint16(begin + 2 * i, true);
    const outEnd = i === 3 ? length : quarter * (i + 1);
    if (next > end || outEnd > length) throw new InvalidFrame("a stream beyond its literals");
    decodeStream(table, view, at, next, literals, quarter * i, outEnd);
    at = next;
  }
}

function check(length: number, last: number, end: number): void {
  if (length > MAX_BLOCK_LEN) throw new InvalidFrame(`${length} literals in a block`);
  if (last > end) throw new InvalidFrame("literals beyond the end of their block");
}
