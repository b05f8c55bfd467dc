/** Snapshots in files, for Node.js. */

/// <reference lib="esnext.disposable" preserve="true" />

export * from "./browser.js";
export type { Residency } from "./node/files.js";
export { open, openSync, type OpenOptions } from "./node/open.js";
export {
  Watch,
  watch,
  type WatchEvent,
  type WatchOptions,
  type WatchStatus,
} from "./node/watch.js";
import { useAsciiReader } from "./values/text.js";

// Returns the characters of bytes that are all ASCII; about twice as fast as a `TextDecoder`.
const { latin1Slice } = Buffer.prototype as unknown as {
  latin1Slice(this: Uint8Array, start: number, end: number): string;
};
useAsciiReader((bytes, start, end) => latin1Slice.call(bytes, start, end));
