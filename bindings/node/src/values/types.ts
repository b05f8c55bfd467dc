/** The types of values. */

/** The name of a type, as in `nuthatch info --json`. */
export type ValueType =
  | "bytes"
  | "string"
  | "bool"
  | "i64"
  | "f64"
  | "list of i64"
  | "list of f64"
  | "list of f32"
  | "list of string"
  | "empty list";

/** Codes of the types in records. */
export const BYTES = 1;
export const STRING = 2;
export const BOOL = 3;
export const I64 = 4;
export const F64 = 5;
export const I64_LIST = 6;
export const F64_LIST = 7;
export const F32_LIST = 8;
export const STRING_LIST = 9;
export const EMPTY_LIST = 10;
export const LAST_CODE = 10;

/** Names by code. Code 0 is not valid. */
export const TYPE_NAMES: readonly (ValueType | undefined)[] = [
  undefined,
  "bytes",
  "string",
  "bool",
  "i64",
  "f64",
  "list of i64",
  "list of f64",
  "list of f32",
  "list of string",
  "empty list",
];

/** Alignments of values, in bytes, by code. */
export const ALIGNMENTS: readonly number[] = [1, 1, 1, 1, 8, 8, 8, 8, 4, 4, 1];

/** Returns the name of a valid code. */
export function nameOfType(code: number): ValueType {
  return TYPE_NAMES[code] ?? "bytes";
}
