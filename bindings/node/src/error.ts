/**
 * The code of an error, the same in all languages and versions. `testdata/errors.csv` of the
 * repository lists the codes of files; `closed` is that of a closed snapshot or watch.
 */
export type ErrorCode =
  "io" | "not-a-snapshot" | "unsupported" | "corrupt" | "wrong-type" | "unreadable" | "closed";

/** What an error is about; see the fields of {@link SnapshotError}. */
export interface ErrorDetails {
  readonly path: string;
  readonly offset?: number;
  readonly expected?: string;
  readonly found?: string;
  readonly cause?: unknown;
}

/**
 * An error about a snapshot. A missing key is not an error: lookups return `undefined`. For the
 * code `io`, `cause` is the error of the system.
 */
export class SnapshotError extends Error {
  override readonly name = "SnapshotError";
  /** The code, for programs. */
  readonly code: ErrorCode;
  /** The path of the file, or `(memory)`. */
  readonly path: string;
  /**
   * The offset in the file in bytes, for `not-a-snapshot`, `unsupported` and `corrupt`; otherwise
   * `undefined`.
   */
  readonly offset: number | undefined;
  /**
   * What was expected: for `wrong-type`, the requested type; for a checksum, a length or a count,
   * the value in the file.
   */
  readonly expected: string | undefined;
  /** What was found: for a checksum, a length or a count, the computed value. */
  readonly found: string | undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.path = details.path;
    this.offset = details.offset;
    this.expected = details.expected;
    this.found = details.found;
  }
}

/** Returns the error for bytes that contradict the format. */
export function corrupt(
  path: string,
  offset: number,
  expected: string,
  found: string | number | bigint,
): SnapshotError {
  return damage("corrupt", path, offset, expected, String(found));
}

/** Returns the error for a checksum that differs. `offset` is that of the stored one. */
export function wrongChecksum(
  path: string,
  offset: number,
  what: string,
  stored: bigint,
  computed: bigint,
): SnapshotError {
  return corrupt(path, offset, `the stored checksum ${hex(stored)} of ${what}`, hex(computed));
}

/** Returns the error for a file of another kind. */
export function notASnapshot(path: string, expected: string, found: string): SnapshotError {
  return damage("not-a-snapshot", path, 0, expected, found);
}

/** Returns the error for a feature that this version does not know. */
export function unsupported(
  path: string,
  offset: number,
  expected: string,
  found: string,
): SnapshotError {
  return damage("unsupported", path, offset, expected, found);
}

/** Returns the error for a value of another type than the requested one. */
export function wrongType(path: string, requested: string, found: string): SnapshotError {
  const message =
    `${path}: wrong type: requested ${requested}, found ${found}; ` +
    "request the type that was found, or correct the writer of the value";
  return new SnapshotError("wrong-type", message, { path, expected: requested, found });
}

/** Returns the error for a file that was truncated, or could not be read, while it was mapped. */
export function unreadable(path: string): SnapshotError {
  const message =
    `${path}: the file was truncated or could not be read while it was mapped; ` +
    "open it again, and check the disk and which process writes to the file";
  return new SnapshotError("unreadable", message, { path });
}

/** Returns the error for a use of a snapshot or a watch after it was closed. */
export function closed(path: string): SnapshotError {
  return new SnapshotError("closed", `${path}: the snapshot is closed; open it again`, { path });
}

/** Returns the error for a failed system call. */
export function ioError(path: string, operation: string, cause: unknown): SnapshotError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new SnapshotError("io", `${path}: ${operation}: ${reason}`, { path, cause });
}

const SUMMARIES = {
  "not-a-snapshot": ["not a snapshot", "correct the path: this is another kind of file"],
  unsupported: ["not supported", "update this package, or build the file for this version"],
  corrupt: ["damaged file", "copy or build the file again, and check the disk"],
} as const;

function damage(
  code: keyof typeof SUMMARIES,
  path: string,
  offset: number,
  expected: string,
  found: string,
): SnapshotError {
  const [summary, action] = SUMMARIES[code];
  const place = `${summary}: ${path}: at byte ${offset}`;
  const message = `${place}: expected ${expected}, found ${found}; ${action}`;
  return new SnapshotError(code, message, { path, offset, expected, found });
}

/** Returns 64 bits as 16 hexadecimal digits. */
export function hex(bits: bigint): string {
  return bits.toString(16).padStart(16, "0");
}
