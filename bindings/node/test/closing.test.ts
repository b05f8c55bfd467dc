// Using a closed snapshot is an error; what it returned before stays valid.

import { SnapshotError, open, openSync, type Snapshot } from "@nuthatch/snapshot";
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { VECTORS } from "./vectors.js";

const TYPES = path.join(VECTORS, "v1", "types.nut");
const SET = path.join(VECTORS, "v1", "set-7.nut");
const CLOSED = { name: "SnapshotError", code: "closed" };

/** Calls of everything that reads a snapshot. */
const CALLS: ((snapshot: Snapshot) => unknown)[] = [
  (snapshot) => snapshot.get("bytes"),
  (snapshot) => snapshot.get("absent"),
  (snapshot) => snapshot.get("\ud800"),
  (snapshot) => snapshot.getString("string"),
  (snapshot) => snapshot.getMany(["a"]),
  (snapshot) => snapshot.has("a"),
  (snapshot) => snapshot.typeOf("a"),
  (snapshot) => [...snapshot],
  (snapshot) => [...snapshot.keys()],
  (snapshot) => [...snapshot.values()],
  (snapshot) => snapshot.stats(),
  (snapshot) => snapshot.metadata(),
  (snapshot) => snapshot.verifySync(),
  (snapshot) => snapshot.checkReadable(),
];

for (const file of [TYPES, SET]) {
  test(`every call after closing ${path.basename(file)} is an error`, async () => {
    const snapshot = openSync(file);
    assert.equal(snapshot.isClosed, false);
    snapshot.close();
    snapshot.close();
    assert.equal(snapshot.isClosed, true);
    for (const call of CALLS) assert.throws(() => call(snapshot), CLOSED, String(call));
    await assert.rejects(snapshot.verify(), CLOSED);
    assert.equal(snapshot.path, file);
  });

  test(`an iteration over ${path.basename(file)} that goes on after closing is an error`, () => {
    const snapshot = openSync(file);
    const iterators = [snapshot.entries(), snapshot.keys(), snapshot.values()];
    for (const iterator of iterators) assert.equal(iterator.next().done, false);
    snapshot.close();
    for (const iterator of iterators) assert.throws(() => iterator.next(), CLOSED);
  });
}

test("views that were returned before closing keep their bytes", () => {
  const snapshot = openSync(TYPES);
  const views = [...snapshot.values()].filter((value) => ArrayBuffer.isView(value));
  const copies = views.map((view) => view.slice());
  assert.ok(views.length > 5);
  snapshot.close();
  assert.deepEqual(views, copies);
});

test("a snapshot can be disposed", async () => {
  const snapshot = await open(TYPES);
  snapshot[Symbol.dispose]();
  assert.throws(() => snapshot.get("a"), CLOSED);
});

test("closing while a verification waits makes it fail", async () => {
  const snapshot = await open(path.join(VECTORS, "v1", "entries-20000.nut"));
  const verification = snapshot.verify();
  snapshot.close();
  await assert.rejects(verification, (error) => {
    assert.ok(error instanceof SnapshotError);
    return error.code === "closed";
  });
});
