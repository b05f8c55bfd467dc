/** Huffman codes of literals. */

import { BackwardBits } from "./bits.js";
import { InvalidFrame } from "./error.js";
import { buildTable, readProbabilities } from "./fse.js";

const MAX_BITS = 12;
const MAX_WEIGHTS_LOG = 6;

/** A decoding table: the next `log` bits select a symbol and the length of its code. */
export interface HuffmanTable {
  readonly log: number;
  readonly symbols: Uint8Array;
  readonly lengths: Uint8Array;
}

/** Reads a table. Returns it and the offset of the first byte after it. */
export function readHuffmanTable(
  view: DataView,
  begin: number,
  end: number,
): readonly [table: HuffmanTable, end: number] {
  if (begin >= end) throw new InvalidFrame("a missing Huffman table");
  const head = view.getUint8(begin);
  const start = begin + 1;
  if (head >= 128) {
    const count = head - 127;
    const weightsEnd = start + ((count + 1) >>> 1);
    if (weightsEnd > end) throw new InvalidFrame("a Huffman table beyond the end of its block");
    const weights = Array.from({ length: count }, (_, i) => {
      const byte = view.getUint8(start + (i >>> 1));
      return i % 2 === 0 ? byte >>> 4 : byte & 15;
    });
    return [buildHuffmanTable(weights), weightsEnd];
  }
  const weightsEnd = start + head;
  if (weightsEnd > end) throw new InvalidFrame("a Huffman table beyond the end of its block");
  return [buildHuffmanTable(readWeights(view, start, weightsEnd)), weightsEnd];
}

/** Reads weights that two alternating states of one table encode. */
function readWeights(view: DataView, begin: number, end: number): number[] {
  const found = readProbabilities(view, begin, end, 255, MAX_WEIGHTS_LOG);
  const table = buildTable(found.counts, found.log);
  const bits = new BackwardBits(view);
  bits.open(view, found.end, end);
  const states = [bits.read(table.log), bits.read(table.log)] as [number, number];
  if (bits.left < 0) throw new InvalidFrame("Huffman weights without their states");
  const weights: number[] = [];
  for (let turn: 0 | 1 = 0; ; turn = turn === 0 ? 1 : 0) {
    const state = states[turn];
    weights.push(table.symbols[state]!);
    if (weights.length > 255) throw new InvalidFrame("too many Huffman weights");
    states[turn] = table.bases[state]! + bits.read(table.bits[state]!);
    if (bits.left < 0) {
      // The stream ends when a state needs more bits than are left; the other one is complete.
      weights.push(table.symbols[states[turn === 0 ? 1 : 0]]!);
      return weights;
    }
  }
}

/** Builds the table for the weights of all symbols but the last, whose weight follows from them. */
export function buildHuffmanTable(weights: readonly number[]): HuffmanTable {
  let sum = 0;
  for (const weight of weights) {
    if (weight > MAX_BITS) throw new InvalidFrame(`a Huffman weight of ${weight}`);
    if (weight > 0) sum += 2 ** (weight - 1);
  }
  if (sum === 0 || weights.length > 255) throw new InvalidFrame("Huffman weights without codes");
  const log = 32 - Math.clz32(sum);
  if (log > MAX_BITS) throw new InvalidFrame(`Huffman codes of ${log} bits`);
  const rest = 2 ** log - sum;
  if ((rest & (rest - 1)) !== 0) throw new InvalidFrame("Huffman weights that are not complete");
  const all = [...weights, 32 - Math.clz32(rest)];
  const ones = all.filter((weight) => weight === 1).length;
  if (ones < 2 || ones % 2 === 1) throw new InvalidFrame("Huffman weights without pairs of codes");
  const symbols = new Uint8Array(1 << log);
  const lengths = new Uint8Array(1 << log);
  let at = 0;
  for (let weight = 1; weight <= log; weight++) {
    for (const [symbol, found] of all.entries()) {
      if (found !== weight) continue;
      const next = at + 2 ** (weight - 1);
      symbols.fill(symbol, at, next);
      lengths.fill(log + 1 - weight, at, next);
      at = next;
    }
  }
  return { log, symbols, lengths };
}

const stream = new BackwardBits(new DataView(new ArrayBuffer(0)));

/** Decodes a stream of exactly `outEnd - outBegin` literals. */
export function decodeStream(
  table: HuffmanTable,
  view: DataView,
  begin: number,
  end: number,
  out: Uint8Array,
  outBegin: number,
  outEnd: number,
): void {
  stream.open(view, begin, end);
  const { log, symbols, lengths } = table;
  for (let i = outBegin; i < outEnd; i++) {
    const code = stream.peek(log);
    out[i] = symbols[code]!;
    stream.left -= lengths[code]!;
  }
  if (stream.left !== 0) throw new InvalidFrame("Huffman codes that do not end with their stream");
}
