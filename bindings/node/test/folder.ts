// Temporary folders.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";

/** Runs a function with a temporary folder, which it removes. */
export function withFolder<T>(run: (folder: string) => T): T {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "nuthatch-"));
  const remove = () => fs.rmSync(folder, { recursive: true });
  let result: T;
  try {
    result = run(folder);
  } catch (error) {
    remove();
    throw error;
  }
  if (result instanceof Promise) return result.finally(remove) as T;
  remove();
  return result;
}
