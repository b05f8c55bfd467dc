// The shared vectors of testdata/snapshot, and values in the form of their JSON documents.

import type { Key, Snapshot, Value, ValueType } from "@nuthatch/snapshot";
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseJson, type Json } from "./json.js";

export const TESTDATA = path.join(import.meta.dirname, "..", "..", "..", "testdata");
export const VECTORS = path.join(TESTDATA, "snapshot");

/** A JSON document of a good file. */
export interface Document {
  readonly stats: { [name: string]: Json };
  readonly metadata?: { [name: string]: Json };
  readonly shards?: bigint;
  readonly absent: Json[];
  readonly entries: { key: Json; type: ValueType; value: Json }[];
}

/** An expected error. */
export interface ExpectedError {
  readonly code: string;
  readonly offset: bigint;
}

/** A case of bad/cases.json. */
export interface Case {
  readonly name: string;
  readonly file: string;
  readonly length?: bigint;
  readonly patch?: { at: bigint; hex: string }[];
  readonly of?: string;
  readonly open?: ExpectedError;
  readonly verify?: ExpectedError;
  readonly get?: { key: Json; answer: string };
}

/** Returns the document of a good file, such as `v1/one.nut`. */
export function documentOf(file: string): Document {
  const text = fs.readFileSync(path.join(VECTORS, file.replace(/nut$/, "json")), "utf8");
  return parseJson(text) as unknown as Document;
}

/** Returns the names of all good files, such as `v1/one.nut`. */
export function goodFiles(): string[] {
  return fs
    .readdirSync(path.join(VECTORS, "v1"))
    .filter((name) => name.endsWith(".json"))
    .map((name) => `v1/${name.replace(/json$/, "nut")}`)
    .sort();
}

export function badCases(): Case[] {
  const text = fs.readFileSync(path.join(VECTORS, "bad", "cases.json"), "utf8");
  return parseJson(text) as unknown as Case[];
}

/** Returns the bytes of a case: its file, cut or extended with zeros, and patched. */
export function bytesOf(found: Case): Buffer {
  const good = fs.readFileSync(path.join(VECTORS, found.file));
  const bytes = Buffer.alloc(Number(found.length ?? good.length));
  good.copy(bytes);
  for (const { at, hex } of found.patch ?? []) Buffer.from(hex, "hex").copy(bytes, Number(at));
  return bytes;
}

/** Runs a function with a temporary folder, which it removes. */
export function withFolder<T>(run: (folder: string) => T): T {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "nuthatch-"));
  const remove = () => fs.rmSync(folder, { recursive: true });
  let result: T;
  try {
    result = run(folder);
  } catch (error) {
    remove();
    throw error;
  }
  if (result instanceof Promise) return result.finally(remove) as T;
  remove();
  return result;
}

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
function withoutBits(value: Json): Json {
  const found = (value as { $f64?: Json } | null)?.$f64;
  return typeof found === "string" && found.startsWith("0x") ? { $f64: "NaN" } : value;
}

/** Returns a value in JSON form. */
export function jsonOf(value: Value): Json {
  if (value instanceof Uint8Array) return jsonOfBytes(value);
  if (value instanceof BigInt64Array) return [...value];
  if (value instanceof Float32Array) {
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

/** Checks that a snapshot has the contents of a document. */
export function checkGood(snapshot: Snapshot, expected: Document): void {
  const stats = snapshot.stats() as unknown as { [name: string]: unknown };
  for (const [name, value] of Object.entries(expected.stats)) {
    const found = stats[name];
    if (typeof value === "bigint") assert.equal(BigInt(found as number), value, name);
    else assert.deepEqual(bigints(found as object), value, name);
  }
  assert.equal(BigInt(stats["shards"] as number), expected.shards ?? 0n);
  const metadata = [...snapshot.metadata()].map(([name, value]) => [name, jsonOfText(value)]);
  assert.deepEqual(Object.fromEntries(metadata), expected.metadata ?? {});
  snapshot.verifySync();
  checkEntries(snapshot, expected);
}

function bigints(counts: object): object {
  return Object.fromEntries(Object.entries(counts).map(([name, n]) => [name, BigInt(n as number)]));
}

/** Checks that iteration and lookups return the entries of a document. */
export function checkEntries(snapshot: Snapshot, { entries, absent }: Document): void {
  assert.equal(snapshot.size, entries.length);
  const found = [...snapshot].map(([key, value]) => ({ key: jsonOfKey(key), value: jsonOf(value) }));
  const expected = entries.map(({ key, value }) => ({ key, value: withoutBits(value) }));
  assert.deepEqual(found, expected);
  const keys = entries.map(({ key }) => keyOf(key));
  const values = expected.map(({ value }) => value);
  for (const [i, { type }] of entries.entries()) {
    const key = keys[i]!;
    const value = values[i]!;
    assert.equal(snapshot.typeOf(key), type);
    assert.deepEqual(jsonOf(snapshot.get(key)!), value);
    if (typeof key === "string") assert.deepEqual(jsonOf(snapshot.get(Buffer.from(key))!), value);
  }
  assert.deepEqual(
    snapshot.getMany(keys).map((value) => jsonOf(value!)),
    values,
  );
  for (const key of absent) {
    assert.equal(snapshot.get(keyOf(key)), undefined);
    assert.equal(snapshot.has(keyOf(key)), false);
  }
}

const passed: string[] = [];

/** Notes that a case passed, for the file that the environment variable NUTHATCH_CASES names. */
export function notePassed(name: string): void {
  passed.push(name);
}

process.on("exit", () => {
  const file = process.env["NUTHATCH_CASES"];
  if (file !== undefined && passed.length > 0) fs.writeFileSync(file, `${passed.sort().join("\n")}\n`);
});
