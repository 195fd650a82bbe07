// Drives a real Chromium for the tests: each line on stdin is {js}, run with what stands in `tools`; each line on stdout is
// its {value} or {error}. Peers and the program come as arguments: the folder of playwright-core and axe-core.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";

const [home, url] = process.argv.slice(2);
const load = createRequire(`${home}/`);
const { chromium } = load("playwright-core");
const axeSource = readFileSync(load.resolve("axe-core/axe.min.js"), "utf8");

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  // Tests run as root in containers, and must reach nothing but this machine.
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
});

/** What the pages complained of. */
const complaints = [];

/** What a login left behind: every tab has it from then on. */
let cookies = [];

/** Opens a link that logs a browser in. */
async function logIn(path) {
  const page = await open(path);
  cookies = await page.context().cookies();
  await page.context().close();
}

/** A tab of its own. */
async function open(path, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  await context.addCookies(cookies);
  const page = await context.newPage();
  watch(page);
  if (path) await page.goto(url + path, { waitUntil: "load" });
  return page;
}

function watch(page) {
  page.setDefaultTimeout(30_000);
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(`${page.url()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`${page.url()}: ${error}`));
}

/** What axe finds on a page: WCAG 2.2 A and AA, and its best practices. The page's own policy lets no foreign script in, so
 * it is put in by the driver, not by the page. */
async function axe(page) {
  return (await axeCounted(page)).violations;
}

/** The same, and how many rules were kept and how many nobody but a person can judge. */
async function axeCounted(page) {
  await page.evaluate(axeSource);
  const found = await page.evaluate(() =>
    globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }),
  );
  const violations = found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).slice(0, 3).join(" | ")}`);
  return { violations, kept: found.passes.length, unclear: found.incomplete.map((one) => one.id), version: found.testEngine.version };
}

/** Looks until it is so. */
async function until(what, look) {
  const end = Date.now() + 30_000;
  for (;;) {
    const seen = await look();
    if (seen) return seen;
    if (Date.now() > end) throw new Error(`never came true: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

const tools = { browser, url, open, logIn, watch, axe, axeCounted, until, complaints, state: {} };
console.log(JSON.stringify({ value: browser.version() }));
const AsyncFunction = (async () => {}).constructor;
for await (const line of createInterface({ input: process.stdin })) {
  const { js } = JSON.parse(line);
  try {
    const run = new AsyncFunction(...Object.keys(tools), js);
    const value = await run(...Object.values(tools));
    console.log(JSON.stringify({ value: value ?? null }));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error?.stack ?? error) }));
  }
}
await browser.close();
