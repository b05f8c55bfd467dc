// Good files have the contents of their documents; bad ones have the errors of their cases.

import { SnapshotError, openSync, type Key, type Snapshot } from "@nuthatch/snapshot";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { checkEntries, checkGood } from "./check.js";
import { keyOf } from "../values.js";
import {
  VECTORS,
  badCases,
  bytesOf,
  copyShards,
  documentOf,
  goodFiles,
  notePassed,
  type Case,
  type ExpectedError,
} from "../vectors.js";
import { withFolder } from "../folder.js";

describe("good files", () => {
  for (const file of goodFiles()) {
    test(`${file} has the contents of its document`, () => {
      checkGood(openSync(path.join(VECTORS, file)), documentOf(file));
      checkGood(openSync(path.join(VECTORS, file), { residency: "copied" }), documentOf(file));
      notePassed(file);
    });
  }
});

describe("bad files", () => {
  const cases = badCases();
  for (const file of new Set(cases.map((found) => found.file))) {
    test(`damage of ${file} is reported at its place`, () =>
      withFolder((folder) => {
        copyShards(folder);
        const place = path.join(folder, "case.nut");
        for (const found of cases.filter((one) => one.file === file)) {
          fs.writeFileSync(place, bytesOf(found));
          try {
            checkBad(place, found);
          } catch (error) {
            throw new Error(`case ${found.name}`, { cause: error });
          }
          notePassed(`${file}: ${found.name}`);
        }
      }));
  }
});

/** Calls a function. Returns its error in the form of the cases, and its result. */
function attempt<T>(run: () => T): { error?: ExpectedError; result?: T } {
  try {
    return { result: run() };
  } catch (error) {
    if (!(error instanceof SnapshotError)) throw error;
    assert.ok(error.expected !== undefined && error.found !== undefined && error.path !== "");
    return { error: { code: error.code, offset: BigInt(error.offset!) } };
  }
}

/** Returns the result of a lookup in the form of the cases. */
function lookup(snapshot: Snapshot, key: Key): string {
  const { error, result } = attempt(() => snapshot.get(key));
  if (error !== undefined) assert.equal(error.code, "corrupt");
  return error !== undefined ? "corrupt" : result === undefined ? "absent" : "value";
}

function checkBad(file: string, expected: Case): void {
  const { error, result: snapshot } = attempt(() => openSync(file));
  assert.deepEqual(error, expected.open);
  if (snapshot === undefined) return;
  assert.deepEqual(attempt(() => snapshot.verifySync()).error, expected.verify);
  const document = documentOf(expected.of ?? expected.file);
  if (expected.verify === undefined) {
    checkEntries(snapshot, document);
    return;
  }
  const keys = [...document.entries.map(({ key }) => key), ...document.absent];
  const results = keys.map((key) => lookup(snapshot, keyOf(key)));
  const iteration = attempt(() => [...snapshot]).error?.code;
  if (results.includes("corrupt")) assert.equal(iteration, "corrupt");
  if (expected.get !== undefined) {
    const { key, answer } = expected.get;
    assert.equal(lookup(snapshot, keyOf(key)), answer);
    if (answer === "corrupt") assert.equal(iteration, "corrupt");
  }
}
