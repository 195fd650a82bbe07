// Clocks that run, lanes that move, keys. The page is whole without it.
// @ts-check

/** The same words as the server's. @param {number} ms */
function span(ms) {
  if (ms < 950) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  return minutes % 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${minutes / 60} h`;
}

/** @type {Record<string, Intl.DateTimeFormatOptions>} */
const SHOWN = {
  time: { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
  minute: { hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  day: { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
};

/** Times in the reader's own zone. */
function times() {
  for (const one of document.querySelectorAll("time[data-show]")) {
    const at = one.getAttribute("datetime") ?? "";
    const text = new Date(at).toLocaleString("en", SHOWN[one.getAttribute("data-show") ?? "time"]);
    if (one.textContent !== text) one.textContent = text;
  }
}

/** What only the clock changes. */
function tick() {
  const now = Date.now();
  for (const one of document.querySelectorAll(".tick")) {
    const since = Number(one.getAttribute("data-since"));
    const until = Number(one.getAttribute("data-until"));
    const left = Math.ceil((until - now) / 1000) * 1000;
    const text = since ? span(now - since) : left > 0 ? `in ${left < 60_000 ? `${left / 1000} s` : span(left)}` : "now";
    if (one.textContent !== text) one.textContent = text;
  }
  const lanes = document.getElementById("lanes");
  if (!lanes) return;
  const origin = Number(lanes.dataset.origin);
  const shift = Number(lanes.dataset.span) - (now - origin);
  for (const one of lanes.querySelectorAll(".moves")) one.setAttribute("transform", `translate(${shift} 0)`);
  for (const one of lanes.querySelectorAll("[data-start]")) {
    const width = Math.max(90, now - Number(one.getAttribute("data-start")));
    one.setAttribute("width", String(width));
  }
}

/** The end of a log is what people look for. */
function logs() {
  for (const log of document.querySelectorAll(".log:not([data-seen])")) {
    log.setAttribute("data-seen", "");
    log.scrollTop = log.scrollHeight;
  }
}

/** The menu is no part of what is sent. */
function badge() {
  const waiting = document.getElementById("waiting");
  const count = document.getElementById("page")?.dataset.waiting;
  if (!waiting?.firstChild || count === undefined) return;
  waiting.hidden = count === "0";
  waiting.firstChild.nodeValue = count;
}

function fresh() {
  badge();
  times();
  tick();
  logs();
}

document.addEventListener("steadyhand:fresh", fresh);
fresh();
const isCalm = matchMedia("(prefers-reduced-motion: reduce)");
setInterval(() => document.hidden || tick(), isCalm.matches ? 1000 : 250);

/** @param {number} step */
function move(step) {
  const links = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("table.rows tbody tr"))]
    .map((row) => /** @type {HTMLElement | null} */ (row.querySelector("a.open") ?? row.querySelector("a")))
    .filter((link) => link !== null);
  const here = links.findIndex((link) => link.closest("tr")?.contains(document.activeElement));
  const next = links[Math.min(links.length - 1, Math.max(0, here + step))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

let isGoing = false;

document.addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (target.closest("input, textarea, select, dialog")) return;
  const wasGoing = isGoing;
  isGoing = false;
  if (wasGoing) {
    const link = /** @type {HTMLAnchorElement | null} */ (document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`));
    if (link) location.assign(link.href);
    return;
  }
  const search = /** @type {HTMLElement | null} */ (document.querySelector("form.search input[type=search]"));
  switch (event.key) {
    case "g":
      isGoing = true;
      setTimeout(() => (isGoing = false), 1500);
      break;
    case "j":
      move(1);
      break;
    case "k":
      move(-1);
      break;
    case "r":
      /** @type {HTMLElement | null} */ (document.querySelector("[data-key=replay]"))?.click();
      break;
    case "/":
      event.preventDefault();
      if (search) search.focus();
      else location.assign("/calls");
      break;
    case "?":
      /** @type {HTMLDialogElement | null} */ (document.getElementById("help"))?.showModal();
      break;
  }
});
