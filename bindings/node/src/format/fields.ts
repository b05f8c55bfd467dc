/** Checks of the fields of a header or a manifest. */

import { checksumOf } from "../hash/checksum.js";
import { corrupt, hex, unsupported, wrongChecksum, type SnapshotError } from "../error.js";

/** The fixed fields at the start of a file, with checks that throw errors at their offsets. */
export class Fields {
  readonly path: string;
  private readonly bytes: Uint8Array;
  private readonly view: DataView;

  constructor(bytes: Uint8Array, path: string) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.path = path;
  }

  u16(at: number): number {
    return this.view.getUint16(at, true);
  }

  u32(at: number): number {
    return this.view.getUint32(at, true);
  }

  u64(at: number): bigint {
    return this.view.getBigUint64(at, true);
  }

  /** Returns a 64-bit field as a number, rounded if it is above 2^53. */
  number(at: number): number {
    return Number(this.u64(at));
  }

  /** Checks that the major version is 1. */
  checkVersion(at: number, expected: number): void {
    const major = this.u16(at);
    if (major === expected) return;
    const found = `version ${major}.${this.u16(at + 2)}`;
    throw this.unsupported(at, `format version ${expected}`, found);
  }

  /** Checks the checksum at the offset `at` of all bytes before it. */
  checkHash(at: number, what: string): void {
    const [stored, computed] = [this.u64(at), checksumOf(this.bytes.subarray(0, at))];
    if (stored !== computed) throw wrongChecksum(this.path, at, what, stored, computed);
  }

  /** Checks that two numbers are equal. */
  requireEqual(at: number, what: string, expected: number | bigint, found: number | bigint): void {
    if (expected !== found) throw this.corrupt(at, `${what} to be ${expected}`, found);
  }

  /** Checks a stored length against one that follows from other fields. */
  checkLength(at: number, what: string, stored: number, computed: number): void {
    if (stored === computed) return;
    const expected = `the stored length ${stored} of the ${what}`;
    throw this.corrupt(at, expected, `${computed} from the other fields`);
  }

  /** Checks that a number is within a range, which includes both ends. */
  within(at: number, what: string, min: number, max: number, found: number): void {
    if (found >= min && found <= max) return;
    const range = min === max ? `${min}` : `${min} to ${max}`;
    throw this.corrupt(at, `${what} to be ${range}`, found);
  }

  /** Checks that the bytes from `start` to `end` are zero. */
  checkZeros(start: number, end: number): void {
    for (let at = start; at < end; at++) {
      const byte = this.bytes[at]!;
      if (byte !== 0) throw this.corrupt(at, "a zero", byte);
    }
  }

  corrupt(at: number, expected: string, found: string | number | bigint): SnapshotError {
    return corrupt(this.path, at, expected, found);
  }

  unsupported(at: number, expected: string, found: string): SnapshotError {
    return unsupported(this.path, at, expected, found);
  }
}

/** Throws the error for a checksum at `at` if the computed one differs from the stored one. */
export function compareChecksums(
  path: string,
  at: number,
  what: string,
  stored: bigint,
  computed: bigint,
): void {
  if (stored !== computed) throw wrongChecksum(path, at, what, stored, computed);
}

/** Returns the first bytes of a file, for an error about them. */
export function showMagic(bytes: Uint8Array): string {
  let digits = "";
  for (const byte of bytes.subarray(0, 8)) digits += hex(BigInt(byte)).slice(14);
  return `the bytes "${digits}"`;
}
