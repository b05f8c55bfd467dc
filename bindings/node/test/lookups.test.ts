// Lookups: keys of every form, types, views and copies, small windows, bytes in memory.

import { Snapshot, SnapshotError, open, openSync } from "@nuthatch/snapshot";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { test } from "node:test";
import { checkEntries, checkGood } from "./conformance/check.js";
import { openBytes } from "../dist/cjs/reader/snapshot.js";
import { decodeText } from "../dist/cjs/values/text.js";
import { VECTORS, documentOf, goodFiles } from "./vectors.js";

const file = (name: string) => path.join(VECTORS, "v1", name);
const isSet = (name: string) => name.includes("set-");

test("files in memory have the contents of their documents", () => {
  for (const name of goodFiles().filter((found) => !isSet(found))) {
    const bytes = fs.readFileSync(path.join(VECTORS, name));
    checkGood(Snapshot.fromBuffer(bytes), documentOf(name));
    // Bytes that are not aligned are copied.
    const odd = new Uint8Array(bytes.length + 9).subarray(9);
    odd.set(bytes);
    checkGood(Snapshot.fromBuffer(odd), documentOf(name));
    const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
    shared.set(bytes);
    checkGood(Snapshot.fromBuffer(shared), documentOf(name));
  }
});

test("records and values that cross the ends of windows are read", () => {
  for (const name of goodFiles().filter((found) => !isSet(found))) {
    const bytes = new Uint8Array(fs.readFileSync(path.join(VECTORS, name)));
    for (const stride of [1024, 4096]) {
      checkGood(openBytes(bytes, {}, { stride, overlap: 1024 }), documentOf(name));
    }
  }
});

test("the manifest of a set in memory is not supported", () => {
  const bytes = fs.readFileSync(file("set-3.nut"));
  assert.throws(() => Snapshot.fromBuffer(bytes), { code: "unsupported", offset: 0 });
});

test("an asynchronously opened snapshot is the same", async () => {
  for (const name of ["types.nut", "set-7.nut"]) {
    const snapshot = await open(file(name));
    checkGood(snapshot, documentOf(`v1/${name}`));
    await snapshot.verify();
    checkEntries(await open(file(name), { residency: "copied" }), documentOf(`v1/${name}`));
  }
  await assert.rejects(open(file("missing")), { code: "io" });
  await assert.rejects(open(path.join(VECTORS, "bad", "no-bytes.nut")), { code: "not-a-snapshot" });
});

test("keys are strings or bytes, and no snapshot has keys that are neither", () => {
  const snapshot = openSync(file("types.nut"));
  assert.equal(snapshot.get("string"), "a nuthatch");
  assert.equal(snapshot.get(Buffer.from("string")), "a nuthatch");
  assert.equal(snapshot.get(new Uint8Array(Buffer.from(" string")).subarray(1)), "a nuthatch");
  for (const key of ["\ud800", "a\udc00b", "x".repeat(65_536), "ä".repeat(40_000)]) {
    assert.equal(snapshot.get(key), undefined);
    assert.equal(snapshot.has(key), false);
  }
  assert.equal(snapshot.get(new Uint8Array(65_536)), undefined);
  for (const key of [1, null, undefined, {}]) {
    assert.throws(() => snapshot.get(key as unknown as string), TypeError);
  }
});

test("iteration returns keys as text where they are UTF-8, or always as bytes", () => {
  const snapshot = openSync(file("types.nut"));
  const keys = [...snapshot.keys()];
  assert.ok(keys.some((key) => typeof key !== "string"));
  assert.ok(keys.includes("string"));
  const bytes: Uint8Array[] = [...snapshot.keys({ keys: "bytes" })];
  assert.deepEqual(
    bytes,
    keys.map((key) => (typeof key === "string" ? new TextEncoder().encode(key) : key)),
  );
  assert.deepEqual(
    [...snapshot.entries({ keys: "bytes" })].map(([key]) => key),
    bytes,
  );
  assert.deepEqual(
    [...snapshot].map(([, value]) => value),
    [...snapshot.values()],
  );
});

test("lists and bytes are views of the file, and copies on request", () => {
  for (const residency of ["mapped", "copied"] as const) {
    const shared = openSync(file("types.nut"), { residency });
    const first = [...shared.values()].find((value) => value instanceof Float64Array);
    const again = [...shared.values()].find((value) => value instanceof Float64Array);
    assert.equal(first!.buffer, again!.buffer);
    assert.ok(shared.getBytes("bytes")!.buffer.byteLength > 1000);
    const copied = openSync(file("types.nut"), { residency, copy: true });
    const bytes = copied.getBytes("bytes")!;
    assert.equal(bytes.buffer.byteLength, bytes.length);
    bytes.fill(0);
    assert.notDeepEqual(copied.getBytes("bytes"), bytes);
    for (const value of copied.values()) {
      if (ArrayBuffer.isView(value)) assert.equal(value.buffer.byteLength, value.byteLength);
    }
  }
});

test("getMany takes any iterable, also with keys that are missing", () => {
  for (const name of ["types.nut", "set-3.nut"]) {
    const snapshot = openSync(file(name));
    const keys = function* () {
      yield "string";
      yield "absent 0";
      yield "\ud800";
      yield Buffer.from("string");
    };
    const expected = ["a nuthatch", undefined, undefined, "a nuthatch"];
    assert.deepEqual(snapshot.getMany(keys()), expected);
    assert.deepEqual(snapshot.getMany([]), []);
    const many = Array.from({ length: 1000 }, (_, i) => (i % 3 === 0 ? "string" : `absent ${i}`));
    assert.deepEqual(
      snapshot.getMany(many),
      many.map((key) => snapshot.get(key)),
    );
  }
});

test("errors say the place, what was expected and found, and what to do", () => {
  const damaged = path.join(VECTORS, "bad", "header-checksum.nut");
  assert.throws(
    () => openSync(damaged),
    (error) => {
      assert.ok(error instanceof SnapshotError && error instanceof Error);
      assert.match(error.message, /^damaged file: .*header-checksum.nut: at byte 504: expected/);
      assert.match(error.message, /, found [0-9a-f]{16}; copy or build the file again/);
      assert.deepEqual([error.name, error.code, error.offset], ["SnapshotError", "corrupt", 504]);
      return true;
    },
  );
});

test("codes of errors are in the table of all languages", () => {
  const table = fs.readFileSync(path.join(VECTORS, "..", "errors.csv"), "utf8");
  const codes = table.split("\n").map((line) => line.split(",")[0]);
  for (const code of [
    "io",
    "not-a-snapshot",
    "unsupported",
    "corrupt",
    "wrong-type",
    "unreadable",
  ]) {
    assert.ok(codes.includes(code), code);
  }
});

test("text of every length decodes, with a byte order mark and any character", () => {
  const alphabets = ["a", "é", "鳥", "🐦", "\ufeff", "\0"];
  for (const letter of alphabets) {
    for (let count = 0; count < 150; count++) {
      const text = letter.repeat(count) + "end".slice(count % 4);
      const bytes = new TextEncoder().encode(`..${text}..`);
      const window = { bytes, view: new DataView(bytes.buffer) };
      assert.equal(decodeText(window, 2, bytes.length - 4), text);
    }
  }
  for (let len = 1; len < 140; len++) {
    const bytes = new Uint8Array(len).fill(97);
    bytes[len - 1] = 0xff;
    assert.equal(decodeText({ bytes, view: new DataView(bytes.buffer) }, 0, len), undefined);
  }
});

test("programs that import and programs that require share the same classes", () => {
  const require = createRequire(import.meta.url);
  const required = require("@nuthatch/snapshot") as typeof import("@nuthatch/snapshot");
  assert.equal(required.Snapshot, Snapshot);
  assert.equal(required.SnapshotError, SnapshotError);
});

test("the entry for browsers reads files in memory without Node.js", async () => {
  const { Snapshot: Browser } = await import("@nuthatch/snapshot/browser");
  const snapshot = Browser.fromBuffer(fs.readFileSync(file("types.nut")));
  checkGood(snapshot as unknown as Snapshot, documentOf("v1/types.nut"));
  const dist = path.join(import.meta.dirname, "..", "dist", "esm");
  const modules = fs.readdirSync(dist, { recursive: true, encoding: "utf8" });
  for (const name of modules.filter((found) => found.endsWith(".js"))) {
    const code = fs.readFileSync(path.join(dist, name), "utf8");
    assert.doesNotMatch(code, /from "node:|\brequire\(|\bBuffer\.|\bprocess\./, name);
  }
});

test("a process that reads a snapshot ends by itself", () => {
  const program = `
    const { watch } = require(process.argv[1]);
    watch(process.argv[2]).then((watching) => console.log(watching.current.size));`;
  const entry = path.join(import.meta.dirname, "..", "dist", "cjs", "index.js");
  const output = execFileSync(process.execPath, ["-e", program, entry, file("types.nut")]);
  assert.equal(String(output), "37\n");
});
