/** The add-on, which maps files. */

/** A mapped file. */
export type MapHandle = object;

/** The functions of the add-on, which `native/addon.c` describes. */
export interface Addon {
  open(fd: number, length: number): MapHandle;
  view(map: MapHandle, offset: number, length: number): ArrayBuffer;
  lost(map: MapHandle): ArrayBuffer;
  retire(map: MapHandle): void;
  release(map: MapHandle): void;
}

interface Loader {
  load(): Addon;
}

/**
 * Returns the add-on.
 *
 * @throws AddonError if it is not built for this machine
 */
export function loadAddon(): Addon {
  // The path from dist/cjs/node.
  const { load } = require("../../../native/load.cjs") as Loader;
  try {
    return load();
  } catch (error) {
    throw new AddonError((error as Error).message);
  }
}

/** The add-on cannot be loaded. This is about the installation, not about a file. */
export class AddonError extends Error {}
