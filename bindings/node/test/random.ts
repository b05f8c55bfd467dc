// A random generator with a seed, so that a test that fails fails again.

/** Returns a random integer from 0 up to a limit, which it does not reach. */
export type Random = (limit: number) => number;

/** Returns a generator (xorshift32). */
export function random(seed: number): Random {
  let state = Math.imul(seed, 0x9e3779b1) | 1;
  return (limit) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return Math.floor(((state >>> 0) / 2 ** 32) * limit);
  };
}
