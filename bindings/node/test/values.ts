// Keys and values in the form of the JSON documents of testdata/snapshot.

import type { Key, Value } from "@nuthatch/snapshot";
import type { Json } from "./json.js";

/** Returns the bytes of a key in JSON form. */
export function keyOf(key: Json): Key {
  return typeof key === "string" ? key : Buffer.from((key as { $bytes: string }).$bytes, "base64");
}

/** Returns a key in JSON form. */
export function jsonOfKey(key: Key): Json {
  return typeof key === "string" ? key : jsonOfBytes(key);
}

/** Returns bytes in JSON form: text if they are UTF-8. */
export function jsonOfText(bytes: Uint8Array): Json {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return jsonOfBytes(bytes);
  }
}

function jsonOfBytes(bytes: Uint8Array): Json {
  return { $bytes: Buffer.from(bytes).toString("base64") };
}

/** Returns a value in JSON form, as a document has it, without the bits of a single NaN. */
export function withoutBits(value: Json): Json {
  const found = (value as { $f64?: Json } | null)?.$f64;
  return typeof found === "string" && found.startsWith("0x") ? { $f64: "NaN" } : value;
}

/** Returns a value in JSON form. */
export function jsonOf(value: Value): Json {
  if (value instanceof Uint8Array) return jsonOfBytes(value);
  if (value instanceof BigInt64Array) return [...value];
  if (value instanceof Float32Array) {
    if (value.length === 0) return [];
    const bits = new Uint32Array(value.slice().buffer);
    return { $f32: Array.from(value, (number, i) => jsonOfFloat(number, BigInt(bits[i]!), 8)) };
  }
  // The engine does not keep the bits of a NaN that is a single number.
  if (typeof value === "number") return Number.isFinite(value) ? value : { $f64: String(value) };
  if (!(value instanceof Float64Array)) return value;
  const list = jsonOfFloats(value);
  return list.some((number) => typeof number === "string") ? { $f64: list } : list;
}

function jsonOfFloats(value: Float64Array): Json[] {
  const bits = new BigUint64Array(value.slice().buffer);
  return Array.from(value, (number, i) => jsonOfFloat(number, bits[i]!, 16));
}

function jsonOfFloat(number: number, bits: bigint, digits: number): Json {
  if (!Number.isNaN(number)) return Number.isFinite(number) ? number : String(number);
  const isPlain = bits === (digits === 16 ? 0x7ff8000000000000n : 0x7fc00000n);
  return isPlain ? "NaN" : `0x${bits.toString(16).padStart(digits, "0")}`;
}
