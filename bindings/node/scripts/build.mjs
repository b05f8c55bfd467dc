// Builds the package into dist/, and the add-on for this machine into build/.
//
//   node scripts/build.mjs           also compiles the tests into built-tests/
//   node scripts/build.mjs --pack    for `npm pack`: builds only what the package has, copies the
//                                    headers that its installation needs, and the license

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), "..");
const require = createRequire(import.meta.url);
const isPack = process.argv.includes("--pack");

function run(script, ...args) {
  execFileSync(process.execPath, [script, ...args], { cwd: root, stdio: "inherit" });
}

function compile(project) {
  run(path.join(root, "node_modules", "typescript", "bin", "tsc"), "-p", project);
}

function write(name, text) {
  fs.writeFileSync(path.join(root, name), text);
}

for (const folder of ["dist", "built-tests"]) {
  fs.rmSync(path.join(root, folder), { recursive: true, force: true });
}
compile("tsconfig.json");
compile("tsconfig.browser.json");
// The package is of the type `module`, so that its ES modules work in all tools.
write("dist/cjs/package.json", '{ "type": "commonjs" }\n');
// Programs that import and programs that require share one copy of the code.
write("dist/index.mjs", 'export * from "./cjs/index.js";\n');
write("dist/index.d.mts", 'export * from "./cjs/index.js";\n');

if (isPack) {
  const { include_dir: headers } = require("node-api-headers");
  fs.cpSync(headers, path.join(root, "native", "include"), { recursive: true });
  fs.copyFileSync(path.join(root, "..", "..", "LICENSE"), path.join(root, "LICENSE"));
} else {
  fs.rmSync(path.join(root, "native", "include"), { recursive: true, force: true });
  run("native/build.cjs");
  compile("tsconfig.test.json");
}
