// A parser of JSON that keeps 64-bit integers: they become BigInt, and other numbers stay numbers.

export type Json = null | boolean | bigint | number | string | Json[] | { [name: string]: Json };

const TOKEN = /\s*(?:([[\]{},:])|("(?:[^"\\]|\\.)*")|(-?\d[\d.eE+-]*)|(true|false|null))/gy;

export function parseJson(text: string): Json {
  TOKEN.lastIndex = 0;
  const next = (): RegExpExecArray => {
    const token = TOKEN.exec(text);
    if (token === null) throw new Error("invalid JSON");
    return token;
  };
  const value = (token: RegExpExecArray): Json => {
    const [, mark, string, number, word] = token;
    if (string !== undefined) return JSON.parse(string) as string;
    if (number !== undefined) return /[.eE]/.test(number) ? Number(number) : BigInt(number);
    if (word !== undefined) return JSON.parse(word) as boolean | null;
    return mark === "[" ? list() : object();
  };
  const list = (): Json[] => {
    const found: Json[] = [];
    for (;;) {
      const token = next();
      if (token[1] === "]") return found;
      found.push(value(token[1] === "," ? next() : token));
    }
  };
  const object = (): { [name: string]: Json } => {
    const found: { [name: string]: Json } = {};
    for (;;) {
      let token = next();
      if (token[1] === "}") return found;
      if (token[1] === ",") token = next();
      next();
      found[JSON.parse(token[2]!) as string] = value(next());
    }
  };
  return value(next());
}
