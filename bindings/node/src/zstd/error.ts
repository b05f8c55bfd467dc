/** A zstd frame or dictionary that is not valid. The message says what was found. */
export class InvalidFrame extends Error {}
