// A watch follows the steps of the table.

import { watch, type Snapshot } from "@nuthatch/snapshot";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { withFolder } from "../folder.js";
import { VECTORS, copyShards, documentOf, notePassed, tableOf } from "../vectors.js";

interface Step {
  readonly publish?: string;
  readonly remove?: boolean;
  readonly current: string;
  readonly entries: bigint;
  readonly switched: bigint;
  readonly rejected: bigint;
  readonly error: boolean;
}

interface WatchCase {
  readonly name: string;
  readonly verify: boolean;
  readonly steps: Step[];
}

for (const { name, verify, steps } of tableOf<WatchCase[]>("watch.json")) {
  test(name, () =>
    withFolder(async (folder) => {
      copyShards(folder);
      const file = path.join(folder, "watched.nut");
      change(file, steps[0]!);
      const watching = await watch(file, { verify, interval: 0 });
      for (const [i, step] of steps.entries()) {
        if (i > 0) {
          change(file, step);
          const before = watching.status.switched;
          assert.equal(await watching.refresh(), BigInt(before) < step.switched);
        }
        const { switched, rejected, error } = watching.status;
        const found = [BigInt(switched), BigInt(rejected), error !== undefined];
        assert.deepEqual(found, [step.switched, step.rejected, step.error], `step ${i}`);
        assert.equal(BigInt(watching.current.size), step.entries);
        checkCurrent(watching.current, step.current);
      }
      watching.close();
      notePassed(name);
    }),
  );
}

/** Changes the file at a path. */
function change(file: string, step: Step): void {
  if (step.remove === true) fs.rmSync(file);
  if (step.publish === undefined) return;
  const temporary = `${file}.new`;
  fs.copyFileSync(path.join(VECTORS, step.publish), temporary);
  fs.renameSync(temporary, file);
}

/** Checks that a snapshot has the statistics of a good file. */
function checkCurrent(snapshot: Snapshot, file: string): void {
  if (!file.startsWith("v1/")) return;
  assert.equal(BigInt(snapshot.stats().file_bytes), documentOf(file).stats["file_bytes"]);
}
