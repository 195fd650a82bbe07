// Makes calls, then takes a picture of every page: light, dark, phone.
import { createRequire } from "node:module";

const [home, url, out] = process.argv.slice(2);
const { chromium } = createRequire(`${process.cwd()}/${home}/`)("playwright-core");
const call = (name, args = {}, more = {}) =>
  fetch(`${url}/v1/calls`, { method: "POST", body: JSON.stringify({ name, args, ...more }), headers: { "content-type": "application/json", "steadyhand-caller": "voice, kitchen" } }).catch(() => null);
const rest = (ms) => new Promise((done) => setTimeout(done, ms));

call("slow_report");
const calls = [];
for (let i = 0; i < 26; i++) {
  calls.push(call("weather", { city: i % 3 ? "Bergen" : "Oslo" }), call("notes_find", { text: "fence" }));
  if (i % 4 === 0) calls.push(call("web_search", { query: "rain tomorrow oslo" }), call("calculator", { expression: "(18.5 * 4) / 3" }));
  if (i % 5 === 1) calls.push(call("home_lights", { area: "kitchen", state: "on", brightness: 40 }));
  if (i % 9 === 3) calls.push(call("home_scene", { name: "evening" }));
  if (i === 12) calls.push(call("send_mail", { to: "ann@example.org", text: "Dinner at eight" }), call("weather", { town: "Oslo" }));
  await rest(700 + Math.random() * 500);
}
await Promise.all(calls);
call("web_search", { query: "ferry times" });
call("home_unlock", { door: "front", minutes: 5 });
call("home_unlock", { door: "garage" });
await rest(1500);
const talk = (await (await fetch(`${url}/v1/conversations`)).json()).conversations[0]?.id;
const listed = await (await fetch(`${url}/v1/calls?limit=100`)).json();
const one = (tool, state) => listed.calls.find((it) => it.tool === tool && it.state === state)?.key;
const pages = {
  overview: "/", calls: "/calls", failed: "/calls?state=failed", "call-fallback": `/calls/${one("home_scene", "timeout")}`,
  "call-failed": `/calls/${one("home_lights", "error")}`, "call-ok": `/calls/${one("weather", "ok")}`, tools: "/tools", tool: "/tools/home_lights", "tool-well": "/tools/web_search",
  servers: "/servers", server: "/servers/calendar", approvals: "/approvals", alerts: "/alerts", conversations: "/conversations", conversation: `/conversations/${talk}`, trends: "/trends", "trends-week": "/trends?window=7d", config: "/config",
};
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
for (const [kind, options] of Object.entries({
  light: { colorScheme: "light", viewport: { width: 1280, height: 800 } },
  dark: { colorScheme: "dark", viewport: { width: 1280, height: 800 } },
  phone: { colorScheme: "light", viewport: { width: 390, height: 844 } },
})) {
  const page = await (await browser.newContext(options)).newPage();
  for (const [name, path] of Object.entries(pages)) {
    await page.goto(url + path);
    await rest(300);
    await page.screenshot({ path: `${out}/${name}-${kind}.png`, fullPage: true });
  }
}
await browser.close();
