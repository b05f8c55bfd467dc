/** The sequences of a block: each copies literals, then a match from the output before it. */

import { BackwardBits } from "./bits.js";
import { InvalidFrame } from "./error.js";
import { literals } from "./literals.js";
import { LITERAL_LENGTHS, MATCH_LENGTHS, OFFSETS, readTable, type DecoderState } from "./tables.js";

// prettier-ignore
const LITERAL_BITS = Uint8Array.of(
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12,
  13, 14, 15, 16,
);
// prettier-ignore
const MATCH_BITS = Uint8Array.of(
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
);
const LITERAL_BASES = basesOf(LITERAL_BITS, 0);
const MATCH_BASES = basesOf(MATCH_BITS, 3);

/** Returns the lowest length of each code: codes follow each other without gaps. */
function basesOf(bits: Uint8Array, first: number): Uint32Array {
  let next = first;
  return Uint32Array.from(bits, (width) => {
    const base = next;
    next += 2 ** width;
    return base;
  });
}

/** The output of a frame, and the dictionary before it. */
export interface Output {
  readonly bytes: Uint8Array;
  /** Number of bytes that are written. */
  length: number;
  /** What matches can copy besides the output. */
  readonly prefix: Uint8Array;
}

const bits = new BackwardBits(new DataView(new ArrayBuffer(0)));

/**
 * Decodes and executes the sequences from `begin` to `end`.
 *
 * @param literalCount number of decoded literals of the block
 */
export function runSequences(
  view: DataView,
  begin: number,
  end: number,
  literalCount: number,
  state: DecoderState,
  out: Output,
): void {
  let at = begin;
  if (at >= end) throw new InvalidFrame("a missing number of sequences");
  let count = view.getUint8(at++);
  if (count >= 128) {
    const isLong = count === 255;
    if (at + (isLong ? 2 : 1) > end) throw new InvalidFrame("a cut number of sequences");
    count = isLong ? view.getUint16(at, true) + 0x7f00 : ((count - 128) << 8) + view.getUint8(at);
    at += isLong ? 2 : 1;
  }
  if (count === 0) {
    if (at !== end) throw new InvalidFrame("bytes after a block without sequences");
    copyLiterals(out, 0, literalCount);
    return;
  }
  at = readTables(view, at, end, state);
  bits.open(view, at, end);
  const used = decodeSequences(count, literalCount, state, out);
  if (bits.left !== 0) throw new InvalidFrame("sequences that do not end with their stream");
  copyLiterals(out, used, literalCount - used);
}

/** Reads the three tables. Returns the offset of the first byte after them. */
function readTables(view: DataView, begin: number, end: number, state: DecoderState): number {
  if (begin >= end) throw new InvalidFrame("missing modes of tables");
  const modes = view.getUint8(begin);
  if ((modes & 3) !== 0) throw new InvalidFrame("reserved bits in the modes of tables");
  let at = begin + 1;
  const { literalLengths, offsets, matchLengths } = state;
  [state.literalLengths, at] = readTable(
    LITERAL_LENGTHS,
    modes >>> 6,
    literalLengths,
    view,
    at,
    end,
  );
  [state.offsets, at] = readTable(OFFSETS, (modes >>> 4) & 3, offsets, view, at, end);
  [state.matchLengths, at] = readTable(
    MATCH_LENGTHS,
    (modes >>> 2) & 3,
    matchLengths,
    view,
    at,
    end,
  );
  return at;
}

/** Executes sequences. Returns the number of literals that they use. */
function decodeSequences(
  count: number,
  literalCount: number,
  state: DecoderState,
  out: Output,
): number {
  const literalTable = state.literalLengths!;
  const offsetTable = state.offsets!;
  const matchTable = state.matchLengths!;
  let literalState = bits.read(literalTable.log);
  let offsetState = bits.read(offsetTable.log);
  let matchState = bits.read(matchTable.log);
  let used = 0;
  for (let i = 0; i < count; i++) {
    const offsetCode = offsetTable.symbols[offsetState]!;
    const matchCode = matchTable.symbols[matchState]!;
    const literalCode = literalTable.symbols[literalState]!;
    const offsetValue = 2 ** offsetCode + bits.readLong(offsetCode);
    const matchLen = MATCH_BASES[matchCode]! + bits.read(MATCH_BITS[matchCode]!);
    const literalLen = LITERAL_BASES[literalCode]! + bits.read(LITERAL_BITS[literalCode]!);
    if (literalLen > literalCount - used) throw new InvalidFrame("sequences without literals");
    copyLiterals(out, used, literalLen);
    used += literalLen;
    copyMatch(out, offsetOf(offsetValue, literalLen, state), matchLen);
    if (i < count - 1) {
      literalState =
        literalTable.bases[literalState]! + bits.read(literalTable.bits[literalState]!);
      matchState = matchTable.bases[matchState]! + bits.read(matchTable.bits[matchState]!);
      offsetState = offsetTable.bases[offsetState]! + bits.read(offsetTable.bits[offsetState]!);
    }
    if (bits.left < 0) throw new InvalidFrame("sequences beyond the begin of their stream");
  }
  return used;
}

/** Returns the offset for a value: itself, or one of the last three offsets. Updates these. */
function offsetOf(value: number, literalLen: number, state: DecoderState): number {
  const { repeat0, repeat1 } = state;
  let offset = value - 3;
  if (value <= 3) {
    const index = literalLen === 0 ? value : value - 1;
    if (index === 0) return repeat0;
    offset = index === 1 ? repeat1 : index === 2 ? state.repeat2 : repeat0 - 1;
    if (offset === 0) throw new InvalidFrame("an offset of 0");
    if (index > 1) state.repeat2 = repeat1;
  } else {
    state.repeat2 = repeat1;
  }
  state.repeat1 = repeat0;
  state.repeat0 = offset;
  return offset;
}

function copyLiterals(out: Output, begin: number, length: number): void {
  const { bytes } = out;
  const to = out.length;
  if (length > bytes.length - to) throw new InvalidFrame("more content than the frame claims");
  if (length > 64) bytes.set(literals.subarray(begin, begin + length), to);
  else for (let i = 0; i < length; i++) bytes[to + i] = literals[begin + i]!;
  out.length = to + length;
}

function copyMatch(out: Output, offset: number, length: number): void {
  const { bytes, prefix } = out;
  let to = out.length;
  const end = to + length;
  if (end > bytes.length) throw new InvalidFrame("more content than the frame claims");
  let from = to - offset;
  if (from < 0) {
    from += prefix.length;
    if (from < 0) throw new InvalidFrame("a match before the begin of the content");
    while (to < end && from < prefix.length) bytes[to++] = prefix[from++]!;
    from = to - offset;
  }
  if (offset >= end - to && end - to > 64) bytes.copyWithin(to, from, from + end - to);
  else while (to < end) bytes[to++] = bytes[from++]!;
  out.length = end;
}
