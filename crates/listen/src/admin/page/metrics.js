// Parses the text format of Prometheus.

const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g;

/** The samples of a text, by name. */
export class Metrics {
  constructor(text) {
    this.samples = new Map();
    for (const line of text.split("\n")) {
      if (line === "" || line.startsWith("#")) continue;
      const sample = parse(line);
      if (!sample) continue;
      const of = this.samples.get(sample.name);
      if (of) of.push(sample);
      else this.samples.set(sample.name, [sample]);
    }
  }

  all(name) {
    return this.samples.get(name) ?? [];
  }

  has(name) {
    return this.samples.has(name);
  }

  /** The first value of a metric; 0 without one. */
  value(name) {
    return this.all(name)[0]?.value ?? 0;
  }

  /** The values of a metric by the value of a label. Samples with the same one are added up. */
  by(name, label) {
    const values = new Map();
    for (const { labels, value } of this.all(name)) {
      const key = labels[label] ?? "";
      values.set(key, (values.get(key) ?? 0) + value);
    }
    return values;
  }

  /** The sum of all samples of a metric. */
  sum(name) {
    return this.all(name).reduce((sum, sample) => sum + sample.value, 0);
  }

  /** The counts of a histogram by the end of each bucket, over all labels, not cumulative. */
  histogram(name) {
    const cumulative = new Map();
    for (const { labels, value } of this.all(`${name}_bucket`)) {
      const end = labels.le === "+Inf" ? Infinity : Number(labels.le);
      cumulative.set(end, (cumulative.get(end) ?? 0) + value);
    }
    let below = 0;
    const buckets = [...cumulative].sort(([one], [other]) => one - other);
    return buckets.map(([end, upTo]) => {
      const own = Math.max(0, upTo - below);
      below = Math.max(below, upTo);
      return { end, count: own };
    });
  }
}

function parse(line) {
  const brace = line.indexOf("{");
  const nameEnd = brace >= 0 ? brace : line.indexOf(" ");
  if (nameEnd <= 0) return null;
  const labels = {};
  let rest = line.slice(nameEnd);
  if (brace >= 0) {
    const end = line.lastIndexOf("}");
    if (end < 0) return null;
    for (const [, name, value] of line.slice(brace + 1, end).matchAll(LABEL)) {
      labels[name] = value.replace(/\\(.)/g, (_, one) => (one === "n" ? "\n" : one));
    }
    rest = line.slice(end + 1);
  }
  const word = rest.trim().split(/\s+/)[0];
  const value = word === "+Inf" ? Infinity : Number(word);
  return Number.isNaN(value) ? null : { name: line.slice(0, nameEnd), labels, value };
}

/** The quantile of a histogram in seconds, interpolated in its bucket; NaN without values. */
export function quantile(buckets, part) {
  const total = buckets.reduce((sum, bucket) => sum + bucket.count, 0);
  if (total === 0) return NaN;
  let below = 0;
  let start = 0;
  for (const { end, count } of buckets) {
    if (count > 0 && below + count >= total * part) {
      if (end === Infinity) return start;
      return start + ((end - start) * (total * part - below)) / count;
    }
    below += count;
    start = end;
  }
  return start;
}
