// The shared vectors of testdata/snapshot.

import type { ValueType } from "@nuthatch/snapshot";
import fs from "node:fs";
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
  return tableOf(file.replace(/nut$/, "json"));
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
  return tableOf("bad/cases.json");
}

/** Returns a table, such as `typed.json`. */
export function tableOf<T>(name: string): T {
  return parseJson(fs.readFileSync(path.join(VECTORS, name), "utf8")) as unknown as T;
}

/** Returns the bytes of a case: its file, cut or extended with zeros, and patched. */
export function bytesOf(found: Case): Buffer {
  const good = fs.readFileSync(path.join(VECTORS, found.file));
  const bytes = Buffer.alloc(Number(found.length ?? good.length));
  good.copy(bytes);
  for (const { at, hex } of found.patch ?? []) Buffer.from(hex, "hex").copy(bytes, Number(at));
  return bytes;
}

/** Copies all shards of `v1` into a folder. */
export function copyShards(folder: string): void {
  for (const name of fs.readdirSync(path.join(VECTORS, "v1"))) {
    if (!name.endsWith(".shard")) continue;
    fs.copyFileSync(path.join(VECTORS, "v1", name), path.join(folder, name));
  }
}

const passed: string[] = [];

/** Notes that a case passed, for the file that the environment variable NUTHATCH_CASES names. */
export function notePassed(name: string): void {
  passed.push(name);
}

process.on("exit", () => {
  const file = process.env["NUTHATCH_CASES"];
  if (file !== undefined && passed.length > 0)
    fs.writeFileSync(file, `${passed.sort().join("\n")}\n`);
});
