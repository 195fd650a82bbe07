// Keeps the page fresh: one stream, and what it brings is put in place without losing focus, scroll or open details.
// @ts-check

/** Browsers allow six connections to one host, over all tabs. Some are left for pages and forms. */
const STREAMS_MAX = 3;
const POLL_MS = 2000;

const main = /** @type {HTMLElement | null} */ (document.querySelector("main[data-version]"));
const sign = /** @type {HTMLElement | null} */ (document.querySelector("[data-testid=connection]"));
const build = document.documentElement.dataset.build;

let version = main?.dataset.version ?? "";
/** Ends what keeps the page fresh now. @type {(() => void) | null} */
let end = null;
/** Counts the beginnings: what an older one brings is void. */
let turn = 0;

/** @param {"live" | "lost" | "paused"} state */
function tell(state) {
  if (!sign) return;
  const words = { live: "Live", lost: "Lost, trying again", paused: "Paused" };
  if (sign.dataset.state === state) return;
  sign.dataset.state = state;
  sign.textContent = words[state];
}

/** The page's own address, without what is only for this tab. */
function address() {
  const url = new URL(location.href);
  url.hash = "";
  return url;
}

/** Another build has other files: this page is of no use with it. @param {string | null} other */
function isOld(other) {
  if (!other || other === build) return false;
  location.reload();
  return true;
}

/** @param {string} html @param {string} next */
function show(html, next) {
  if (!main || next === version) return;
  const fresh = new DOMParser().parseFromString(html, "text/html").body;
  const focused = /** @type {HTMLElement | null} */ (document.activeElement);
  children(main, fresh);
  version = next;
  // An element that moved has lost the focus, not its meaning.
  if (focused?.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
  const page = /** @type {HTMLElement | null} */ (document.getElementById("page"));
  if (page?.dataset.title) document.title = page.dataset.title;
  document.dispatchEvent(new Event("steadyhand:fresh"));
}

function stream() {
  const url = address();
  url.searchParams.set("_known", version);
  const source = new EventSource(url);
  source.addEventListener("hello", (event) => {
    if (!isOld(event.data)) tell("live");
  });
  source.addEventListener("page", (event) => {
    tell("live");
    show(event.data, event.lastEventId);
  });
  source.addEventListener("error", () => {
    tell("lost");
    // Refused for good, as when the login is over: a look at the page itself says why.
    if (source.readyState === EventSource.CLOSED) setTimeout(begin, POLL_MS);
  });
  end = () => source.close();
}

function poll() {
  const mine = turn;
  const ask = async () => {
    if (mine !== turn) return;
    try {
      const headers = { "steadyhand-part": version };
      const answer = await fetch(address(), { headers, signal: AbortSignal.timeout(10_000) });
      if (mine !== turn || isOld(answer.headers.get("steadyhand-build"))) return;
      if (answer.status === 401) return location.reload();
      if (answer.status === 200) show(await answer.text(), answer.headers.get("steadyhand-part") ?? "");
      tell(answer.ok ? "live" : "lost");
    } catch {
      tell("lost");
    }
    if (mine === turn) setTimeout(ask, POLL_MS);
  };
  ask();
  end = () => {};
}

/** Takes one of the few streams that all tabs share, or polls if they are taken. */
function begin() {
  if (!main) return;
  end?.();
  turn += 1;
  const mine = turn;
  if (!navigator.locks) return stream();
  let index = 0;
  const next = () => {
    if (mine !== turn) return;
    index += 1;
    if (index > STREAMS_MAX) return poll();
    navigator.locks.request(`steadyhand-stream-${index}`, { ifAvailable: true }, (lock) => {
      if (mine !== turn) return;
      if (!lock) return void queueMicrotask(next);
      stream();
      const close = end;
      // Held until this turn is over.
      return new Promise((done) => {
        end = () => {
          close?.();
          done(undefined);
        };
      });
    });
  };
  next();
}

function pause() {
  turn += 1;
  end?.();
  end = null;
  tell("paused");
}

document.addEventListener("visibilitychange", () => (document.hidden ? pause() : begin()));
addEventListener("pagehide", pause);
addEventListener("pageshow", (event) => event.persisted && begin());
if (!document.hidden) begin();

/** What tells an element from its neighbours. @param {Node} node */
function key(node) {
  return node instanceof Element ? node.id : "";
}

/** Makes the children of one element those of another, moving and changing as few as it can.
 * @param {Element} old @param {Element} fresh */
function children(old, fresh) {
  /** @type {Map<string, Element>} */
  const known = new Map();
  for (const child of old.children) if (child.id) known.set(child.id, child);
  let place = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const id = key(wanted);
    let match = id ? known.get(id) : null;
    if (!match && !id && place && isLike(place, wanted)) match = /** @type {Element} */ (place);
    if (!match) {
      old.insertBefore(document.adoptNode(wanted), place);
      continue;
    }
    if (match === place) place = place.nextSibling;
    else old.insertBefore(match, place);
    change(match, wanted);
  }
  while (place) {
    const gone = place;
    place = place.nextSibling;
    gone.remove();
  }
}

/** Whether one can be made the other. @param {Node} old @param {Node} fresh */
function isLike(old, fresh) {
  return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && !key(old);
}

/** @param {Node} old @param {Node} fresh */
function change(old, fresh) {
  if (!(old instanceof Element) || !(fresh instanceof Element)) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old.nodeName !== fresh.nodeName) return old.replaceWith(document.adoptNode(fresh));
  // What people fill in is theirs, and so is what they have opened.
  if (old.hasAttribute("data-keep") && fresh.hasAttribute("data-keep")) return;
  const isOpen = old instanceof HTMLDetailsElement && old.open;
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of [...fresh.attributes]) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (isOpen) old.setAttribute("open", "");
  // Counted on by app.js.
  if (old.classList.contains("tick") && !fresh.textContent) return;
  children(old, fresh);
}
