// ioredis: RESP2.
"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const Redis = require("ioredis");

const [host, port] = process.env.NUTHATCH_RESP.split(":");
const clients = {
  tcp: () => new Redis(Number(port), host),
  "unix socket": () => new Redis({ path: process.env.NUTHATCH_RESP_SOCKET }),
  "pipelined by itself": () => new Redis(Number(port), host, { enableAutoPipelining: true }),
};

/** Runs a test with a client of each kind, and an empty server. */
function each(name, body) {
  for (const [kind, connect] of Object.entries(clients)) {
    test(`${name}, ${kind}`, async () => {
      const redis = connect();
      try {
        await redis.flushall();
        await body(redis);
      } finally {
        redis.disconnect();
      }
    });
  }
}

each("values", async (redis) => {
  assert.equal(await redis.set("key", "Grüße", "EX", 100), "OK");
  assert.equal(await redis.get("key"), "Grüße");
  assert.equal(await redis.get("nobody"), null);
  assert.equal(await redis.set("key", "x", "NX"), null);
  assert.equal(await redis.set("key", "x", "KEEPTTL", "GET"), "Grüße");
  assert.ok((await redis.ttl("key")) > 0);
  assert.equal(await redis.append("key", "yz"), 3);
  assert.equal(await redis.getrange("key", 1, -1), "yz");
  assert.equal(await redis.setrange("key", 1, "YZ"), 3);
  assert.equal(await redis.getdel("key"), "xYZ");
  assert.equal(await redis.exists("key"), 0);
});

each("bytes", async (redis) => {
  const long = Buffer.from(Array.from({ length: 60_000 }, (_, at) => at % 256));
  for (const key of [Buffer.alloc(0), Buffer.from([0, 13, 10, 255])]) {
    await redis.set(key, long);
    assert.deepEqual(await redis.getBuffer(key), long);
    assert.equal(await redis.del(key), 1);
  }
});

each("numbers, bits and expiry", async (redis) => {
  assert.equal(await redis.incrby("n", 41), 41);
  assert.equal(await redis.incr("n"), 42);
  assert.equal(await redis.incrbyfloat("n", 0.5), "42.5");
  await assert.rejects(redis.incr("n"), { name: "ReplyError", message: /not an integer/ });
  assert.equal(await redis.setbit("bits", 9, 1), 0);
  assert.equal(await redis.bitcount("bits"), 1);
  assert.deepEqual(await redis.bitfield("bits", "SET", "u8", 0, 7, "GET", "u8", 0), [0, 7]);
  assert.equal(await redis.pexpire("n", 60_000), 1);
  assert.ok((await redis.pttl("n")) > 0);
  assert.equal(await redis.persist("n"), 1);
  assert.equal(await redis.expireat("n", 1), 1);
  assert.equal(await redis.get("n"), null);
});

each("many keys", async (redis) => {
  const rows = new Map(Array.from({ length: 2000 }, (_, n) => [`key:${n}`, `value ${n}`]));
  assert.equal(await redis.mset(rows), "OK");
  assert.deepEqual(await redis.mget([...rows.keys(), "nobody"]), [...rows.values(), null]);
  const scanned = [];
  for await (const keys of redis.scanStream({ match: "key:*", count: 200 })) scanned.push(...keys);
  assert.deepEqual(scanned.sort(), [...rows.keys()].sort());
  assert.equal(await redis.unlink(...rows.keys()), 2000);
  assert.equal(await redis.dbsize(), 0);
});

each("pipelines and transactions", async (redis) => {
  const pipeline = redis.pipeline();
  for (let n = 0; n < 1000; n++) pipeline.incrby("n", n);
  const answers = await pipeline.exec();
  assert.deepEqual(answers.at(-1), [null, (1000 * 999) / 2]);
  const whole = await redis.multi().set("a", 1).incr("a").mget("a", "nobody").exec();
  assert.deepEqual(whole, [[null, "OK"], [null, 2], [null, ["2", null]]]);
  const partly = await redis.multi().set("a", "text").incr("a").set("b", 1).exec();
  assert.match(partly[1][0].message, /not an integer/);
  assert.equal(await redis.get("b"), "1");
  await assert.rejects(redis.multi().set("c", 1).call("nosuchcommand").exec(), /EXECABORT/);
  assert.equal(await redis.get("c"), null);
});

each("watched keys", async (redis) => {
  const other = redis.duplicate();
  await redis.watch("n");
  await other.set("n", "theirs");
  assert.equal(await redis.multi().set("n", "mine").exec(), null);
  await redis.watch("n");
  assert.deepEqual(await redis.multi().set("n", "mine").exec(), [[null, "OK"]]);
  other.disconnect();
});

each("what clients ask of a server", async (redis) => {
  assert.equal(await redis.ping(), "PONG");
  assert.equal(await redis.echo("hello"), "hello");
  assert.match(await redis.info("server"), /redis_mode:standalone/);
  assert.deepEqual(await redis.config("GET", "maxmemory"), ["maxmemory", "268435456"]);
  assert.equal(await redis.client("SETNAME", "somebody"), "OK");
  assert.equal(await redis.client("GETNAME"), "somebody");
  assert.match(await redis.client("LIST"), /name=somebody .*lib-name=ioredis/);
  assert.equal(await redis.command("COUNT"), (await redis.command()).length);
  await assert.rejects(redis.lpush("list", 1), { name: "ReplyError", message: /unknown command/ });
});
