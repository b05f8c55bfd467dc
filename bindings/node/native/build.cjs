"use strict";
// Builds the add-on with a C compiler. npm runs this when the package is installed.
//
//   node native/build.cjs                   builds the add-on for this machine into build/
//   node native/build.cjs --if-needed       does nothing if the add-on can be loaded; otherwise
//                                           builds it, and only warns if that fails
//   node native/build.cjs --prebuild ARCH   builds it for linux-ARCH (x64 or arm64) into prebuilds/
//
// CC and CFLAGS in the environment have their usual meaning; CC may have arguments.

const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { load } = require("./load.cjs");

const root = path.join(__dirname, "..");
const CROSS_COMPILERS = { x64: "x86_64-linux-gnu-gcc", arm64: "aarch64-linux-gnu-gcc" };

/** Returns the folder with the headers of Node-API, in the packed package or in the repository. */
function headers() {
  const packed = path.join(__dirname, "include");
  if (fs.existsSync(packed)) return packed;
  return require("node-api-headers").include_dir;
}

function words(text) {
  return text.split(" ").filter((word) => word !== "");
}

/** Compiles the add-on. */
function build(compiler, output) {
  fs.mkdirSync(path.dirname(output), { recursive: true });
  // Renamed when it is complete: another process may be loading the old one.
  const temporary = `${output}.${process.pid}`;
  const [program, ...prefix] = words(compiler);
  const flags = words(process.env.CFLAGS ?? "");
  const link = process.platform === "darwin" ? ["-undefined", "dynamic_lookup"] : ["-ldl"];
  const sources = ["addon.c", "map.c"].map((name) => path.join(__dirname, name));
  const options = ["-std=c11", "-O2", "-fPIC", "-shared", "-pthread", "-Wall", "-Wextra"];
  const defines = ["-D_GNU_SOURCE", "-DNAPI_VERSION=8"];
  execFileSync(
    program,
    [
      ...prefix,
      ...options,
      ...defines,
      ...flags,
      "-I",
      headers(),
      "-o",
      temporary,
      ...sources,
      ...link,
    ],
    { stdio: ["ignore", "inherit", "inherit"] },
  );
  fs.renameSync(temporary, output);
}

function buildHere() {
  const place = `${process.platform}-${process.arch}`;
  build(process.env.CC ?? "cc", path.join(root, "build", place, "nuthatch.node"));
}

function main([option, arch]) {
  if (option === "--prebuild") {
    const known = arch === process.arch ? "cc" : CROSS_COMPILERS[arch];
    const compiler = process.env.CC ?? known;
    if (known === undefined) throw new Error(`expected x64 or arm64, found ${arch}`);
    build(compiler, path.join(root, "prebuilds", `linux-${arch}`, "nuthatch.node"));
    return;
  }
  if (option !== "--if-needed") {
    buildHere();
    return;
  }
  try {
    load();
    return;
  } catch {
    // Not built yet, or for another machine.
  }
  try {
    buildHere();
  } catch (error) {
    console.warn(`@nuthatch/snapshot: the add-on could not be built: ${error.message}`);
    console.warn('Files can only be opened with {residency: "copied"}.');
  }
}

main(process.argv.slice(2));
