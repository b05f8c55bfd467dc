/** The tables that blocks use and pass on to the next block. */

import { InvalidFrame } from "./error.js";
import { buildTable, readProbabilities, repeatedSymbol, type FseTable } from "./fse.js";
import type { HuffmanTable } from "./huffman.js";

/** A kind of code in sequences: its limits, and its table if a block does not have one. */
export interface CodeKind {
  readonly name: string;
  readonly maxSymbol: number;
  readonly maxLog: number;
  readonly predefined: FseTable;
}

/** Returns how often each number of a list of pairs of number and repetitions occurs. */
function repeated(...pairs: readonly (readonly [count: number, times: number])[]): number[] {
  return pairs.flatMap(([count, times]) => new Array<number>(times).fill(count));
}

export const LITERAL_LENGTHS: CodeKind = {
  name: "literal lengths",
  maxSymbol: 35,
  maxLog: 9,
  predefined: buildTable(
    repeated([4, 1], [3, 1], [2, 11], [1, 3], [2, 9], [3, 1], [2, 1], [1, 5], [-1, 4]),
    6,
  ),
};

export const OFFSETS: CodeKind = {
  name: "offsets",
  maxSymbol: 31,
  maxLog: 8,
  predefined: buildTable(repeated([1, 6], [2, 3], [1, 15], [-1, 5]), 5),
};

export const MATCH_LENGTHS: CodeKind = {
  name: "match lengths",
  maxSymbol: 52,
  maxLog: 9,
  predefined: buildTable(repeated([1, 1], [4, 1], [3, 1], [2, 6], [1, 37], [-1, 7]), 6),
};

/** What a block leaves to the next one, and a dictionary to the first one. */
export interface DecoderState {
  huffman: HuffmanTable | undefined;
  literalLengths: FseTable | undefined;
  offsets: FseTable | undefined;
  matchLengths: FseTable | undefined;
  /** The last three offsets. */
  repeat0: number;
  repeat1: number;
  repeat2: number;
}

/** Returns the state at the start of a frame without a dictionary. */
export function initialState(): DecoderState {
  return {
    huffman: undefined,
    literalLengths: undefined,
    offsets: undefined,
    matchLengths: undefined,
    repeat0: 1,
    repeat1: 4,
    repeat2: 8,
  };
}

/**
 * Reads the table of a kind of code.
 *
 * @param mode how the table is stored: 0 predefined, 1 one symbol, 2 probabilities, 3 the last
 *   table
 * @param last the table of the last block
 * @returns the table and the offset of the first byte after it
 */
export function readTable(
  kind: CodeKind,
  mode: number,
  last: FseTable | undefined,
  view: DataView,
  begin: number,
  end: number,
): readonly [table: FseTable, end: number] {
  if (mode === 0) return [kind.predefined, begin];
  if (mode === 1) {
    if (begin >= end) throw new InvalidFrame(`a missing symbol of ${kind.name}`);
    const symbol = view.getUint8(begin);
    if (symbol > kind.maxSymbol) throw new InvalidFrame(`code ${symbol} of ${kind.name}`);
    return [repeatedSymbol(symbol), begin + 1];
  }
  if (mode === 2) {
    const found = readProbabilities(view, begin, end, kind.maxSymbol, kind.maxLog);
    return [buildTable(found.counts, found.log), found.end];
  }
  if (last === undefined) throw new InvalidFrame(`${kind.name} without a table to repeat`);
  return [last, begin];
}
