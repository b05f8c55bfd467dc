// The packed package installs into an empty folder without a network, and runs the README's
// example.

import assert from "node:assert/strict";
import { execFileSync, type ExecFileSyncOptions } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { withFolder } from "./folder.js";

const ROOT = path.join(import.meta.dirname, "..");
const TSC = path.join(ROOT, "node_modules", "typescript", "bin", "tsc");

function run(command: string, args: string[], cwd: string): string {
  const options: ExecFileSyncOptions = { cwd, stdio: ["ignore", "pipe", "pipe"] };
  return String(execFileSync(command, args, options));
}

/** Returns the first block of code in JavaScript of the README, and the output in its comments. */
function example(): { code: string; output: string } {
  const readme = fs.readFileSync(path.join(ROOT, "README.md"), "utf8");
  const code = /```js\n(.*?)```/s.exec(readme)![1]!;
  const printed = code.split("\n").filter((line) => line.includes("console.log("));
  const output = printed.map((line) => line.split("; // ")[1]!.replace(/: .*/, ""));
  return { code, output: `${output.join("\n")}\n` };
}

/** Packs the package in a copy of its sources, so that other tests can use `dist` meanwhile. */
function pack(folder: string): string {
  const copy = path.join(folder, "repository", "bindings", "node");
  fs.mkdirSync(copy, { recursive: true });
  fs.copyFileSync(path.join(ROOT, "..", "..", "LICENSE"), path.join(copy, "..", "..", "LICENSE"));
  for (const name of fs.readdirSync(ROOT)) {
    const isBuilt = ["build", "built-tests", "dist", "bench", "node_modules"].includes(name);
    if (!isBuilt) fs.cpSync(path.join(ROOT, name), path.join(copy, name), { recursive: true });
  }
  fs.rmSync(path.join(copy, "prebuilds"), { recursive: true, force: true });
  fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(copy, "node_modules"));
  run("npm", ["pack", "--offline", "--pack-destination", folder], copy);
  const packed = fs.readdirSync(folder).find((name) => name.endsWith(".tgz"));
  return path.join(folder, packed!);
}

test("the packed package installs offline and runs the example of the README", () =>
  withFolder((folder) => {
    const project = path.join(folder, "project");
    fs.mkdirSync(project);
    fs.writeFileSync(path.join(project, "package.json"), '{ "private": true }');
    run("npm", ["install", "--offline", "--no-audit", pack(folder)], project);
    const installed = path.join(project, "node_modules", "@nuthatch", "snapshot");
    assert.deepEqual(fs.readdirSync(path.dirname(path.dirname(installed))).sort(), [
      ".package-lock.json",
      "@nuthatch",
    ]);
    assert.ok(fs.existsSync(path.join(installed, "LICENSE")));
    // Tools that disable install scripts build the add-on later.
    if (!fs.existsSync(path.join(installed, "build"))) run("npm", ["rebuild"], project);
    fs.copyFileSync(path.join(ROOT, "test", "users.nut"), path.join(project, "users.nut"));
    const { code, output } = example();
    fs.writeFileSync(path.join(project, "example.mjs"), code);
    assert.equal(run(process.execPath, ["example.mjs"], project), output);
    checkTypes(project);
  }));

/** Checks the types that programs in TypeScript see, in ES modules, CommonJS and browsers. */
function checkTypes(project: string): void {
  const body = `
    const snapshot: Snapshot = Snapshot.fromBuffer(new Uint8Array(8), { copy: true });
    const list: Float32Array | undefined = snapshot.getF32List("key");
    for (const key of snapshot.keys({ keys: "bytes" })) key.subarray(1);
    export const done = list;`;
  const node = `import { Snapshot, openSync } from "@nuthatch/snapshot"; openSync("a").close();`;
  fs.writeFileSync(path.join(project, "module.mts"), node + body);
  fs.writeFileSync(path.join(project, "module.cts"), node + body);
  fs.writeFileSync(
    path.join(project, "browser.mts"),
    `import { Snapshot } from "@nuthatch/snapshot/browser";${body}`,
  );
  const strict = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext"];
  const types = ["--typeRoots", path.join(ROOT, "node_modules", "@types"), "--types", "node"];
  run(process.execPath, [TSC, ...strict, ...types, "module.mts", "module.cts"], project);
  run(process.execPath, [TSC, ...strict, "--types", "", "browser.mts"], project);
}
