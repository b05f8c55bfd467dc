/** Conversion of stored values to values of JavaScript. */

import type { Window } from "../bytes/windows.js";
import { decodeText } from "./text.js";
import {
  BOOL,
  BYTES,
  EMPTY_LIST,
  F32_LIST,
  F64,
  F64_LIST,
  I64,
  I64_LIST,
  STRING,
  STRING_LIST,
} from "./types.js";

/** A value. An empty list is an empty array. */
export type Value =
  | Uint8Array
  | string
  | boolean
  | bigint
  | number
  | BigInt64Array
  | Float64Array
  | Float32Array
  | string[];

if (new Uint8Array(Uint16Array.of(1).buffer)[0] !== 1) {
  throw new Error("nuthatch: this package requires a little-endian machine");
}

/**
 * Decodes a value.
 *
 * @param code the code of the type
 * @param window a window with all bytes of the value
 * @param at offset of the value in the window
 * @param len length of the value in bytes
 * @param copy whether bytes and lists are copied; otherwise they are views of the window
 * @returns the value, or `undefined` if the bytes are not a value of the type
 */
export function decodeValue(
  code: number,
  window: Window,
  at: number,
  len: number,
  copy: boolean,
): Value | undefined {
  switch (code) {
    case BYTES:
      return copy ? window.bytes.slice(at, at + len) : window.bytes.subarray(at, at + len);
    case STRING:
      return decodeText(window, at, len);
    case BOOL:
      return decodeBool(window, at, len);
    case I64:
      return len === 8 ? window.view.getBigInt64(at, true) : undefined;
    case F64:
      return len === 8 ? window.view.getFloat64(at, true) : undefined;
    case I64_LIST:
      return decodeNumbers(BigInt64Array, window, at, len, copy);
    case F64_LIST:
      return decodeNumbers(Float64Array, window, at, len, copy);
    case F32_LIST:
      return decodeNumbers(Float32Array, window, at, len, copy);
    case STRING_LIST:
      return decodeStrings(window, at, len);
    case EMPTY_LIST:
      return len === 0 ? [] : undefined;
    default:
      return undefined;
  }
}

function decodeBool(window: Window, at: number, len: number): boolean | undefined {
  if (len !== 1) return undefined;
  const byte = window.view.getUint8(at);
  return byte > 1 ? undefined : byte === 1;
}

interface NumbersConstructor<T> {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBuffer, byteOffset: number, length: number): T;
}

/** Returns a list of numbers: in place if it is aligned, unless a copy is required. */
function decodeNumbers<T>(
  type: NumbersConstructor<T>,
  { bytes }: Window,
  at: number,
  len: number,
  copy: boolean,
): T | undefined {
  const size = type.BYTES_PER_ELEMENT;
  if (len === 0 || len % size !== 0) return undefined;
  const offset = bytes.byteOffset + at;
  if (!copy && offset % size === 0) return new type(bytes.buffer, offset, len / size);
  return new type(bytes.slice(at, at + len).buffer, 0, len / size);
}

/** Decodes a list of strings: their number, the offset of the end of each, and the text. */
function decodeStrings(window: Window, at: number, len: number): string[] | undefined {
  if (len < 8) return undefined;
  const { view } = window;
  const count = view.getUint32(at, true);
  const textAt = 4 + 4 * count;
  if (count === 0 || textAt > len) return undefined;
  const strings: string[] = [];
  let begin = 0;
  for (let i = 1; i <= count; i++) {
    const end = view.getUint32(at + 4 * i, true);
    if (end < begin || end > len - textAt) return undefined;
    const text = decodeText(window, at + textAt + begin, end - begin);
    if (text === undefined) return undefined;
    strings.push(text);
    begin = end;
  }
  return begin === len - textAt ? strings : undefined;
}
