// The reader agrees with the tables of hashes and of typed lookups, and reads the large file.

import { SnapshotError, openSync, type Snapshot, type ValueType } from "@nuthatch/snapshot";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { KeyHash, keyBuffer } from "../../dist/cjs/reader/key.js";
import { withFolder } from "../folder.js";
import type { Json } from "../json.js";
import { jsonOf, keyOf, withoutBits } from "../values.js";
import { VECTORS, notePassed, tableOf, type Document } from "../vectors.js";
import { checkEntries } from "./check.js";

interface HashCase {
  readonly name: string;
  readonly key: Json;
  readonly seed: string;
  readonly hash: string;
}

test("keys have the hashes of the table", () => {
  for (const { name, key, seed, hash } of tableOf<HashCase[]>("hashes.json")) {
    const found = new KeyHash(BigInt(`0x${seed}`));
    assert.ok(keyBuffer.set(keyOf(key)));
    found.hash(keyBuffer.view, keyBuffer.length);
    const digits = [found.high, found.low].map((half) =>
      (half >>> 0).toString(16).padStart(8, "0"),
    );
    assert.equal(digits.join(""), hash, name);
    notePassed(name);
  }
});

interface TypedCase {
  readonly name: string;
  readonly file: string;
  readonly key: Json;
  readonly as: Exclude<ValueType, "empty list">;
  readonly value?: Json;
  readonly absent?: boolean;
  readonly found?: ValueType;
}

const GETTERS = {
  bytes: "getBytes",
  string: "getString",
  bool: "getBool",
  i64: "getI64",
  f64: "getF64",
  "list of i64": "getI64List",
  "list of f64": "getF64List",
  "list of f32": "getF32List",
  "list of string": "getStringList",
} as const;

test("typed lookups return the values of the table, or the type that they found", () => {
  const snapshots = new Map<string, Snapshot>();
  for (const found of tableOf<TypedCase[]>("typed.json")) {
    const snapshot = snapshots.get(found.file) ?? openSync(path.join(VECTORS, found.file));
    snapshots.set(found.file, snapshot);
    checkTyped(snapshot, found);
    notePassed(found.name);
  }
});

function checkTyped(snapshot: Snapshot, expected: TypedCase): void {
  const { name, as } = expected;
  const get = () => snapshot[GETTERS[as]](keyOf(expected.key));
  if (expected.found === undefined) {
    const value = get();
    if (expected.absent === true) assert.equal(value, undefined, name);
    else assert.deepEqual(jsonOf(value!), withoutBits(expected.value!), name);
    return;
  }
  assert.throws(get, (error) => {
    assert.ok(error instanceof SnapshotError);
    const { code, expected: requested, found } = error;
    assert.deepEqual([code, requested, found], ["wrong-type", as, expected.found], name);
    return true;
  });
}

interface LargeCase extends Omit<Document, "stats"> {
  readonly name: string;
  readonly length: bigint;
  readonly patch: { at: bigint; hex: string }[];
}

test("entries beyond 4 GiB are found", () => {
  withFolder((folder) => {
    const large = tableOf<LargeCase>("large.json");
    const file = path.join(folder, "large.nut");
    const fd = fs.openSync(file, "w");
    fs.ftruncateSync(fd, Number(large.length));
    for (const { at, hex } of large.patch) {
      fs.writeSync(fd, Buffer.from(hex, "hex"), 0, hex.length / 2, Number(at));
    }
    fs.closeSync(fd);
    checkEntries(openSync(file), { ...large, stats: {} });
    notePassed(large.name);
  });
});
