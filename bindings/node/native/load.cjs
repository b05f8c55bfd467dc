"use strict";
// Loads the add-on: the one that was built on this machine, or a prebuilt one.

const path = require("node:path");

const place = `${process.platform}-${process.arch}`;

/** Paths at which the add-on can be, in the order of preference. */
const candidates = [
  path.join(__dirname, "..", "build", place, "nuthatch.node"),
  path.join(__dirname, "..", "prebuilds", place, "nuthatch.node"),
];

let loaded;

/**
 * Returns the functions of the add-on, which `native/addon.c` describes.
 *
 * Throws an error that says how to build the add-on if it cannot be loaded.
 */
function load() {
  if (loaded !== undefined) return loaded;
  const reasons = [];
  for (const candidate of candidates) {
    try {
      loaded = require(candidate);
      return loaded;
    } catch (error) {
      reasons.push(error.code === "MODULE_NOT_FOUND" ? `${candidate}: missing` : error.message);
    }
  }
  throw new Error(
    `cannot load the add-on of @nuthatch/snapshot for ${place}; run "npm rebuild ` +
      `@nuthatch/snapshot", which needs a C compiler, or open with {residency: "copied"}: ` +
      reasons.join("; "),
  );
}

module.exports = { load };
