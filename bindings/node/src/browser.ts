/** Snapshots in memory, for browsers and edge runtimes: nothing here needs Node.js. */

/// <reference lib="esnext.disposable" preserve="true" />

export { SnapshotError, type ErrorCode } from "./error.js";
export type { KeyForm } from "./reader/iterate.js";
export type { Key } from "./reader/key.js";
export { Snapshot, type BufferOptions, type IterationOptions } from "./reader/snapshot.js";
export type { Stats } from "./reader/stats.js";
export type { Value } from "./values/decode.js";
export type { ValueType } from "./values/types.js";
