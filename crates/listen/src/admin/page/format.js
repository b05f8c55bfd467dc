// Numbers as text for people.

const COUNT_UNITS = ["", "k", "M", "G", "T"];
const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function scaled(number, base, units) {
  let unit = 0;
  let rest = Math.abs(number);
  while (rest >= base && unit < units.length - 1) {
    rest /= base;
    unit += 1;
  }
  const isWhole = unit === 0 && Number.isInteger(rest);
  const digits = isWhole || rest >= 100 ? 0 : rest >= 10 || unit === 0 ? 1 : 2;
  const sign = number < 0 ? "-" : "";
  return [sign + rest.toFixed(digits), units[unit]];
}

export function count(number) {
  if (!Number.isFinite(number)) return "–";
  if (number >= 1 && number < 100_000) return Math.round(number).toLocaleString("en");
  return scaled(number, 1000, COUNT_UNITS).join("");
}

export function bytes(number) {
  return Number.isFinite(number) ? scaled(number, 1024, BYTE_UNITS).join(" ") : "–";
}

export function rate(number) {
  return `${count(number)}/s`;
}

export function byteRate(number) {
  return `${bytes(number)}/s`;
}

export function percent(part) {
  if (!Number.isFinite(part)) return "–";
  const digits = part === 0 || part === 1 ? 0 : part < 0.0995 ? 2 : 1;
  return `${(100 * part).toFixed(digits)} %`;
}

/** A duration in seconds, from nanoseconds to seconds. */
export function time(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds === 0) return "0 s";
  for (const [unit, factor] of [["s", 1], ["ms", 1e3], ["µs", 1e6]]) {
    const number = seconds * factor;
    if (number >= 1) return `${number.toFixed(number < 10 ? 2 : number < 100 ? 1 : 0)} ${unit}`;
  }
  return `${Math.round(seconds * 1e9)} ns`;
}

/** An age in seconds, in its two largest units. */
export function age(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const whole = Math.max(0, Math.floor(seconds));
  const [days, hours] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24];
  const [minutes, rest] = [Math.floor(whole / 60) % 60, whole % 60];
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  if (minutes > 0) return `${minutes} min ${rest} s`;
  return `${rest} s`;
}

export function clock(date) {
  return date.toLocaleTimeString("en-GB");
}
