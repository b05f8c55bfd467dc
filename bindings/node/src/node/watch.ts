/** Watching: readers switch to a new file while they read. */

import * as fs from "node:fs";
import { resolve } from "node:path";
import { SnapshotError, closed, ioError } from "../error.js";
import type { Snapshot } from "../reader/snapshot.js";
import { open, type OpenOptions } from "./open.js";

/** Maximum number of polls that are skipped before a file that failed is tried again. */
const MAX_SKIPPED_POLLS = 63;

/** An event of a watch: it switched to a snapshot, or rejected the newest file. */
export type WatchEvent =
  | { readonly type: "switched"; readonly snapshot: Snapshot }
  | { readonly type: "rejected"; readonly error: Error };

/** Options of a watch. */
export interface WatchOptions extends OpenOptions {
  /**
   * Time in milliseconds between two polls for a new file. Default: 250. With 0, only
   * {@link Watch.refresh} polls.
   *
   * After the code `io` or `unreadable`, a file is tried again after 1, 2, 4 … and at most 64
   * intervals. After another error, such as `corrupt`, it is tried again when the file at the path
   * changes.
   */
  readonly interval?: number;
  /** Whether {@link Snapshot.verify} must succeed before the watch switches. Default: false. */
  readonly verify?: boolean;
  /**
   * Receives events, in order. An error that persists is reported once. If the function throws, the
   * error is kept in the status, and the watch continues. The watch does not wait for a promise
   * that the function returns, and does not handle its rejection.
   */
  readonly report?: (event: WatchEvent) => void;
}

/** The status of a watch. */
export interface WatchStatus {
  /** The path that is watched, absolute. */
  readonly path: string;
  /** Number of switches to a new file. */
  readonly switched: number;
  /** Number of `rejected` events. */
  readonly rejected: number;
  /** The error that prevents a switch to the newest file, if there is one. */
  readonly error: Error | undefined;
  /** The last error that `report` threw. */
  readonly reportError: unknown;
}

/** A file that was rejected. */
interface Rejected {
  readonly identity: string;
  readonly error: Error;
  /** Whether another try may succeed: after a failed system call, but not after damage. */
  readonly isTransient: boolean;
  readonly failures: number;
  pollsToSkip: number;
}

/**
 * Opens a snapshot and watches its path, at which files are replaced by renaming others over them.
 *
 * @throws SnapshotError the errors of {@link open} and {@link Snapshot.verify} for the first file
 * @throws RangeError if the interval is negative or not a number
 */
export async function watch(file: string, options: WatchOptions = {}): Promise<Watch> {
  const interval = options.interval ?? 250;
  if (!(interval >= 0)) throw new RangeError(`interval is a number from 0, found ${interval}`);
  // A change of the working directory must not change the file.
  const path = resolve(file);
  // Identified before it is opened: if it is replaced in between, the first poll opens the new one.
  const identity = await identify(path);
  return new Watch(path, options, identity, await openVerified(path, options), interval);
}

/**
 * A watch. {@link Watch.current} is the newest snapshot that could be opened. Do not keep it: an
 * old file stays mapped until the garbage collector has freed its snapshot and all views of it.
 *
 * The timer of a watch does not keep the process alive.
 */
export class Watch {
  private readonly path: string;
  private readonly options: WatchOptions;
  private snapshot: Snapshot;
  /** The file that `snapshot` is. */
  private identity: string;
  private rejectedFile: Rejected | undefined;
  private switched = 0;
  private rejected = 0;
  private error: Error | undefined;
  private reportError: unknown;
  private isClosed = false;
  private timer: NodeJS.Timeout | undefined;
  /** The poll that is running, or the last one. */
  private poll: Promise<boolean> = Promise.resolve(false);

  /** @internal */
  constructor(
    path: string,
    options: WatchOptions,
    identity: string,
    snapshot: Snapshot,
    interval: number,
  ) {
    this.path = path;
    this.options = options;
    this.identity = identity;
    this.snapshot = snapshot;
    if (interval > 0) this.schedule(interval);
  }

  /**
   * The newest snapshot that could be opened. Reading it costs no more than reading a field. The
   * watch closes it; do not close it.
   *
   * @throws SnapshotError with the code `closed` after {@link Watch.close}
   */
  get current(): Snapshot {
    if (this.isClosed) throw closed(this.path);
    return this.snapshot;
  }

  /** The status. It can be read after {@link Watch.close}. */
  get status(): WatchStatus {
    const { path, switched, rejected, error, reportError } = this;
    return { path, switched, rejected, error, reportError };
  }

  /**
   * Polls for a new file now, after a poll that is running. Tries a file again that was rejected;
   * if it is rejected again, the status has the error.
   *
   * @returns whether the watch switched to a new file; false after {@link Watch.close}
   */
  refresh(): Promise<boolean> {
    return this.enqueue(true);
  }

  /** Polls as the timer does. */
  private enqueue(retryNow: boolean): Promise<boolean> {
    this.poll = this.poll.then(() => this.pollOnce(retryNow));
    return this.poll;
  }

  /**
   * Stops polling and closes the current snapshot. Snapshots that were replaced before stay open
   * for their readers.
   */
  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    clearTimeout(this.timer);
    this.snapshot.close();
  }

  private schedule(interval: number): void {
    const next = () => {
      if (!this.isClosed) this.schedule(interval);
    };
    this.timer = setTimeout(() => void this.enqueue(false).then(next), interval);
    this.timer.unref();
  }

  /** Polls once. Returns whether readers get a new snapshot. Throws no error. */
  private async pollOnce(retryNow: boolean): Promise<boolean> {
    if (this.isClosed) return false;
    try {
      const identity = await identify(this.path);
      if (identity === this.identity) {
        this.rejectedFile = undefined;
        this.error = undefined;
        return false;
      }
      const before = this.rejectedFile?.identity === identity ? this.rejectedFile : undefined;
      if (before !== undefined && !retryNow && (!before.isTransient || before.pollsToSkip > 0)) {
        before.pollsToSkip = Math.max(before.pollsToSkip - 1, 0);
        this.error = before.error;
        return false;
      }
      return await this.switchTo(identity, before?.failures ?? 0);
    } catch (error) {
      this.reject(error as Error);
      return false;
    }
  }

  private async switchTo(identity: string, failures: number): Promise<boolean> {
    let snapshot: Snapshot;
    try {
      snapshot = await openVerified(this.path, this.options);
    } catch (error) {
      const count = failures + 1;
      this.rejectedFile = {
        identity,
        error: error as Error,
        isTransient: error instanceof SnapshotError && TRANSIENT.has(error.code),
        failures: count,
        pollsToSkip: Math.min(2 ** (count - 1), MAX_SKIPPED_POLLS + 1) - 1,
      };
      throw error;
    }
    if (this.isClosed) {
      snapshot.close();
      return false;
    }
    this.identity = identity;
    this.snapshot.retire();
    this.snapshot = snapshot;
    this.rejectedFile = undefined;
    this.error = undefined;
    this.switched++;
    this.report({ type: "switched", snapshot });
    return true;
  }

  private reject(error: Error): void {
    const isKnown = this.error?.message === error.message;
    this.error = error;
    if (isKnown) return;
    this.rejected++;
    this.report({ type: "rejected", error });
  }

  private report(event: WatchEvent): void {
    try {
      this.options.report?.(event);
    } catch (error) {
      this.reportError = error;
    }
  }
}

export interface Watch extends Disposable {}

if (typeof Symbol.dispose === "symbol") {
  Object.defineProperty(Watch.prototype, Symbol.dispose, {
    configurable: true,
    writable: true,
    value(this: Watch): void {
      this.close();
    },
  });
}

/** Codes of errors after which another try may succeed. */
const TRANSIENT: ReadonlySet<string> = new Set(["io", "unreadable"]);

async function openVerified(path: string, options: WatchOptions): Promise<Snapshot> {
  const snapshot = await open(path, options);
  if (options.verify !== true) return snapshot;
  try {
    await snapshot.verify();
  } catch (error) {
    snapshot.close();
    throw error;
  }
  return snapshot;
}

/**
 * Returns the identity of the file at a path. It has the times and the length, because the system
 * can use the number of a file again after the file is removed.
 */
async function identify(path: string): Promise<string> {
  try {
    const stat = await fs.promises.stat(path, { bigint: true });
    return [stat.dev, stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs].join(" ");
  } catch (error) {
    throw ioError(path, "stat", error);
  }
}
