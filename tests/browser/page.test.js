// The live page of the cache server in a browser.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { accessibilityProblems, launch, open, waitForStatus, waitForTile } from "./browser.js";
import { Redis, Server, mixedRequests } from "./server.js";

const TOKEN = "a-token-of-the-browser-tests";
const FAST = "/?interval=250";
const EVIL = "<img/src=x/onerror=window.hacked=1>";

let folder;
let browser;
let server;

const argumentsOf = (admin) => [
  "serve", "--resp", "127.0.0.1:0", "--memcache", "off", "--admin", admin, "--memory", "64MiB",
  "--threads", "1", "--slow-log-threshold", "0s", "--admin-token-file", join(folder, "token"),
];

/** Sends requests until `isDone` is, so that the page has something to show. */
async function underLoad(isDone) {
  const redis = await Redis.connect(server.redis);
  let isOver = false;
  const done = isDone.finally(() => { isOver = true; });
  for (let seed = 1; !isOver; seed += 1) await redis.send(mixedRequests(200, seed));
  redis.close();
  await done;
}

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "nuthatch-page-"));
  writeFileSync(join(folder, "token"), `${TOKEN}\n`, { mode: 0o600 });
  server = await Server.start(argumentsOf("127.0.0.1:0"));
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await server?.stop();
  if (folder) rmSync(folder, { recursive: true });
});

async function withPage(options, act, path = FAST) {
  const page = await open(browser, server.page + path, options);
  try {
    await waitForStatus(page, "Live");
    await act(page);
    assert.deepEqual(page.problems, []);
  } finally {
    await page.context().close();
  }
}

test("the page shows numbers that change", () => withPage({}, async (page) => {
  await underLoad(waitForTile(page, "Requests"));
  await waitForTile(page, "Hit ratio");
  for (const id of ["requests", "hits", "latency", "memory"]) {
    const label = await page.locator(`#${id} [role=img]`).first().getAttribute("aria-label");
    assert.match(label, /[1-9]/, id);
  }
  const items = page.locator(".tiles div", { hasText: "Items" }).locator("dd");
  const before = await items.textContent();
  const redis = await Redis.connect(server.redis);
  await redis.send(Array.from({ length: 500 }, (_, number) => ["SET", `new:${number}`, "v"]));
  redis.close();
  await page.waitForFunction((text) => ![...document.querySelectorAll(".tiles dd")].some((one) =>
    one.previousSibling.textContent === "Items" && one.textContent === text), before);
  await page.waitForFunction(() => document.querySelectorAll("#hot-keys tbody tr").length > 0);
  assert.equal(await page.evaluate(() => document.querySelectorAll("[style*='url']").length), 0);
}));

test("keys are hidden without the token, and hostile ones are text", async () => {
  await withPage({}, hideAndShow);
});

async function hideAndShow(page) {
  const redis = await Redis.connect(server.redis);
  await redis.send([["CLIENT", "SETNAME", EVIL], ["SET", EVIL, "x".repeat(100_000)],
    ...Array.from({ length: 300 }, () => ["GET", EVIL])]);
  await page.waitForFunction(() => document.querySelectorAll("#big-keys tbody tr").length > 0);
  const hidden = await page.locator("main").textContent();
  assert.ok(!hidden.includes("onerror") && !hidden.includes("127.0.0.1"), hidden);
  const key = await page.locator("#big-keys td").first().textContent();
  assert.match(key, /^#[0-9a-f]{8}, \d+ bytes$/);

  const enter = async (token) => {
    await page.locator("#access").evaluate((details) => { details.open = true; });
    await page.getByLabel("Token of the admin token file").fill(token);
    await page.keyboard.press("Enter");
  };
  await enter("wrong");
  await page.getByText(/^wrong token: expected/).waitFor();
  await enter(TOKEN);
  await page.waitForFunction((key) => ["hot-keys", "big-keys", "slow", "clients"].every((id) =>
    document.getElementById(id).textContent.includes(key)), EVIL);
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  assert.equal(await page.locator("main img").count(), 0);
  assert.equal(page.url(), server.page + FAST, "the token is not in the address");

  await page.reload();
  await page.waitForFunction(() => document.getElementById("privacy").textContent === "shown");
  await page.locator("#access").evaluate((details) => { details.open = true; });
  await page.getByRole("button", { name: "Hide" }).click();
  await page.waitForFunction((key) => !document.body.textContent.includes(key), EVIL);
  const kept = await page.evaluate(() => ({ ...localStorage, ...sessionStorage }));
  assert.deepEqual(kept, {});
  redis.close();
}

test("the page survives a restart of the server", () => withPage({}, async (page) => {
  await underLoad(waitForTile(page, "Requests"));
  const { port } = server;
  await server.stop();
  await waitForStatus(page, "No answer since");
  assert.ok(await page.locator("#requests svg").isVisible(), "the last values stay");
  server = await Server.start(argumentsOf(`127.0.0.1:${port}`));
  await waitForStatus(page, "Live");
  await underLoad(waitForTile(page, "Requests"));
  assert.doesNotMatch(await page.locator(".tiles").first().textContent(), /-\d|NaN|Infinity/);
}));

test("all controls are reached and used with the keyboard", () => withPage({}, async (page) => {
  const focused = async () => {
    await page.keyboard.press("Tab");
    return page.evaluate(() => {
      const { activeElement: one } = document;
      const outline = getComputedStyle(one).outlineStyle;
      return [one.getAttribute("aria-label") ?? one.textContent.trim().slice(0, 30), outline];
    });
  };
  const first = await focused();
  assert.equal(first[0], "Skip to the metrics");
  assert.deepEqual(await focused(), ["Pause", "solid"]);
  await page.keyboard.press("Space");
  await waitForStatus(page, "Paused");
  assert.equal(await page.locator("#pause").getAttribute("aria-pressed"), "true");
  await page.keyboard.press("Space");
  await waitForStatus(page, "Live");
  assert.deepEqual(await focused(), ["Keys: hidden", "solid"]);
  await page.keyboard.press("Enter");
  await page.locator("#token").waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "token");
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "SUMMARY");
  const reached = [];
  for (let at = 0; at < 12; at += 1) reached.push((await focused())[0]);
  for (const name of ["Longest items in memory", "Newest entries of the slow log", "/metrics"]) {
    assert.ok(reached.includes(name), `${name} is not among ${reached}`);
  }
}));

// The page said "Live" for good, although it was paused: a sample was under way.
test("a sample that arrives after the pause does not hide it", () => withPage({}, async (page) => {
  let release;
  const released = new Promise((resolve) => { release = resolve; });
  const requested = new Promise((resolve) => {
    page.route("**/live.json", async (route) => {
      resolve();
      await released;
      await route.continue();
    });
  });
  await requested;
  await page.locator("#pause").click();
  await page.evaluate(() => document.querySelector(".tiles").remove());
  release();
  // The page shows the sample and its status in one step.
  await page.locator(".tiles").first().waitFor();
  assert.equal(await page.locator("#status").textContent(), "Paused");
  await page.unrouteAll({ behavior: "ignoreErrors" });
}));

for (const [name, options] of [
  ["light", { colorScheme: "light" }],
  ["dark", { colorScheme: "dark" }],
  ["on a phone", { colorScheme: "light", viewport: { width: 360, height: 740 }, hasTouch: true }],
]) {
  test(`the page is accessible ${name}`, () => withPage(options, async (page) => {
    await underLoad(waitForTile(page, "Requests"));
    await page.locator("#access").evaluate((details) => { details.open = true; });
    assert.deepEqual(await accessibilityProblems(page), []);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= (options.viewport?.width ?? 1280), `${width} pixels wide`);
    const back = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const [red] = /\d+/.exec(back);
    assert.equal(Number(red) < 100, options.colorScheme === "dark", back);
  }));
}

test("a name that was bound to this address is refused", async () => {
  const page = await browser.newPage();
  for (const path of ["/", "/live.json", "/metrics", "/page/main.js"]) {
    const reply = await page.goto(`http://evil.example:${server.port}${path}`);
    assert.equal(reply.status(), 421, path);
    assert.match(await reply.text(), /^unknown host: expected localhost, .* found "evil\.example:/);
  }
  await page.close();
});

test("a page of another site reads nothing", async () => {
  const other = createServer((_, reply) => {
    reply.setHeader("content-type", "text/html");
    reply.end(`<iframe src="${server.page}/"></iframe>`);
  }).listen(0, "127.0.0.1");
  await once(other, "listening");
  const statuses = new Map();
  const page = await browser.newPage();
  page.on("response", (reply) => {
    const path = new URL(reply.url()).pathname;
    if (reply.url().startsWith(server.page)) statuses.set(path, reply.status());
  });
  await page.goto(`http://localhost:${other.address().port}/`);
  const results = await page.evaluate(async (base) => {
    const paths = ["/live.json", "/metrics", "/page/main.js"];
    const read = (path) => fetch(base + path).then((reply) => reply.text(), (error) => error.name);
    return Promise.all(paths.map(read));
  }, server.page);
  assert.deepEqual(results, ["TypeError", "TypeError", "TypeError"]);
  const expected = { "/": 403, "/live.json": 403, "/metrics": 403, "/page/main.js": 403 };
  for (const [path, status] of Object.entries(expected)) {
    assert.equal(statuses.get(path) ?? status, status, path);
  }
  const frame = page.frames().find((one) => one !== page.mainFrame());
  assert.doesNotMatch(await frame.content().catch(() => ""), /sections/);
  await page.close();
  other.close();
});

test("the page of each other server shows its sections", async () => {
  const listen = ["--listen", "127.0.0.1:0"];
  const servers = [
    ["store-tables", "store", "serve", join(folder, "store"), "--create", ...listen],
    ["chunk-cache", "chunks", "serve", "--origin", "http://127.0.0.1:9/", ...listen],
    ["follower", "follow", join(folder, "source"), join(folder, "followed")],
  ];
  for (const [id, ...args] of servers) {
    const one = await Server.start([...args, "--admin", "127.0.0.1:0"]);
    const page = await open(browser, one.page + FAST);
    try {
      await page.locator(`#${id}`).waitFor();
      assert.equal(await page.locator("#overview").count(), 0);
      assert.deepEqual(await accessibilityProblems(page), [], id);
      assert.deepEqual(page.problems, []);
    } finally {
      await page.context().close();
      await one.stop();
    }
  }
});

const NODES = [
  { id: "1f2e3d4c00", address: { text: EVIL, bytes: EVIL.length }, state: "active", weight: 64,
    slots: 12288, share: 0.75, moving_out: 64, moving_in: 0, this_node: 1 },
  { id: "9a8b7c6d00", address: { hidden: "0a1b2c3d", bytes: 9 }, state: "failed", weight: 64,
    slots: 4096, share: 0.25, moving_out: 0, moving_in: 64, this_node: 0 },
];

/** Shows the page of a node without etcd, and then with a report of two nodes. */
async function showCluster(page) {
  const section = page.locator("#cluster");
  await section.getByText("The node has no lease in etcd, and knows no nodes.").waitFor();
  const lease = section.locator(".tiles .alarm", { hasText: "Lease" }).locator("dd");
  assert.equal(await lease.textContent(), "none");
  const report = await (await fetch(new URL("/live.json", page.url()))).json();
  report.tables.cluster = { summary: { all: 2 }, rows: NODES };
  await page.route("**/live.json", (route) => route.fulfill({ json: report }));
  await section.locator("tbody tr").nth(1).waitFor();
  const rows = await section.locator("tbody tr").allTextContents();
  assert.match(rows[0], /^1f2e3d4c \(this\)<img.*active.*12,288.*75/);
  assert.match(rows[1], /^9a8b7c6d#0a1b2c3d, 9 bytesfailed/);
  assert.equal(await section.locator("img").count(), 0);
  const widths = await section.locator(".bar i:first-child").evaluateAll((bars) =>
    bars.map((bar) => Math.round(100 * bar.clientWidth / bar.parentElement.clientWidth)));
  assert.deepEqual(widths, [75, 25]);
  assert.deepEqual(await accessibilityProblems(page), []);
}

test("the section of a cluster shows nodes and their shares, dark and on a phone", async () => {
  const node = await Server.start([
    "serve", "--resp", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--memory", "16MiB",
    "--threads", "1", "--cluster", "etcd://127.0.0.1:9/cache",
  ]);
  for (const options of [
    { colorScheme: "dark" }, { colorScheme: "light", viewport: { width: 360, height: 740 } },
  ]) {
    const page = await open(browser, node.page + FAST, options);
    try {
      await showCluster(page);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= (options.viewport?.width ?? 1280), `${width} pixels wide`);
      assert.deepEqual(page.problems, []);
    } finally {
      await page.unrouteAll({ behavior: "ignoreErrors" });
      await page.context().close();
    }
  }
  await node.stop();
});
