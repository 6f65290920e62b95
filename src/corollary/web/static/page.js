// The page in the browser: keys, the slider, live commits, the tree of a proof, the map.
// Everything shown comes from the server; this moves between what is there.
"use strict";

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const calm = matchMedia("(prefers-reduced-motion: reduce)");

// ---------------------------------------------------------------------------- going somewhere

async function fetchPart(url, target, swap, options = {}) {
  try {
    await htmx.ajax("GET", url, { target, select: target, swap, ...options });
  } catch {
    setState("waiting");
  }
}

function go(url) {
  return fetchPart(url, "#page", "outerMorph", { push: url });
}

function withParameters(changed) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(changed)) {
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  return url.pathname + url.search;
}

function openDrawer(url, { replace = false } = {}) {
  return fetchPart(url, "#drawer", "outerHTML", replace ? { replace: url } : { push: url });
}

function closeDrawer() {
  const drawer = $("#drawer");
  if (!drawer || drawer.hidden) return false;
  const chosen = $("tr.chosen .row-link");
  drawer.hidden = true;
  drawer.replaceChildren();
  showDrawer();
  history.pushState(null, "", withParameters({ tuple: null, ask: null, commit: null }));
  forgetTrial();
  if (chosen) chosen.focus();
  return true;
}

function showDrawer() {
  const drawer = $("#drawer");
  $(".columns")?.classList.toggle("has-drawer", Boolean(drawer && !drawer.hidden));
  const goal = $("[data-goal]", drawer || document)?.dataset.goal;
  const stale = $(".stale", drawer || document);
  if (stale) stale.hidden = isPast() || Number(stale.dataset.commit) >= Number($("#page").dataset.commit);
  for (const row of $$("tr[data-tuple]")) row.classList.toggle("chosen", row.dataset.tuple === goal);
}

// ------------------------------------------------------------------------------------- saying

const said = [];
let sayingAt = 0;

function say(text) {
  // A live region every five seconds at most: what happened in between is said together.
  said.push(text);
  const wait = Math.max(0, sayingAt + 5000 - Date.now());
  if (said.length > 1) return;
  setTimeout(() => {
    sayingAt = Date.now();
    const region = $("#said");
    if (region) region.textContent = said.splice(0).slice(-3).join("; ");
  }, wait);
}

// --------------------------------------------------------------------------------------- live

const live = { newest: 0, shown: 0, timer: null, at: 0, connected: false, isConnecting: false };
const CONNECT_AGAIN_MS = 10000;

function followLive() {
  const element = $("#live");
  if (!element || element.dataset.followed) return;
  element.dataset.followed = "1";
  element.addEventListener("commit", (event) => {
    const found = JSON.parse(event.detail.data);
    live.newest = Math.max(live.newest, found.commit);
    setState("live");
    element.classList.remove("beat");
    void element.offsetWidth; // begins the animation anew
    element.classList.add("beat");
    const words = Object.entries(found.changes).map(([name, [came, went]]) => `${name} +${came} −${went}`);
    say(`commit ${found.commit}: ${words.slice(0, 4).join(", ")}`);
    for (const alert of found.alerts) say(`alert: ${alert}`);
    refresh();
  });
  element.addEventListener("reset", refresh);
  element.addEventListener("bye", () => setState("stopped"));
  element.addEventListener("htmx:sse:after:connection", () => {
    live.connected = true;
    setState("live");
    if (live.lost) refresh();
    live.lost = false;
  });
  for (const name of ["htmx:sse:error", "htmx:sse:close", "htmx:error"]) {
    element.addEventListener(name, () => {
      live.lost = true;
      setState("waiting");
    });
  }
  element.addEventListener("htmx:sse:close", () => (live.connected = false));
  setInterval(() => connectLive(element), CONNECT_AGAIN_MS);
  connectLive(element);
}

async function connectLive(element) {
  // By hand: the extension connects by itself only if it is loaded when htmx looks at the page, and
  // does not try again if the first attempt is refused. A connection that was lost it makes again.
  if (live.connected || live.isConnecting) return;
  live.isConnecting = true;
  try {
    await htmx.ajax("GET", element.dataset.live, { source: element, swap: "none" });
  } catch {
    setState("waiting");
  }
  live.isConnecting = false;
}

function setState(state) {
  const element = $("#live");
  const words = { live: "live", waiting: "waiting for the server", stopped: "the server has stopped" };
  element.classList.toggle("waiting", state !== "live");
  if ($(".word", element).textContent !== words[state]) $(".word", element).textContent = words[state];
}

function isPast() {
  const parameters = new URLSearchParams(location.search);
  return parameters.has("at") || parameters.has("from");
}

function refresh() {
  // At most once a second; what one types stays, since the page is morphed.
  if (live.timer) return;
  const wait = Math.max(0, live.at + 1000 - Date.now());
  live.timer = setTimeout(async () => {
    live.timer = null;
    live.at = Date.now();
    const target = isPast() ? "#time" : "#page";
    $("#drawer")?.setAttribute("hx-morph-skip", ""); // a proof stays until one asks again
    await fetchPart(location.pathname + location.search, target, "outerMorph", { headers: { "X-Live": "1" } });
    $("#drawer")?.removeAttribute("hx-morph-skip");
  }, wait);
}

// ---------------------------------------------------------------------------------------- map

function runMap() {
  // A commit runs up the floors: each badge and arrow appears when its floor is reached.
  const frame = $(".map-frame");
  if (!frame) return;
  const commit = location.search + frame.dataset.run;
  const earlier = sessionStorage.getItem("ran");
  sessionStorage.setItem("ran", commit);
  if (earlier === null || earlier === commit || calm.matches) return;
  const map = $("svg.map", frame);
  if (!map) return;
  const step = 600 / Math.max(1, Number(map.dataset.floors));
  for (const part of $$(".badge, .flow, .node.changed .box", map)) {
    const floor = Number(part.dataset.floor ?? part.closest(".node").dataset.floor);
    const leave = part.classList.contains("flow") ? step * 0.6 : 0;
    part.style.animationDelay = `${Math.max(0, floor * step - leave)}ms`;
  }
  map.classList.remove("runs");
  void map.getBoundingClientRect(); // begins the animation anew
  map.classList.add("runs");
}

function lightArrows(event) {
  const node = event.target.closest?.(".node");
  for (const arc of $$("svg.map .arc")) {
    const name = node?.dataset.relation;
    const isLit = name !== undefined && (arc.dataset.from === name || arc.dataset.to === name);
    arc.classList.toggle("lit", isLit);
  }
}

// --------------------------------------------------------------------------------------- tree

function levelOf(line) {
  return Number(line.getAttribute("aria-level"));
}

function fold(line, open) {
  if (!line.hasAttribute("aria-expanded")) return;
  line.setAttribute("aria-expanded", String(open));
  const level = levelOf(line);
  let closedAt = open ? Infinity : level; // lines deeper than this stay folded
  for (let next = line.nextElementSibling; next && levelOf(next) > level; next = next.nextElementSibling) {
    const own = levelOf(next);
    if (own <= closedAt && open) closedAt = Infinity;
    next.hidden = own > closedAt;
    if (!next.hidden && next.getAttribute("aria-expanded") === "false") closedAt = own;
  }
}

function focusLine(line) {
  if (!line) return;
  for (const other of $$('[role="treeitem"]', line.closest('[role="tree"]'))) other.tabIndex = -1;
  line.tabIndex = 0;
  line.focus();
}

function parentOf(line) {
  let before = line.previousElementSibling;
  while (before && levelOf(before) >= levelOf(line)) before = before.previousElementSibling;
  return before;
}

function treeKey(event, line) {
  const shown = $$('[role="treeitem"]:not([hidden])', line.closest('[role="tree"]'));
  const at = shown.indexOf(line);
  const expanded = line.getAttribute("aria-expanded");
  switch (event.key) {
    case "ArrowDown": focusLine(shown[at + 1]); break;
    case "ArrowUp": focusLine(shown[at - 1]); break;
    case "Home": focusLine(shown[0]); break;
    case "End": focusLine(shown.at(-1)); break;
    case "ArrowRight":
      if (expanded === "false") fold(line, true);
      else if (expanded === "true") focusLine(shown[at + 1]);
      break;
    case "ArrowLeft":
      if (expanded === "true") fold(line, false);
      else focusLine(parentOf(line));
      break;
    case "Enter":
    case " ":
      if (event.target !== line) return false;
      if (expanded !== null) fold(line, expanded === "false");
      break;
    case "*":
      for (const each of shown) fold(each, true);
      break;
    default:
      return false;
  }
  event.preventDefault();
  return true;
}

function lightLiteral(event, isLit) {
  const literal = event.target.closest?.(".literal[data-child]");
  if (!literal) return;
  const tree = literal.closest('[role="tree"]');
  literal.classList.toggle("lit", isLit);
  for (const line of $$(`[data-node="${literal.dataset.child}"]`, tree)) line.classList.toggle("lit", isLit);
}

// ---------------------------------------------------------------------------------- what if

function forgetTrial() {
  for (const part of $$(".would-go, .would-come")) part.classList.remove("would-go", "would-come");
}

function markTrial() {
  forgetTrial();
  const trial = $("#what-if .trial");
  if (!trial) return;
  const went = new Set(JSON.parse(trial.dataset.went));
  const came = new Set(JSON.parse(trial.dataset.came));
  for (const part of $$("[data-tuple]")) {
    part.classList.toggle("would-go", went.has(part.dataset.tuple));
    part.classList.toggle("would-come", came.has(part.dataset.tuple));
  }
}

// -------------------------------------------------------------------------------------- slider

function slide(event) {
  const handle = event.target.closest?.(".handle");
  if (!handle) return;
  const from = $(".handle.from");
  const at = $(".handle.at");
  if (from && Number(from.value) >= Number(at.value)) {
    if (handle === from) from.value = Number(at.value) - 1;
    else at.value = Number(from.value) + 1;
  }
  const words = from ? `commit ${from.value} to ${at.value}` : `commit ${at.value}`;
  $(".time .point").textContent = words;
  handle.setAttribute("aria-valuetext", words);
  if (event.type !== "change") return;
  const isNow = at.value === at.max && !from;
  go(withParameters({ at: isNow ? null : at.value, from: from ? from.value : null, cursor: null }));
}

// ---------------------------------------------------------------------------------------- keys

let prefix = "";

function rowsOf() {
  return $$("[data-rows] tbody tr").filter((row) => $("a", row));
}

function moveRow(step) {
  const rows = rowsOf();
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const chosen = at >= 0 ? at : rows.findIndex((row) => row.classList.contains("chosen"));
  const next = rows[Math.max(0, Math.min(rows.length - 1, chosen + step))] || rows[0];
  const link = $(".row-link, [data-open], a", next);
  link.focus();
  next.scrollIntoView({ block: "nearest" });
  if (next.dataset.href && !$("#drawer").hidden) openDrawer(next.dataset.href, { replace: true });
}

function pressed(selector) {
  const found = $(selector);
  if (found && found.getAttribute("href") !== null) found.click();
  else if (found instanceof HTMLButtonElement) found.click();
  return Boolean(found);
}

function question(ask) {
  const row = document.activeElement?.closest?.("tr[data-tuple]") || $("tr.chosen[data-tuple]");
  const line = document.activeElement?.closest?.("[role=treeitem][data-tuple]");
  const goal = line?.dataset.tuple || row?.dataset.tuple || $("[data-goal]")?.dataset.goal;
  if (goal) openDrawer(withParameters({ tuple: goal, ask: ask === "why" ? null : ask, commit: null }));
}

function whatIf() {
  const line = document.activeElement?.closest?.("[role=treeitem]");
  const button = (line && $(".try", line)) || $('.line:not([hidden]) .try[data-key="x"]') || $('.line:not([hidden]) .try');
  if (button) button.click();
}

const KEYS = {
  "/": () => $("#ask").focus(),
  "?": () => $(".help").click(),
  j: () => moveRow(1),
  k: () => moveRow(-1),
  w: () => question("why"),
  n: () => question("why-not"),
  x: whatIf,
  "[": () => pressed('.time [data-key="["]'),
  "]": () => pressed('.time [data-key="]"]'),
  ".": () => isPast() && go(withParameters({ at: null, from: null })),
};

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const target = event.target;
  if (event.key === "Escape") {
    if (target.matches?.("input, textarea")) target.blur();
    else closeDrawer();
    return;
  }
  if (target.matches?.("input:not([type=range]), textarea, select, [contenteditable]")) return;
  const line = target.closest?.('[role="treeitem"]');
  if (line && treeKey(event, line)) return;
  if (prefix === "g") {
    prefix = "";
    const link = $(`nav.pages a[data-keys="g ${CSS.escape(event.key)}"]`);
    if (link) {
      event.preventDefault();
      link.click();
    }
    return;
  }
  if (event.key === "g") {
    prefix = "g";
    setTimeout(() => (prefix = ""), 1500);
    return;
  }
  if (KEYS[event.key]) {
    event.preventDefault();
    KEYS[event.key]();
  }
}

// --------------------------------------------------------------------------------------- begin

function samePage(event) {
  // A link that changes the query only: the page is morphed, and nothing flickers.
  const link = event.target.closest("a[href]");
  if (!link || link.target || link.hasAttribute("hx-target") || link.closest("svg")) return false;
  const isPlain = event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
  return isPlain && link.origin === location.origin && link.pathname === location.pathname && !link.hash;
}

function clicked(event) {
  const target = event.target;
  if (target.closest("[data-close]")) {
    event.preventDefault();
    closeDrawer();
  } else if (target.closest("[data-forget]")) {
    $("#what-if").replaceChildren();
    forgetTrial();
  } else if (target.closest("button.rule")) {
    const button = target.closest("button.rule");
    const text = $(".rule-text", button.closest("li"));
    text.hidden = !text.hidden;
    button.setAttribute("aria-expanded", String(!text.hidden));
  } else if (target.closest(".twist, .what") && !target.closest("a, button")) {
    const line = target.closest('[role="treeitem"]');
    if (line) {
      fold(line, line.getAttribute("aria-expanded") === "false");
      focusLine(line);
    }
  } else if (samePage(event)) {
    event.preventDefault();
    go(target.closest("a").href);
  } else if (!target.closest("a, button, input, select, textarea")) {
    const row = target.closest("tr[data-href]");
    if (row && !getSelection().toString()) openDrawer(row.dataset.href);
  }
}

function settled(event) {
  for (const handle of $$(".handle")) handle.value = handle.getAttribute("value"); // not what one had typed
  showDrawer();
  followLive();
  runMap();
  markTrial();
  if (event?.detail?.ctx?.target?.id === "drawer" && !calm.matches) $("#drawer")?.scrollTo(0, 0);
}

document.addEventListener("keydown", key);
document.addEventListener("click", clicked);
document.addEventListener("input", slide);
document.addEventListener("change", slide);
document.addEventListener("pointerover", lightArrows);
document.addEventListener("focusin", lightArrows);
document.addEventListener("pointerover", (event) => lightLiteral(event, true));
document.addEventListener("pointerout", (event) => lightLiteral(event, false));
document.addEventListener("htmx:config:request", (event) => {
  event.detail.ctx.request.headers["X-Corollary"] = "1";
});
document.addEventListener("htmx:response:error", (event) => {
  if (event.detail?.ctx?.response?.status === 401) location.reload(); // the session is over
});
document.addEventListener("htmx:after:swap", settled);
document.addEventListener("DOMContentLoaded", () => settled());
