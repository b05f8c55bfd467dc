/**
 * 64-bit arithmetic on pairs of 32-bit halves. JavaScript has no 64-bit integers besides BigInt,
 * and each operation on a BigInt allocates memory.
 *
 * Halves are int32 or uint32; results are int32, which the engine keeps in registers. The functions
 * are small enough that it inlines them.
 */

/** Returns the upper 32 bits of the product of two unsigned 32-bit integers. */
export function mulHigh(a: number, b: number): number {
  const a0 = a & 0xffff;
  const a1 = a >>> 16;
  const b0 = b & 0xffff;
  const b1 = b >>> 16;
  const low = Math.imul(a0, b0) >>> 16;
  const middle = (Math.imul(a1, b0) + low) >>> 0;
  const other = (Math.imul(a0, b1) + (middle & 0xffff)) >>> 0;
  return (Math.imul(a1, b1) + (middle >>> 16) + (other >>> 16)) | 0;
}

/** Returns the carry, 0 or 1, of an addition of 32 bits whose truncated sum is `sum`. */
export function carryOf(a: number, b: number, sum: number): number {
  return ((a & b) | ((a | b) & ~sum)) >>> 31;
}

/** Returns the upper half of the lower 64 bits of the product of two 64-bit integers. */
export function mulMiddle(aLow: number, aHigh: number, bLow: number, bHigh: number): number {
  return (mulHigh(aLow, bLow) + Math.imul(aLow, bHigh) + Math.imul(aHigh, bLow)) | 0;
}

/**
 * Returns the upper 64 bits of the product of two 64-bit integers, as a number: exact if they are
 * below 2^53.
 */
export function mulHigh64(aLow: number, aHigh: number, bLow: number, bHigh: number): number {
  const low = mulHigh(aLow, bLow);
  const middle = Math.imul(aHigh, bLow);
  const sum = (low + middle) | 0;
  const upper = (mulHigh(aHigh, bLow) >>> 0) + carryOf(low, middle, sum);
  if (bHigh === 0) return upper;
  const other = Math.imul(aLow, bHigh);
  const carry = carryOf(sum, other, (sum + other) | 0);
  const product = (mulHigh(aHigh, bHigh) >>> 0) * 2 ** 32 + (Math.imul(aHigh, bHigh) >>> 0);
  return product + upper + (mulHigh(aLow, bHigh) >>> 0) + carry;
}
