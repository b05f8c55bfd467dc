// Rates between two samples of a server, and their history.

/** How many points a chart shows: with a sample each two seconds, five minutes. */
export const MAX_POINTS = 150;

/** Two samples of the same run of a server. */
export class View {
  /**
   * `now` and `before` are `{ metrics, at }`, with the time in milliseconds. After a restart there
   * is no sample before: counters began at zero again.
   */
  constructor(now, before) {
    this.now = now.metrics;
    this.at = now.at;
    const isSameRun = before && !isRestart(before.metrics, now.metrics);
    this.before = isSameRun ? before.metrics : null;
    this.seconds = isSameRun ? (now.at - before.at) / 1000 : 0;
  }

  /** The rate of a counter, over all its labels; NaN if it is not known yet. */
  rate(name) {
    return this.per(this.now.sum(name) - (this.before?.sum(name) ?? 0));
  }

  /** The rates of a counter by the value of a label. */
  rates(name, label) {
    const before = this.before?.by(name, label);
    const rates = new Map();
    for (const [key, value] of this.now.by(name, label)) {
      rates.set(key, this.per(value - (before?.get(key) ?? 0)));
    }
    return rates;
  }

  /** The counts of a histogram since the sample before, or since the start of the server. */
  histogram(name) {
    const before = this.before?.histogram(name) ?? [];
    const counts = new Map(before.map(({ end, count }) => [end, count]));
    return this.now.histogram(name).map(({ end, count }) => ({
      end,
      count: Math.max(0, count - (counts.get(end) ?? 0)),
    }));
  }

  per(difference) {
    return this.seconds > 0 ? Math.max(0, difference / this.seconds) : NaN;
  }
}

/** Whether the server was started again between two samples. */
function isRestart(before, now) {
  const started = "process_start_time_seconds";
  const difference = Math.abs(now.value(started) - before.value(started));
  if (before.has(started) && difference > 0.5) return true;
  return now.value("nuthatch_uptime_seconds") < before.value("nuthatch_uptime_seconds");
}

/** The last values of several series. A value that is not known leaves a gap. */
export class History {
  constructor() {
    this.times = [];
    this.series = new Map();
  }

  add(at, values) {
    this.times.push(at);
    for (const name of values.keys()) {
      if (!this.series.has(name)) this.series.set(name, Array(this.times.length - 1).fill(NaN));
    }
    for (const [name, points] of this.series) points.push(values.get(name) ?? NaN);
    if (this.times.length > MAX_POINTS) {
      this.times.shift();
      for (const points of this.series.values()) points.shift();
    }
    for (const [name, points] of this.series) {
      if (points.every((point) => Number.isNaN(point))) this.series.delete(name);
    }
  }
}
