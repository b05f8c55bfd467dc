// The workload of ../../README.md with ioredis's Cluster.
"use strict";

const fs = require("node:fs");
const { setTimeout: pause } = require("node:timers/promises");
const { Cluster } = require("ioredis");

/** Number of keys of each kind. */
const KEYS = 40;

const [name, addresses, path, tasks, pauseMs] = process.argv.slice(2);
const log = fs.openSync(path, "a");
const redis = new Cluster(
  addresses.split(",").map((address) => {
    const [host, port] = address.split(":");
    return { host, port: Number(port) };
  }),
  { redisOptions: { connectTimeout: 1000, commandTimeout: 1000 } },
);
// Without a listener, errors of connections are printed. Those of operations are in the log.
redis.on("error", () => {});

/** Executes operations until the end of the standard input. */
async function work(client, isStopped) {
  for (let number = 1; !isStopped(); number++) {
    await step(client, below(KEYS), `${client}.${number}`);
    await pause(Number(pauseMs));
  }
}

/** Executes an operation with keys of this number, or writes this value. */
function step(client, number, value) {
  const [key, sum] = [`key${number}`, `sum${number}`];
  const pair = [`{pair${number}}a`, `{pair${number}}b`];
  switch (below(8)) {
    case 0:
    case 1:
      return execute(client, "get", [key], "-", async () => [await redis.get(key)]);
    case 2:
    case 3:
      return execute(client, "set", [key], value, async () => {
        await redis.set(key, value);
        return ["-"];
      });
    case 4:
    case 5:
      return execute(client, "get", pair, "-", () => redis.mget(pair));
    case 6:
      return execute(client, "set", pair, value, async () => {
        await redis.mset(pair[0], value, pair[1], value);
        return ["-", "-"];
      });
    default: {
      const amount = 1 + below(2 ** 40 - 1);
      const add = async () => [await redis.incrby(sum, amount)];
      return execute(client, "incrby", [sum], amount, add);
    }
  }
}

/** Calls a function, and writes a line with its result for each key. */
async function execute(client, operation, keys, argument, call) {
  const start = process.hrtime.bigint();
  let results;
  let outcome = "ok";
  try {
    results = await call();
  } catch (error) {
    results = keys.map(() => `${error.name}: ${error.message}`.split(/\s+/).join(" "));
    outcome = "error";
  }
  const end = process.hrtime.bigint();
  const lines = keys.map((key, at) => {
    const last = results[at] === null ? ["miss", "-"] : [outcome, results[at]];
    return [start, end, client, operation, key, argument, ...last].join("\t") + "\n";
  });
  fs.writeSync(log, lines.join(""));
}

/** Returns a random integer from 0 to `limit` - 1. */
function below(limit) {
  return Math.floor(Math.random() * limit);
}

async function main() {
  let isStopped = false;
  process.stdin.resume();
  process.stdin.on("end", () => (isStopped = true));
  const clients = Array.from({ length: Number(tasks) }, (_, at) => `${name}.${at}`);
  await Promise.all(clients.map((client) => work(client, () => isStopped)));
  redis.disconnect();
}

main();
