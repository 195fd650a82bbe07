// Values of charts under the pointer or by arrow keys, and buttons that copy. The page is whole without it.
// @ts-check

document.documentElement.classList.add("scripted");

/** The chart that is read now, and which of its columns. @type {{ id: string, at: number } | null} */
let reading = null;

/** @param {Element} plot @param {string} name */
const data = (plot, name) => plot.getAttribute(`data-${name}`) ?? "";

/** The columns of a chart, each series with its values as the server wrote them. @param {Element} plot */
function series(plot) {
  const values = data(plot, "values").split(";").map((one) => one.split("|"));
  return data(plot, "names").split("|").map((name, index) => ({ name, values: values[index] ?? [] }));
}

/** @param {Element} plot */
function columns(plot) {
  return series(plot)[0]?.values.length ?? 0;
}

/** When a column begins, in the reader's own zone. @param {Element} plot @param {number} at */
function moment(plot, at) {
  const begin = new Date(Number(data(plot, "start")) + at * Number(data(plot, "step")));
  const isDay = Number(data(plot, "step")) >= 900_000;
  /** @type {Intl.DateTimeFormatOptions} */
  const day = isDay ? { month: "short", day: "numeric" } : {};
  return begin.toLocaleString("en", { ...day, hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
}

/** Shows the values of one column. @param {Element} plot @param {number} at */
function show(plot, at) {
  const readout = plot.querySelector(".readout");
  const cursor = /** @type {HTMLElement | null} */ (plot.querySelector(".cursor"));
  if (!readout || !cursor) return;
  const count = columns(plot);
  const index = Math.min(count - 1, Math.max(0, at));
  reading = { id: plot.id, at: index };
  const words = series(plot).map(({ name, values }) => `${name} ${values[index]}`);
  const text = `${moment(plot, index)}: ${words.join(", ")}`;
  if (readout.textContent !== text) readout.textContent = text;
  cursor.hidden = false;
  cursor.style.left = `${(100 * (index + 0.5)) / count}%`;
  readout.classList.toggle("left", index > count / 2);
}

/** @param {Element} plot */
function hide(plot) {
  reading = null;
  const readout = plot.querySelector(".readout");
  const cursor = /** @type {HTMLElement | null} */ (plot.querySelector(".cursor"));
  if (readout) readout.textContent = "";
  if (cursor) cursor.hidden = true;
}

/** @param {Event} event */
function plotOf(event) {
  return event.target instanceof Element ? event.target.closest(".plot[data-values]") : null;
}

/** The calls of one column. @param {Element} plot @param {number} at */
function follow(plot, at) {
  const from = Number(data(plot, "start")) + at * Number(data(plot, "step"));
  const query = new URLSearchParams({ since: String(from), until: String(from + Number(data(plot, "step"))) });
  if (data(plot, "tool")) query.set("tool", data(plot, "tool"));
  location.assign(`/calls?${query}`);
}

/** @param {Element} plot @param {MouseEvent} event */
function under(plot, event) {
  const box = plot.getBoundingClientRect();
  return Math.floor((columns(plot) * (event.clientX - box.left)) / box.width);
}

document.addEventListener("pointermove", (event) => {
  const plot = plotOf(event);
  if (plot) return show(plot, under(plot, event));
  const last = reading && document.getElementById(reading.id);
  if (last && !last.contains(document.activeElement)) hide(last);
});
document.addEventListener("click", (event) => {
  const plot = plotOf(event);
  if (plot) follow(plot, Math.min(columns(plot) - 1, Math.max(0, under(plot, event))));
});
document.addEventListener("focusin", (event) => {
  const plot = plotOf(event);
  if (plot) show(plot, reading?.id === plot.id ? reading.at : columns(plot) - 1);
});
document.addEventListener("focusout", (event) => {
  const plot = plotOf(event);
  if (plot) hide(plot);
});
document.addEventListener("keydown", (event) => {
  const plot = plotOf(event);
  if (!plot || event.ctrlKey || event.metaKey || event.altKey) return;
  const last = columns(plot) - 1;
  const at = reading?.id === plot.id ? reading.at : last;
  /** @type {Record<string, number>} */
  const moves = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last };
  if (event.key === "Enter") return follow(plot, at);
  if (event.key === "Escape") return hide(plot);
  const next = moves[event.key];
  if (next === undefined) return;
  event.preventDefault();
  show(plot, next);
});
// What came anew has nothing of this in it.
document.addEventListener("steadyhand:fresh", () => {
  const plot = reading && document.getElementById(reading.id);
  if (reading && plot) show(plot, reading.at);
});

/** Copies also where the page came over plain http, and browsers have no clipboard for it. @param {string} text */
async function copy(text) {
  try {
    if (navigator.clipboard) return await navigator.clipboard.writeText(text).then(() => true);
  } catch {
    // Not allowed here: the other way may be.
  }
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "hidden";
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  return isCopied;
}

document.addEventListener("click", async (event) => {
  const button = event.target instanceof Element ? event.target.closest("button.copy") : null;
  const source = button?.closest(".copyable")?.querySelector("[data-copied]");
  if (!(button instanceof HTMLButtonElement) || !source) return;
  const shown = source instanceof HTMLElement ? source.innerText : "";
  const isCopied = await copy(source.getAttribute("data-copied") || shown);
  button.focus();
  button.textContent = isCopied ? "Copied" : "Cannot copy";
  setTimeout(() => (button.textContent = "Copy"), 2000);
});

/** A time that is typed is the reader's own: it is sent as the moment it is. */
document.addEventListener("formdata", (event) => {
  for (const field of /** @type {HTMLFormElement} */ (event.target).querySelectorAll("input[type=datetime-local]")) {
    const { name, value } = /** @type {HTMLInputElement} */ (field);
    if (value) event.formData.set(name, new Date(value).toISOString());
  }
});

for (const field of /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("input[data-moment]"))) {
  const at = new Date(Number(field.dataset.moment));
  field.value = new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** On a narrow screen the menu scrolls: to where one is. */
const menu = document.querySelector(".top nav");
const here = /** @type {HTMLElement | null} */ (menu?.querySelector("[aria-current]"));
if (menu && here) {
  const from = here.getBoundingClientRect().left - menu.getBoundingClientRect().left;
  menu.scrollLeft += from - (menu.clientWidth - here.offsetWidth) / 2;
}
