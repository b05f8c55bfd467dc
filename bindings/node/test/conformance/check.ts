// Compares a snapshot with a document of the vectors.

import type { Snapshot } from "@nuthatch/snapshot";
import assert from "node:assert/strict";
import { jsonOf, jsonOfKey, jsonOfText, keyOf, withoutBits } from "../values.js";
import type { Document } from "../vectors.js";

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
  const found = [...snapshot].map(([key, value]) => ({
    key: jsonOfKey(key),
    value: jsonOf(value),
  }));
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
