// A browser whose pages report what must not happen: errors, violations of the content policy, and
// requests to other hosts.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];

export async function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--host-resolver-rules=MAP evil.example 127.0.0.1"],
  });
}

/** Opens a page, and collects what must not happen in `page.problems`. */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(`error: ${error.message}`));
  page.on("console", (message) => {
    const isViolation = /Content Security Policy|Trusted/i.test(message.text());
    if (isViolation) page.problems.push(`policy: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (new URL(request.url()).host !== new URL(url).host) {
      page.problems.push(`request to another host: ${request.url()}`);
    }
  });
  await page.goto(url);
  return page;
}

/** Waits until the page shows this status. */
export async function waitForStatus(page, start) {
  await page.waitForFunction((text) =>
    document.getElementById("status").textContent.startsWith(text), start);
}

/** Waits until a tile has a value other than zero and unknown. */
export async function waitForTile(page, title) {
  await page.waitForFunction((wanted) => [...document.querySelectorAll(".tiles div")].some((tile) =>
    tile.querySelector("dt").textContent === wanted
      && /[1-9]/.test(tile.querySelector("dd").textContent)), title);
}

/** Returns the problems of accessibility that axe-core finds, as lines. */
export async function accessibilityProblems(page) {
  // Evaluated by the debugger: the policy of the page forbids it to the page's scripts.
  await page.evaluate(AXE);
  const found = await page.evaluate((tags) =>
    globalThis.axe.run(document, { runOnly: { type: "tag", values: tags } }), RULES);
  if (found.passes.length === 0) throw new Error("axe-core: expected rules that pass, found none");
  return found.violations.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.html.slice(0, 200)}: ${node.failureSummary}`));
}
