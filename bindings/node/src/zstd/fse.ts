/** Finite state entropy: tables of probabilities, and the decoding tables that follow from them. */

import { ForwardBits } from "./bits.js";
import { InvalidFrame } from "./error.js";

/** A decoding table. A state has a symbol, a number of bits to read, and a base to add to them. */
export interface FseTable {
  /** Binary logarithm of the number of states. */
  readonly log: number;
  readonly symbols: Uint8Array;
  readonly bits: Uint8Array;
  readonly bases: Uint16Array;
}

/** Returns the table with one state, for a symbol that is repeated. */
export function repeatedSymbol(symbol: number): FseTable {
  return {
    log: 0,
    symbols: Uint8Array.of(symbol),
    bits: new Uint8Array(1),
    bases: new Uint16Array(1),
  };
}

/** Probabilities of symbols, and the offset of the first byte after them. */
export interface Probabilities {
  /** The number of states of each symbol; -1 for a symbol that is less probable than one state. */
  readonly counts: readonly number[];
  readonly log: number;
  readonly end: number;
}

/**
 * Reads the probabilities of symbols.
 *
 * @param maxSymbol the highest symbol that is valid
 * @param maxLog the maximum binary logarithm of the number of states
 */
export function readProbabilities(
  view: DataView,
  begin: number,
  end: number,
  maxSymbol: number,
  maxLog: number,
): Probabilities {
  const bits = new ForwardBits(view, begin, end);
  const log = bits.peek(4) + 5;
  bits.skip(4);
  if (log > maxLog) throw new InvalidFrame(`a table of 2^${log} states`);
  const counts: number[] = [];
  let left = 1 << log;
  while (left > 0) {
    if (counts.length > maxSymbol) throw new InvalidFrame("too many symbols in a table");
    // Values below `short` take one bit less.
    const width = 32 - Math.clz32(left + 1);
    const short = (1 << width) - 2 - left;
    let value = bits.peek(width);
    const low = value & ((1 << (width - 1)) - 1);
    if (low < short) {
      value = low;
      bits.skip(width - 1);
    } else {
      if (value >= 1 << (width - 1)) value -= short;
      bits.skip(width);
    }
    const count = value - 1;
    left -= Math.abs(count);
    if (left < 0) throw new InvalidFrame("too many states in a table");
    counts.push(count);
    if (count === 0) readZeros(bits, counts, maxSymbol);
  }
  return { counts, log, end: bits.position() };
}

/** Reads how many more symbols have no state. */
function readZeros(bits: ForwardBits, counts: number[], maxSymbol: number): void {
  for (;;) {
    const repeat = bits.peek(2);
    bits.skip(2);
    for (let i = 0; i < repeat; i++) counts.push(0);
    if (counts.length > maxSymbol + 1) throw new InvalidFrame("too many symbols in a table");
    if (repeat < 3) return;
  }
}

/** Builds the decoding table for probabilities whose states add up to `2^log`. */
export function buildTable(counts: readonly number[], log: number): FseTable {
  const size = 1 << log;
  const symbols = new Uint8Array(size);
  const next = new Uint16Array(counts.length);
  let high = size - 1;
  for (const [symbol, count] of counts.entries()) {
    next[symbol] = count === -1 ? 1 : count;
    if (count === -1) symbols[high--] = symbol;
  }
  const step = (size >>> 1) + (size >>> 3) + 3;
  let position = 0;
  for (const [symbol, count] of counts.entries()) {
    for (let i = 0; i < count; i++) {
      symbols[position] = symbol;
      do position = (position + step) & (size - 1);
      while (position > high);
    }
  }
  const bits = new Uint8Array(size);
  const bases = new Uint16Array(size);
  for (let state = 0; state < size; state++) {
    const number = next[symbols[state]!]!++;
    const width = log - (31 - Math.clz32(number));
    bits[state] = width;
    bases[state] = (number << width) - size;
  }
  return { log, symbols, bits, bases };
}
