/** Conversion of UTF-8 to strings. Creating the string is the largest part of a short lookup. */

/** Strings up to this length are copied when they are concatenated; longer ones become ropes. */
const MAX_CONCATENATED = 12;
/** From this length on, the decoder of the platform is faster than a loop that looks for ASCII. */
const MIN_DECODER_LEN = 128;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Strings of two ASCII characters, by seven bits of each. Created when they are first needed. */
const pairs: (string | undefined)[] = new Array<string | undefined>(1 << 14).fill(undefined);

/** Returns bytes from `start` to `end`, which are all ASCII, as a string. */
type AsciiReader = (bytes: Uint8Array, start: number, end: number) => string;

let readAscii: AsciiReader = (bytes, start, end) => decoder.decode(bytes.subarray(start, end));

/** Replaces the function that creates strings of ASCII by a faster one of the platform. */
export function useAsciiReader(reader: AsciiReader): void {
  readAscii = reader;
}

/** Bytes, and a view of the same bytes. */
export interface TextWindow {
  readonly bytes: Uint8Array;
  readonly view: DataView;
}

/**
 * Decodes UTF-8.
 *
 * @param window the bytes, and a view of the same bytes
 * @param at offset of the text in the window
 * @param len length of the text in bytes
 * @returns the string, or `undefined` if the bytes are not UTF-8
 * @throws RangeError if the text is longer than the longest string of the engine
 */
export function decodeText(window: TextWindow, at: number, len: number): string | undefined {
  if (len > MAX_CONCATENATED) return decodeLong(window, at, len);
  const { view } = window;
  let text = "";
  let i = at;
  const end = at + len;
  for (; i < end - 1; i += 2) {
    const word = view.getUint16(i, true);
    if ((word & 0x8080) !== 0) return decode(window, at, len);
    const pair = ((word >>> 1) & 0x3f80) | (word & 0x7f);
    text += pairs[pair] ?? createPair(pair);
  }
  if (i < end) {
    const byte = view.getUint8(i);
    if (byte >= 0x80) return decode(window, at, len);
    text += String.fromCharCode(byte);
  }
  return text;
}

function createPair(pair: number): string {
  const text = String.fromCharCode(pair & 0x7f, pair >>> 7);
  pairs[pair] = text;
  return text;
}

function decodeLong(window: TextWindow, at: number, len: number): string | undefined {
  if (len >= MIN_DECODER_LEN) return decode(window, at, len);
  const { view } = window;
  const last = at + len - 4;
  let bits = view.getInt32(last, true);
  for (let i = at; i < last; i += 4) bits |= view.getInt32(i, true);
  if ((bits & 0x80808080) !== 0) return decode(window, at, len);
  return readAscii(window.bytes, at, at + len);
}

function decode({ bytes }: TextWindow, at: number, len: number): string | undefined {
  try {
    return decoder.decode(bytes.subarray(at, at + len));
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw new RangeError(`a text of ${len} bytes cannot become a string`, { cause: error });
  }
}
