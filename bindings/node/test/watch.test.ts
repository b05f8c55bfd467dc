// A watch polls by itself, tries again what may succeed, and lets its readers keep what they have.

import { open, openSync, watch, type Watch, type WatchEvent } from "@nuthatch/snapshot";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { withFolder } from "./folder.js";
import { VECTORS } from "./vectors.js";

const ONE = path.join(VECTORS, "v1", "one.nut");
const TYPES = path.join(VECTORS, "v1", "types.nut");
const DAMAGED = path.join(VECTORS, "bad", "index-checksum.nut");

/** Runs a test with a path at which it publishes files by renaming them. */
function withPath<T>(
  run: (file: string, publish: (source: string) => void) => Promise<T>,
): Promise<T> {
  return withFolder((folder) => {
    const file = path.join(folder, "watched.nut");
    const publish = (source: string) => {
      fs.copyFileSync(source, `${file}.new`);
      fs.renameSync(`${file}.new`, file);
    };
    publish(ONE);
    return run(file, publish);
  });
}

/** Polls as the timer of a watch does. */
function poll(watching: Watch): Promise<boolean> {
  return (watching as unknown as { enqueue(retryNow: boolean): Promise<boolean> }).enqueue(false);
}

test("the timer of a watch finds a new file, and reports it", () =>
  withPath(async (file, publish) => {
    let report: (event: WatchEvent) => void = () => {};
    const events = new Promise<WatchEvent>((resolve) => (report = resolve));
    const watching = await watch(file, { interval: 1, report });
    publish(TYPES);
    // The timer does not keep a process alive, but a test has to wait for it.
    const keepAlive = setInterval(() => {}, 1000);
    const event = await events;
    clearInterval(keepAlive);
    assert.ok(event.type === "switched");
    assert.equal(event.snapshot, watching.current);
    assert.equal(watching.current.get("string"), "a nuthatch");
    watching.close();
  }));

test("a reader keeps a snapshot that was replaced", () =>
  withPath(async (file, publish) => {
    const watching = await watch(file, { interval: 0 });
    const old = watching.current;
    publish(TYPES);
    assert.equal(await watching.refresh(), true);
    assert.equal(old.size, 1);
    assert.equal([...old].length, 1);
    assert.notEqual(watching.current, old);
    assert.equal(await watching.refresh(), false);
    watching.close();
  }));

test("a file that could not be opened is tried again with back-off", () =>
  withPath(async (file, publish) => {
    const watching = await watch(file, { interval: 0 });
    // A folder is a failed system call, but neither missing nor damaged.
    fs.rmSync(file);
    fs.mkdirSync(file);
    const opened: number[] = [];
    const inner = watching as unknown as { switchTo(...args: unknown[]): Promise<boolean> };
    const switchTo = inner.switchTo.bind(watching);
    let polls = 0;
    inner.switchTo = (...args) => {
      opened.push(polls);
      return switchTo(...args);
    };
    for (polls = 1; polls <= 260; polls++) assert.equal(await poll(watching), false);
    assert.deepEqual(opened, [1, 2, 4, 8, 16, 32, 64, 128, 192, 256]);
    const { rejected, error } = watching.status;
    assert.equal(rejected, 1);
    assert.match(String(error), /not a regular file/);
    fs.rmdirSync(file);
    publish(TYPES);
    assert.equal(await poll(watching), true);
    assert.equal(watching.status.error, undefined);
    watching.close();
  }));

test("a damaged file is tried again by a refresh or when it changes, but not by polls", () =>
  withPath(async (file, publish) => {
    const events: string[] = [];
    const report = (event: WatchEvent) => events.push(event.type);
    const watching = await watch(file, { interval: 0, verify: true, report });
    publish(DAMAGED);
    for (let i = 0; i < 10; i++) assert.equal(await poll(watching), false);
    assert.equal(await watching.refresh(), false);
    assert.deepEqual(events, ["rejected"]);
    assert.equal(watching.current.size, 1);
    publish(TYPES);
    assert.equal(await poll(watching), true);
    assert.deepEqual(events, ["rejected", "switched"]);
    watching.close();
  }));

test("an error that was transient leaves the status", () =>
  withPath(async (file) => {
    const watching = await watch(file, { interval: 0 });
    fs.renameSync(file, `${file}.away`);
    assert.equal(await watching.refresh(), false);
    assert.equal((watching.status.error as NodeJS.ErrnoException | undefined)?.code, "io");
    fs.renameSync(`${file}.away`, file);
    await watching.refresh();
    assert.equal(watching.status.error, undefined);
    watching.close();
  }));

test("a report that throws is recorded, and the watch continues", () =>
  withPath(async (file, publish) => {
    const failure = new Error("a report of the test");
    const report = () => {
      throw failure;
    };
    const watching = await watch(file, { interval: 0, report });
    publish(TYPES);
    assert.equal(await watching.refresh(), true);
    assert.equal(watching.status.reportError, failure);
    publish(ONE);
    assert.equal(await watching.refresh(), true);
    watching.close();
  }));

test("a report may refresh and close its watch", () =>
  withPath(async (file, publish) => {
    let refreshed: Promise<boolean> | undefined;
    const watching: Watch = await watch(file, {
      interval: 0,
      report: () => {
        refreshed = watching.refresh();
        watching.close();
      },
    });
    publish(TYPES);
    assert.equal(await watching.refresh(), true);
    assert.equal(await refreshed, false);
    assert.throws(() => watching.current, { code: "closed" });
  }));

test("refreshes that run at the same time switch once", () =>
  withPath(async (file, publish) => {
    const watching = await watch(file, { interval: 0 });
    publish(TYPES);
    const results = await Promise.all([watching.refresh(), watching.refresh(), poll(watching)]);
    assert.deepEqual(results, [true, false, false]);
    watching[Symbol.dispose]();
  }));

test("a watch needs a good file to begin with, and a valid interval", () =>
  withPath(async (file) => {
    await assert.rejects(watch(`${file}.missing`), { code: "io" });
    await assert.rejects(watch(DAMAGED, { verify: true }), { code: "corrupt" });
    await assert.rejects(watch(file, { interval: -1 }), RangeError);
  }));

test("a watch of a relative path follows the same file in another working directory", () =>
  withPath(async (file, publish) => {
    const before = process.cwd();
    try {
      process.chdir(path.dirname(file));
      const watching = await watch(path.basename(file), { interval: 0 });
      process.chdir(before);
      assert.equal(await watching.refresh(), false);
      assert.equal(watching.status.error, undefined);
      publish(TYPES);
      assert.equal(await watching.refresh(), true);
      watching.close();
    } finally {
      process.chdir(before);
    }
  }));

for (const [name, shards] of [
  ["set-7.nut", 7],
  ["one.nut", 0],
] as const) {
  test(`a set that ${name} replaces while it is opened is read again`, () =>
    withFolder(async (folder) => {
      const file = path.join(folder, "set.nut");
      const old = fs.readFileSync(path.join(VECTORS, "v1", "set-3.nut"));
      fs.writeFileSync(file, old);
      await assert.rejects(open(file), { code: "io" });
      const names = fs.readdirSync(path.join(VECTORS, "v1")).filter((one) => one.endsWith("shard"));
      const stat = fs.promises.stat;
      // Publishes another file or set when the first shard of the old set is missing.
      const publish = () => {
        for (const shard of names) {
          fs.copyFileSync(path.join(VECTORS, "v1", shard), path.join(folder, shard));
        }
        fs.writeFileSync(`${file}.new`, fs.readFileSync(path.join(VECTORS, "v1", name)));
        fs.renameSync(`${file}.new`, file);
      };
      fs.promises.stat = ((place: string) => {
        if (!place.endsWith(".shard")) return stat(place);
        fs.promises.stat = stat;
        return stat(place).finally(publish);
      }) as typeof stat;
      const snapshot = await open(file);
      assert.equal(snapshot.stats().shards, shards);
    }));
}

/** Publishes a set in a new folder and switches a link to it. */
function release(folder: string, set: string, number: number): string {
  const target = path.join(folder, "releases", String(number));
  fs.mkdirSync(target, { recursive: true });
  fs.copyFileSync(path.join(VECTORS, "v1", set), path.join(target, "a.nut"));
  const names = fs.readdirSync(path.join(VECTORS, "v1")).filter((name) => name.endsWith(".shard"));
  for (const name of names) {
    fs.copyFileSync(path.join(VECTORS, "v1", name), path.join(target, name));
  }
  const link = path.join(folder, "links", "current.nut");
  fs.mkdirSync(path.dirname(link), { recursive: true });
  fs.symlinkSync(path.join("..", "releases", String(number), "a.nut"), `${link}.new`);
  fs.renameSync(`${link}.new`, link);
  return target;
}

test("a set behind a link in another folder opens, and its errors have both paths", () =>
  withFolder(async (folder) => {
    const target = release(folder, "set-3.nut", 42);
    const link = path.join(folder, "links", "current.nut");
    fs.symlinkSync(target, path.join(folder, "latest"));
    for (const file of [link, path.join(folder, "latest", "a.nut")]) {
      for (const snapshot of [await open(file), openSync(file)]) {
        await snapshot.verify();
        assert.equal(snapshot.stats().shards, 3);
        assert.equal(snapshot.path, file);
        snapshot.close();
      }
    }
    // A link to a link, from a relative path.
    fs.symlinkSync("current.nut", path.join(folder, "links", "other.nut"));
    const relative = path.relative(process.cwd(), path.join(folder, "links", "other.nut"));
    assert.equal(openSync(relative).path, relative);

    const manifest = path.join(target, "a.nut");
    const bytes = fs.readFileSync(manifest);
    fs.appendFileSync(manifest, "more");
    for (const run of [async () => openSync(link), () => open(link)]) {
      await assert.rejects(run, { code: "corrupt", path: link });
    }
    fs.writeFileSync(manifest, bytes);
    for (const name of fs.readdirSync(target)) {
      if (name.startsWith("00001")) fs.rmSync(path.join(target, name));
    }
    for (const run of [async () => openSync(link), () => open(link)]) {
      const error = await run().then(
        () => assert.fail("a shard is missing"),
        (error: NodeJS.ErrnoException) => error,
      );
      assert.equal(error.code, "io");
      assert.equal(path.dirname(error.path!), fs.realpathSync(target));
    }
  }));

test("a watch of a link switches between sets in two folders", () =>
  withFolder(async (folder) => {
    release(folder, "set-3.nut", 1);
    const link = path.join(folder, "links", "current.nut");
    const watching = await watch(link, { interval: 0, verify: true });
    assert.equal(watching.current.stats().shards, 3);
    release(folder, "set-7.nut", 2);
    assert.equal(await watching.refresh(), true);
    assert.equal(await watching.refresh(), false);
    assert.equal(watching.current.stats().shards, 7);
    assert.equal(watching.current.path, link);
    release(folder, "set-3.nut", 3);
    assert.equal(await watching.refresh(), true);
    assert.equal(watching.current.stats().shards, 3);
    assert.equal(watching.status.error, undefined);
    watching.close();
  }));

for (const set of ["set-3.nut", "set-7.nut"]) {
  for (const moment of ["a.nut", ".shard"]) {
    test(`a link switched to ${set} before ${moment} is opened is read again`, () =>
      withFolder(async (folder) => {
        const old = release(folder, "set-3.nut", 1);
        const link = path.join(folder, "links", "current.nut");
        const stat = fs.promises.stat;
        // Switches the link and removes the old set before a file of the old set is opened.
        fs.promises.stat = ((place: string) => {
          if (!place.endsWith(moment)) return stat(place);
          fs.promises.stat = stat;
          release(folder, set, 2);
          fs.rmSync(old, { recursive: true });
          return stat(place);
        }) as typeof stat;
        try {
          const snapshot = await open(link);
          await snapshot.verify();
          assert.equal(snapshot.stats().shards, set === "set-3.nut" ? 3 : 7);
        } finally {
          fs.promises.stat = stat;
        }
      }));
  }
}
