// Makes the pictures of the live page in docs/images.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { launch, open, waitForStatus } from "./browser.js";
import { Redis, Server, mixedRequests } from "./server.js";

const IMAGES = fileURLToPath(new URL("../../docs/images/", import.meta.url));
const TOKEN = "a-token-for-the-pictures";
const INTERVAL_MS = 250;
const SAMPLES = 150;

let isOver = false;
const folder = mkdtempSync(join(tmpdir(), "nuthatch-pictures-"));
writeFileSync(join(folder, "token"), TOKEN, { mode: 0o600 });
const server = await Server.start([
  "serve", "--resp", "127.0.0.1:0", "--memcache", "off", "--admin", "127.0.0.1:0",
  "--memory", "64MiB", "--slow-log-threshold", "3ms", "--data-dir", join(folder, "data"),
  "--disk", "256MiB", "--admin-token-file", join(folder, "token"),
]);
const browser = await launch();

const pages = [
  ["live-page-light", { colorScheme: "light", viewport: { width: 1120, height: 1230 } }],
  ["live-page-dark", { colorScheme: "dark", viewport: { width: 1120, height: 1230 } }],
  ["live-page-phone", { colorScheme: "light", viewport: { width: 390, height: 900 } }],
];

try {
  const redis = await Redis.connect(server.redis);
  const names = ["web-1", "web-2", "batch"];
  const others = await Promise.all(names.map(() => Redis.connect(server.redis)));
  const setName = (name) => [["CLIENT", "SETNAME", name], ["PING"]];
  await Promise.all(others.map((one, at) => one.send(setName(names[at]))));
  for (let number = 0; number < 40; number += 1) {
    await redis.send([["SET", `report:2026-11-${number}`, "r".repeat(20_000 + number * 9000)]]);
  }
  const opened = [];
  for (const [name, options] of pages) {
    const page = await open(browser, `${server.page}/?interval=${INTERVAL_MS}`, options);
    await page.evaluate((token) => sessionStorage.setItem("nuthatch-token", token), TOKEN);
    await waitForStatus(page, "Live");
    opened.push([name, page]);
  }
  const load = send(redis, others);
  await setTimeout(SAMPLES * INTERVAL_MS);
  for (const [name, page] of opened) {
    await page.screenshot({ path: `${IMAGES}${name}.png`, animations: "disabled" });
  }
  isOver = true;
  await load;
} finally {
  await browser.close();
  await server.stop();
  rmSync(folder, { recursive: true });
}

/** Sends requests whose rate changes slowly, until the pictures are made. */
async function send(redis, others) {
  const start = Date.now();
  for (let seed = 1; !isOver; seed += 1) {
    const count = 90 + Math.round(50 * Math.sin((Date.now() - start) / 5000));
    await redis.send(mixedRequests(count, seed));
    if (seed % 4 === 0) await others[seed % 3].send(mixedRequests(10, seed + 7));
    await setTimeout(8);
  }
}
