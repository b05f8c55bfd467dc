// memcached: its text protocol.
"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { promisify } = require("node:util");
const Memcached = require("memcached");

/** Runs a test with a client and an empty server. */
function withClient(name, body) {
  test(name, async () => {
    const client = new Memcached(process.env.NUTHATCH_MEMCACHE, { timeout: 60_000 });
    const ask = (command, ...args) => promisify(client[command]).apply(client, args);
    try {
      await ask("flush");
      await body(ask);
    } finally {
      client.end();
    }
  });
}

withClient("values", async (ask) => {
  for (const value of ["Grüße", 5, { a: [1] }, Buffer.from([0, 13, 10]), "x".repeat(60_000)]) {
    assert.equal(await ask("set", "key", value, 1000), true);
    assert.deepEqual(await ask("get", "key"), value);
  }
  assert.equal(await ask("get", "nobody"), undefined);
  await assert.rejects(ask("add", "key", "x", 1000), /not stored/);
  assert.equal(await ask("replace", "key", "b", 1000), true);
  assert.equal(await ask("append", "key", "c"), true);
  assert.equal(await ask("prepend", "key", "a"), true);
  assert.equal(await ask("touch", "key", 1000), true);
  assert.equal(await ask("get", "key"), "abc");
  assert.equal(await ask("del", "key"), true);
  assert.equal(await ask("del", "key"), false);
});

withClient("many keys", async (ask) => {
  const names = Array.from({ length: 200 }, (_, n) => `key:${n}`);
  await Promise.all(names.map((name) => ask("set", name, name, 1000)));
  const found = await ask("getMulti", [...names, "nobody"]);
  assert.deepEqual({ ...found }, Object.fromEntries(names.map((name) => [name, name])));
});

withClient("tokens and numbers", async (ask) => {
  await ask("set", "key", "1", 1000);
  const { key, cas } = await ask("gets", "key");
  assert.equal(key, "1");
  assert.equal(await ask("cas", "key", "2", cas, 1000), true);
  assert.equal(await ask("cas", "key", "3", cas, 1000), false);
  await ask("set", "n", 40, 1000);
  assert.equal(await ask("incr", "n", 2), 42);
  assert.equal(await ask("decr", "n", 50), 0);
  assert.equal(await ask("incr", "nobody", 1), false);
});

withClient("information", async (ask) => {
  await ask("set", "key", "value", 1000);
  const [stats] = await ask("stats");
  assert.equal(stats.curr_items, 1);
  const [{ version }] = await ask("version");
  assert.match(version, /^\d+\.\d+/);
});
