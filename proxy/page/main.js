// Begins here: chooses the view by the address, and keeps the keys, the theme and the state of the connection.

import { signOut } from "./api.js";
import { attempt, fill, h, openDialog } from "./dom.js";
import { count, duration } from "./format.js";
import { openList } from "./list.js";
import { store, start, subscribe } from "./store.js";

const by = (id) => document.getElementById(id);
const VIEWS = { list: async () => openList };
const load = (file, name) => async () => (await import(file))[name];
VIEWS.exchange = load("./exchange.js", "openExchange");
VIEWS.compare = load("./compare.js", "openCompare");
VIEWS.playground = load("./playground.js", "openPlayground");
VIEWS.providers = load("./providers.js", "openProviders");
VIEWS.configuration = load("./configuration.js", "openConfiguration");

const KEYS = [
  ["Everywhere", [["g l", "exchanges"], ["g p", "playground"], ["g h", "providers and limits"], ["g c", "configuration"], ["t", "theme"], ["?", "these keys"], ["Esc", "close, or go back"]]],
  ["List", [["j k", "next, previous exchange"], ["Enter", "open it"], ["/", "search"], ["p", "pause"], ["l", "only losses"]]],
  ["Exchange", [["j k", "next, previous exchange"], ["n N", "next, previous change"], ["1 2 3 4", "make a pane large, or normal again"], ["[ ]", "previous, next try"], ["r", "replay"], ["e", "export"]]],
  ["Playground", [["Ctrl Enter", "send"]]],
];
const GO = { l: "#/", p: "#/playground", h: "#/providers", c: "#/configuration" };
let view = null;
let going = 0;
let afterG = false;

async function show() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const kind = name in VIEWS ? name : "list";
  const mine = (going += 1);
  const open = await VIEWS[kind]();
  if (mine !== going) return;
  const first = view === null;
  view?.close?.();
  for (const box of document.querySelectorAll("dialog[open]")) box.close();
  by("main").scrollTop = 0;
  view = open(by("main"), ...rest);
  document.title = `${view.title} · dragoman`;
  for (const link of by("views").children) {
    if (link.dataset.view === (kind === "exchange" || kind === "compare" ? "list" : kind)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!first && !view.focused) by("main").focus({ preventScroll: true });
}

function openHelp() {
  openDialog("Keyboard", KEYS.map(([title, keys]) => [h("h3", {}, title), h("dl", { class: "keys" }, keys.map(([key, text]) => [
    h("dt", {}, key.split(" ").map((one) => [h("kbd", {}, one), " "])), h("dd", {}, text)]))]));
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "Escape" && typing) { typing.blur(); return; }
  if (typing) return;
  if (event.key === "Enter" && event.target.closest("a, button")) return;
  if (afterG) { afterG = false; if (GO[event.key]) { location.hash = GO[event.key]; event.preventDefault(); return; } }
  const shared = { "?": openHelp, t: nextTheme, g: () => { afterG = true; setTimeout(() => { afterG = false; }, 1500); } };
  const act = view?.keys?.[event.key] ?? shared[event.key];
  if (!act) return;
  event.preventDefault();
  act(event);
}

const THEMES = { auto: ["◐", "system"], light: ["○", "light"], dark: ["●", "dark"] };
function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  fill(by("theme"), h("span", { "aria-hidden": "true" }, THEMES[name][0]));
  by("theme").setAttribute("aria-label", `Theme: ${THEMES[name][1]}`);
  by("theme").title = `Theme: ${THEMES[name][1]}`;
  by("theme").dataset.name = name;
}
function nextTheme() {
  const names = Object.keys(THEMES);
  const next = names[(names.indexOf(by("theme").dataset.name) + 1) % names.length];
  localStorage.setItem("dragoman-theme", next);
  setTheme(next);
}

const LIVE = { connecting: ["", "connecting"], open: ["is-ok", "live"], lost: ["is-fault", "no connection"] };
function drawPulse() {
  const [color, text] = LIVE[store.live];
  const { in_flight: flying, loop_lag_ms: lag } = store.gauges ?? {};
  const parts = [store.paused ? "paused" : text];
  if (store.live === "open" && flying !== undefined) parts.push(`${count(flying)} in flight`);
  by("pulse-dot").className = `dot ${store.paused ? "is-loss" : color}`;
  const said = parts.join(" · ");
  if (by("pulse-text").textContent !== said) by("pulse-text").textContent = said;
  by("pulse").title = lag === undefined ? "" : `event loop lag ${duration(lag)}`;
}

// A browser has six connections to a server for all its tabs: one that nobody looks at gives its own back.
const HIDDEN = 20_000;
let following = null, leaving = null;
function follow() {
  clearTimeout(leaving);
  if (document.hidden) { leaving = setTimeout(unfollow, HIDDEN); return; }
  if (following) return;
  following = new AbortController();
  start(following.signal);
}
function unfollow() {
  following?.abort();
  following = null;
}

function drawLeave() {
  by("leave").hidden = !store.about?.signed_in;
}
const leave = () => attempt(async () => { await signOut(); location.reload(); });

let stored = null;
try { stored = localStorage.getItem("dragoman-theme"); } catch { /* without storage the system's theme holds */ }
setTheme(stored in THEMES ? stored : "auto");
by("theme").addEventListener("click", nextTheme);
by("help").addEventListener("click", openHelp);
by("leave").addEventListener("click", leave);
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); by("main").focus(); });
document.addEventListener("keydown", onKey);
window.addEventListener("hashchange", show);
subscribe(drawPulse);
subscribe(drawLeave);
drawPulse();
follow();
document.addEventListener("visibilitychange", follow);
window.addEventListener("pageshow", follow);
window.addEventListener("pagehide", unfollow);
await show();
