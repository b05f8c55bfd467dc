// Frames that the reference implementation compressed are decompressed, and damaged ones are
// errors.

import zstd from "@bokuweb/zstd-wasm";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { before, test } from "node:test";
import { Dictionary } from "../dist/cjs/zstd/dictionary.js";
import { InvalidFrame } from "../dist/cjs/zstd/error.js";
import { decompress } from "../dist/cjs/zstd/frame.js";
import { xxh64 } from "../dist/cjs/zstd/xxh64.js";
import { random, type Random } from "./random.js";
import { VECTORS } from "./vectors.js";

before(() => zstd.init());

/** Returns bytes of a kind that exercises other parts of the decoder. */
function content(kind: number, len: number, next: Random): Uint8Array {
  const bytes = new Uint8Array(len);
  const words = ["nut", "hatch", "snapshot", " ", "\n", "{", "}", "0123", "aaaaaaaaaa"];
  for (let at = 0; at < len;) {
    if (kind === 0) bytes[at++] = next(256);
    else if (kind === 1) bytes[at++] = 97 + Math.floor(Math.sqrt(next(676)));
    else if (kind === 2)
      at += Buffer.from(bytes.buffer).write(words[next(words.length)]!, at) || len;
    else if (kind === 3) bytes[at++] = at % 1000 < 900 ? 0 : next(4);
    else bytes[at++] = at > 5000 && next(50) > 0 ? bytes[at - 1 - next(5000)]! : next(256);
  }
  return bytes;
}

/** The dictionary of a file of the vectors. */
function dictionary(): Buffer {
  const file = fs.readFileSync(path.join(VECTORS, "v1", "zstd-dictionary.nut"));
  const [at, len] = [file.readBigUInt64LE(56), file.readBigUInt64LE(64)].map(Number);
  return file.subarray(at, at! + len!);
}

const LENGTHS = [0, 1, 5, 20, 100, 255, 256, 1000, 4000, 70_000, 140_000, 300_000];

test("frames of every kind of content, length and level have their content", () => {
  const next = random(1);
  for (const len of LENGTHS) {
    for (let kind = 0; kind < 5; kind++) {
      const bytes = content(kind, len, next);
      for (const level of [1, 3, 9, 19]) {
        const frame = zstd.compress(bytes, level);
        assert.deepEqual(decompress(frame, undefined), bytes, `${kind} ${len} ${level}`);
      }
    }
  }
});

test("frames that were compressed with a dictionary have their content", () => {
  const next = random(2);
  const bytes = dictionary();
  const prepared = new Dictionary(bytes);
  const context = zstd.createCCtx();
  for (const len of LENGTHS) {
    for (let kind = 0; kind < 5; kind++) {
      for (const level of [1, 3, 19]) {
        const some = content(kind, len, next);
        // Parts of the dictionary, so that matches refer to it.
        for (let at = 0; at + 40 < len; at += 100) {
          some.set(prepared.content.subarray(at % 400, (at % 400) + 30), at);
        }
        const frame = zstd.compressUsingDict(context, some, bytes, level);
        assert.deepEqual(decompress(frame, prepared), some, `${kind} ${len} ${level}`);
        if (len > 0) assert.throws(() => decompress(frame, undefined), InvalidFrame);
      }
    }
  }
  zstd.freeCCtx(context);
});

test("a damaged frame is an error, or has the content that the reference decompresses", () => {
  const next = random(3);
  const differences: string[] = [];
  for (let round = 0; round < 4000; round++) {
    const frame = zstd.compress(content(next(5), 1 + next(3000), next), 1 + next(19)).slice();
    for (let i = next(3); i >= 0; i--) frame[4 + next(frame.length - 4)] = next(256);
    const expected = attempt(() => zstd.decompress(frame));
    const found = attempt(() => decompress(frame, undefined));
    if (found !== undefined) {
      assert.deepEqual(found, expected?.subarray(0, found.length), `round ${round}`);
    } else if (expected !== undefined) {
      differences.push(`round ${round}: ${expected.length}`);
    }
  }
  // The reference also accepts what follows the frame, and frames without their length.
  assert.ok(differences.length < 40, differences.join("\n"));
});

/** Returns the result of a function, or `undefined` for an invalid frame. */
function attempt(run: () => Uint8Array): Uint8Array | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof InvalidFrame || String(error).includes("Failed to")) return undefined;
    throw error;
  }
}

test("a frame with the checksum of its content is checked", () => {
  // `printf nuthatch | zstd --check`, with the length of the content.
  const bytes = Buffer.from("nuthatch");
  const sum = Buffer.alloc(4);
  sum.writeUInt32LE(Number(BigInt.asUintN(32, xxh64(bytes))));
  const head = Buffer.from("28b52ffd2408410000", "hex");
  const frame = Buffer.concat([head, bytes, sum]);
  assert.deepEqual(Buffer.from(decompress(frame, undefined)), bytes);
  frame[frame.length - 1]! ^= 1;
  assert.throws(() => decompress(frame, undefined), /a wrong checksum/);
});

test("the checksum of frames is XXH64", () => {
  const expected: [string, bigint][] = [
    ["", 0xef46db3751d8e999n],
    ["a", 0xd24ec4f1a98c6e5bn],
    ["abc", 0x44bc2cf5ad770999n],
    ["x".repeat(100), 0x92f0de5a88a3c094n],
  ];
  for (const [text, hash] of expected) {
    assert.equal(xxh64(Buffer.from(text)), hash);
  }
});
