// Mapped memory: truncated files, release by the garbage collector, threads.

import { SnapshotError, openSync } from "@nuthatch/snapshot";
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { withFolder } from "./folder.js";
import { VECTORS } from "./vectors.js";

const PACKAGE = path.join(import.meta.dirname, "..", "dist", "cjs", "index.js");
const FILE = path.join(VECTORS, "v1", "entries-20000.nut");
const PAGE = 4096;

/** Runs a program in a process of its own. Returns what it prints. */
function run(program: string, ...args: string[]): string {
  const head = `
    const assert = require("node:assert/strict");
    const fs = require("node:fs");
    const { openSync, open } = require(${JSON.stringify(PACKAGE)});
    const file = process.argv[1];
    const maps = () => fs.readFileSync("/proc/self/maps", "utf8").split(file).length - 1;`;
  const options = ["--expose-gc", "-e", head + program];
  return execFileSync(process.execPath, [...options, ...args], { encoding: "utf8" });
}

function withCopy<T>(check: (file: string) => T): T {
  return withFolder((folder) => {
    const file = path.join(folder, "copy.nut");
    fs.copyFileSync(FILE, file);
    return check(file);
  });
}

test("a file that is truncated while it is mapped is unreadable, and the process continues", () => {
  withCopy((file) => {
    const program = `
      const snapshot = openSync(file);
      const other = openSync(${JSON.stringify(FILE)});
      const keys = [...snapshot.keys()];
      const values = keys.map((key) => snapshot.get(key));
      const view = snapshot["files"][0].windows.first.bytes;
      fs.truncateSync(file, ${PAGE});
      const unreadable = { code: "unreadable", path: file };
      let failed = 0;
      for (const [i, key] of keys.entries()) {
        try {
          assert.equal(snapshot.get(key), values[i]);
        } catch (error) {
          assert.equal(error.code, "unreadable");
          failed++;
        }
      }
      assert.ok(failed > 0);
      assert.throws(() => snapshot.checkReadable(), unreadable);
      assert.throws(() => snapshot.verifySync(), unreadable);
      assert.throws(() => [...snapshot], unreadable);
      assert.equal(view[view.length - 1], 0);
      assert.equal(view[1], 0x4e);
      other.verifySync();
      console.log("continues");`;
    assert.equal(run(program, file), "continues\n");
  });
});

test("a truncated file that is opened again has the error of its length", () => {
  withCopy((file) => {
    fs.truncateSync(file, PAGE);
    assert.throws(() => openSync(file), { code: "corrupt", offset: 16 });
  });
});

test("a SIGBUS for another reason still ends the process", () => {
  const program = `
    require(${JSON.stringify(PACKAGE)}).openSync(${JSON.stringify(FILE)});
    process.kill(process.pid, "SIGBUS");
    setInterval(() => {}, 1000);`;
  assert.equal(spawnSync(process.execPath, ["-e", program]).signal, "SIGBUS");
});

test("the garbage collector unmaps a closed snapshot when no view of it is left", () => {
  withCopy((file) => {
    const program = `
      let snapshot = openSync(file);
      let view = snapshot["files"][0].windows.first.bytes.subarray(0, 4);
      assert.equal(maps(), 1);
      snapshot.close();
      snapshot = undefined;
      const collect = async (expected) => {
        for (let i = 0; i < 1000 && maps() !== expected; i++) {
          gc();
          await new Promise((resolve) => setImmediate(resolve));
        }
        assert.equal(maps(), expected);
      };
      (async () => {
        await collect(1);
        gc();
        assert.equal(view[1], 0x4e);
        view = undefined;
        await collect(0);
        console.log("unmapped");
      })();`;
    assert.equal(run(program, file), "unmapped\n");
  });
});

test("a file that a watch replaced is unmapped when its last reader has moved on", () => {
  withCopy((file) => {
    const program = `
      const { watch } = require(${JSON.stringify(PACKAGE)});
      const replace = () => {
        fs.copyFileSync(file, file + ".new");
        fs.renameSync(file + ".new", file);
      };
      const collect = async (expected) => {
        for (let i = 0; i < 1000 && maps() !== expected; i++) {
          gc();
          await new Promise((resolve) => setImmediate(resolve));
        }
        assert.equal(maps(), expected);
      };
      (async () => {
        const watching = await watch(file, { interval: 0 });
        let reader = watching.current;
        replace();
        await watching.refresh();
        await collect(2);
        reader.verifySync();
        reader = undefined;
        await collect(1);
        watching.current.verifySync();
        console.log("released");
      })();`;
    assert.equal(run(program, file), "released\n");
  });
});

test("snapshots that a program drops without closing them are unmapped in the end", () => {
  withCopy((file) => {
    const program = `
      (async () => {
        let max = 0;
        for (let i = 0; i < 20000; i++) {
          openSync(file);
          if (i % 100 === 0) {
            max = Math.max(max, maps());
            await new Promise((resolve) => setImmediate(resolve));
          }
        }
        console.log(max < 15000);
      })();`;
    assert.equal(run(program, file), "true\n");
  });
});

test("no descriptor stays open", () => {
  withCopy((file) => {
    const program = `
      (async () => {
        const before = fs.readdirSync("/proc/self/fd").length;
        const open1 = [openSync(file), await open(file), await open(file)];
        assert.equal(fs.readdirSync("/proc/self/fd").length, before);
        console.log(open1.length);
      })();`;
    assert.equal(run(program, file), "3\n");
  });
});

test("a write to a view changes neither the file nor the process's fate", () => {
  withCopy((file) => {
    const before = fs.readFileSync(file);
    const program = `
      const view = openSync(file)["files"][0].windows.first.bytes;
      view.fill(1);
      console.log(view[5000]);`;
    assert.equal(run(program, file), "1\n");
    assert.deepEqual(fs.readFileSync(file), before);
  });
});

test("a view cannot be taken away from a snapshot by a transfer", () => {
  const snapshot = openSync(path.join(VECTORS, "v1", "types.nut"));
  const view = [...snapshot.values()].find((value) => value instanceof BigInt64Array)!;
  structuredClone(view, { transfer: [view.buffer as ArrayBuffer] });
  snapshot.verifySync();
});

test("threads read the same file, and the add-on outlives the first of them", async () => {
  const program = `
    const { parentPort, workerData } = require("node:worker_threads");
    const { openSync } = require(workerData.package);
    const snapshot = openSync(workerData.file);
    let found = 0;
    for (let i = 0; i < 20000; i++) found += snapshot.has("key " + i) || snapshot.has("key_" + i);
    snapshot.verifySync();
    parentPort.postMessage(snapshot.size);`;
  const workerData = { package: PACKAGE, file: FILE };
  const sizes = await Promise.all(
    [1, 2, 3].map(
      () =>
        new Promise((resolve, reject) => {
          const worker = new Worker(program, { eval: true, workerData });
          worker.once("message", (size) => worker.once("exit", () => resolve(size)));
          worker.once("error", reject);
        }),
    ),
  );
  assert.deepEqual(sizes, [20_000, 20_000, 20_000]);
});

test("files that cannot be opened are errors of the system", () => {
  withFolder((folder) => {
    const fifo = path.join(folder, "fifo");
    execFileSync("mkfifo", [fifo]);
    for (const file of [path.join(folder, "missing"), folder, fifo, "/dev/null"]) {
      assert.throws(
        () => openSync(file),
        (error) => error instanceof SnapshotError && error.code === "io" && error.path === file,
      );
    }
    assert.throws(() => openSync(FILE, { residency: "other" as "mapped" }), TypeError);
  });
});
