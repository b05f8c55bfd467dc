// The client by Redis itself: RESP2 and RESP3.
"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { createClient, WatchError, RESP_TYPES } = require("@redis/client");

const url = `redis://${process.env.NUTHATCH_RESP}`;
const clients = {
  "as it comes": { url },
  RESP2: { url, RESP: 2 },
  RESP3: { url, RESP: 3, name: "given" },
  "unix socket": { socket: { path: process.env.NUTHATCH_RESP_SOCKET } },
};

/** Runs a test with a client of each kind, and an empty server. */
function each(name, body) {
  for (const [kind, options] of Object.entries(clients)) {
    test(`${name}, ${kind}`, async () => {
      const redis = await createClient(options).connect();
      try {
        await redis.flushAll();
        await body(redis, options);
      } finally {
        await redis.close();
      }
    });
  }
}

each("values", async (redis) => {
  const expiration = { type: "EX", value: 100 };
  assert.equal(await redis.set("key", "Grüße", { expiration }), "OK");
  assert.equal(await redis.get("key"), "Grüße");
  assert.equal(await redis.get("nobody"), null);
  assert.equal(await redis.set("key", "x", { condition: "NX" }), null);
  assert.equal(await redis.set("key", "x", { GET: true, expiration: "KEEPTTL" }), "Grüße");
  assert.ok((await redis.ttl("key")) > 0);
  assert.equal(await redis.append("key", "yz"), 3);
  assert.equal(await redis.getEx("key", { type: "PX", value: 5000 }), "xyz");
  assert.ok((await redis.pTTL("key")) <= 5000);
  assert.equal(await redis.getDel("key"), "xyz");
  assert.equal(await redis.exists(["key", "nobody"]), 0);
  assert.equal(await redis.incrByFloat("n", 0.5), "0.5");
  await assert.rejects(redis.incr("n"), /not an integer/);
});

each("bytes", async (redis) => {
  const bytes = redis.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  const long = Buffer.from(Array.from({ length: 60_000 }, (_, at) => at % 256));
  await bytes.set(Buffer.from([0, 13, 10, 255]), long);
  assert.deepEqual(await bytes.get(Buffer.from([0, 13, 10, 255])), long);
});

each("many keys", async (redis) => {
  const names = Array.from({ length: 1000 }, (_, n) => `key:${n}`);
  // Sent together, answered in order.
  await Promise.all(names.map((name) => redis.set(name, name)));
  assert.deepEqual(await redis.mGet([...names, "nobody"]), [...names, null]);
  const scanned = [];
  for await (const keys of redis.scanIterator({ MATCH: "key:*", COUNT: 100 })) {
    scanned.push(...keys);
  }
  assert.deepEqual(scanned.sort(), names.sort());
  assert.equal(await redis.del(names), 1000);
});

each("transactions", async (redis) => {
  assert.deepEqual(await redis.multi().set("a", "1").incr("a").get("a").exec(), ["OK", 2, "2"]);
  const other = await redis.duplicate().connect();
  await redis.watch("n");
  await other.set("n", "theirs");
  await assert.rejects(redis.multi().set("n", "mine").exec(), WatchError);
  assert.equal(await redis.get("n"), "theirs");
  await other.close();
});

each("what clients ask of a server", async (redis, { name }) => {
  assert.equal(await redis.ping(), "PONG");
  const info = await redis.clientInfo();
  assert.equal(info.name, name ?? "");
  assert.equal(info.libName, "node-redis");
  await redis.clientSetName("somebody");
  assert.equal(await redis.clientGetName(), "somebody");
  const all = await redis.clientList();
  assert.equal(all.find(({ id }) => id === info.id).name, "somebody");
  assert.deepEqual({ ...(await redis.configGet("maxmemory")) }, { maxmemory: "268435456" });
  assert.equal((await redis.command()).length, await redis.commandCount());
  await assert.rejects(redis.lPush("list", "1"), /unknown command/);
});
