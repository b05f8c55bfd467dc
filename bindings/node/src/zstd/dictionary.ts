/** Dictionaries, as `zstd --train` creates them. */

import { PADDING } from "./bits.js";
import { InvalidFrame } from "./error.js";
import { buildTable, readProbabilities, type FseTable } from "./fse.js";
import { readHuffmanTable } from "./huffman.js";
import {
  LITERAL_LENGTHS,
  MATCH_LENGTHS,
  OFFSETS,
  initialState,
  type CodeKind,
  type DecoderState,
} from "./tables.js";

const MAGIC = 0xec30a437;

/** A prepared dictionary. */
export class Dictionary {
  /** The number of the dictionary, or 0 if it has none. */
  readonly id: number;
  /** What matches can copy. */
  readonly content: Uint8Array;
  private readonly state: DecoderState;

  /**
   * @param bytes the dictionary; bytes without the magic of a dictionary are content only
   * @throws InvalidFrame if the tables of the dictionary are not valid
   */
  constructor(bytes: Uint8Array) {
    const padded = new Uint8Array(bytes.length + PADDING);
    padded.set(bytes);
    const view = new DataView(padded.buffer);
    this.state = initialState();
    this.id = 0;
    if (bytes.length < 8 || view.getUint32(0, true) !== MAGIC) {
      this.content = bytes;
      return;
    }
    this.id = view.getUint32(4, true);
    const end = bytes.length;
    let at = 8;
    const { state } = this;
    [state.huffman, at] = readHuffmanTable(view, at, end);
    [state.offsets, at] = readStoredTable(OFFSETS, view, at, end);
    [state.matchLengths, at] = readStoredTable(MATCH_LENGTHS, view, at, end);
    [state.literalLengths, at] = readStoredTable(LITERAL_LENGTHS, view, at, end);
    if (at + 12 > end) throw new InvalidFrame("a dictionary that is too short");
    this.content = bytes.subarray(at + 12);
    const repeats = [0, 4, 8].map((offset) => view.getUint32(at + offset, true));
    if (repeats.some((repeat) => repeat === 0 || repeat > this.content.length)) {
      throw new InvalidFrame("a dictionary with offsets beyond its content");
    }
    [state.repeat0, state.repeat1, state.repeat2] = repeats as [number, number, number];
  }

  /** Returns the state at the start of a frame. */
  initialState(): DecoderState {
    return { ...this.state };
  }
}

function readStoredTable(
  kind: CodeKind,
  view: DataView,
  begin: number,
  end: number,
): readonly [table: FseTable, end: number] {
  const found = readProbabilities(view, begin, end, kind.maxSymbol, kind.maxLog);
  return [buildTable(found.counts, found.log), found.end];
}
