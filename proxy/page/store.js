// The exchanges that the page knows: at most MOST summaries, newest first, filtered and searched.

import { follow, getAbout, getJson } from "./api.js";

const MOST = 10_000;
const PAGE = 500;
const FIELDS = { model: "model", target: "target", id: "id", key: "key", path: "path", fault: "fault", dialect: "dialect", protocol: "protocol", client: "client", status: "status", outcome: "outcome" };
const texts = new WeakMap();
const listeners = new Set();
const bySeq = new Map();
const byName = new Map(); // by reference, and the newest with an id by that id
let held = new Map();
let all = [];
let shown = null;
let asked = false;

export const store = {
  about: null, buffer: null, gauges: null, live: "connecting", paused: false, loaded: false, leftOut: 0,
  filter: { outcome: "", model: "", dialect: "", losses: false, search: "" },
};

/** Call `listener(what)` after changes, once in a frame; returns the function that ends it. */
export function subscribe(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function changed() {
  shown = null;
  if (asked) return;
  asked = true;
  const tell = () => { if (!asked) return; asked = false; for (const listener of listeners) listener(); };
  requestAnimationFrame(tell);
  setTimeout(tell, 250); // a page in the background has no frames
}

function place(summary) {
  const known = bySeq.get(summary.seq);
  bySeq.set(summary.seq, summary);
  byName.set(summary.ref, summary);
  if (!(byName.get(summary.id)?.seq > summary.seq)) byName.set(summary.id, summary);
  if (known) { all[find(summary.seq)] = summary; return; }
  if (!all.length || summary.seq > all[0].seq) all.unshift(summary);
  else all.splice(find(summary.seq), 0, summary);
  for (const old of all.splice(MOST)) {
    bySeq.delete(old.seq);
    byName.delete(old.ref);
    if (byName.get(old.id) === old) byName.delete(old.id);
  }
}

function find(seq) { // the first place whose seq is not larger
  let low = 0, high = all.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (all[middle].seq > seq) low = middle + 1; else high = middle;
  }
  return low;
}

/** Take a summary; while the list is paused, new ones wait. */
export function take(summary) {
  if (store.paused && !bySeq.has(summary.seq)) held.set(summary.seq, summary);
  else place(summary);
  changed();
}

export function setPaused(paused) {
  store.paused = paused;
  if (!paused) { for (const summary of held.values()) place(summary); held = new Map(); }
  changed();
}

export function setFilter(change) {
  Object.assign(store.filter, change);
  changed();
}

/** Whether the proxy has dropped what it kept of an exchange: they go in the order of their numbers, which begin at 1. */
export const isDropped = (one) => one.seq <= (store.buffer?.dropped ?? 0);
export const countHeld = () => held.size;
export const countAll = () => all.length;
export const findByName = (name) => byName.get(name);
export const list = () => (shown ??= all.filter(compile(store.filter)));

/** The values that a filter can have, from what is there. */
export function choices(name) {
  return [...new Set(all.map((one) => one[name]).filter(Boolean))].sort();
}
export const routes = () => [...new Set(all.map((one) => `${one.dialect}/${one.protocol}`))].sort();

function textOf(one) {
  let text = texts.get(one);
  if (text === undefined) {
    text = [one.id, one.model, one.target, one.path, one.key, one.client, one.fault, one.message, one.dialect, one.protocol, one.status, one.outcome].filter((part) => part !== null && part !== undefined).join(" ").toLowerCase();
    texts.set(one, text);
  }
  return text;
}

function compileTerm(term) {
  if (term.length > 1 && term.startsWith("-")) { const other = compileTerm(term.slice(1)); return (one) => !other(one); }
  const [, name, value] = /^(\w+):(.+)$/.exec(term) ?? [];
  const key = name && FIELDS[name];
  if (!key) return (one) => textOf(one).includes(term);
  const range = /^([1-5])xx$/.exec(value);
  if (key === "status" && range) return (one) => Math.floor(one.status / 100) === Number(range[1]);
  return (one) => String(one[key] ?? "").toLowerCase().includes(value);
}

/** The filter as one predicate. Words of the search must all be found; `name:word` looks in one field, `-word` excludes. */
export function compile({ outcome, model, dialect, losses, search }) {
  const terms = search.toLowerCase().split(/\s+/).filter(Boolean).map(compileTerm);
  return (one) => (!outcome || one.outcome === outcome) && (!model || one.model === model)
    && (!dialect || `${one.dialect}/${one.protocol}` === dialect) && (!losses || one.changes.loss > 0) && terms.every((term) => term(one));
}

function forget() { // the numbers begin again when the proxy does
  bySeq.clear();
  byName.clear();
  held.clear();
  all = [];
}

/** Load what the server has: what its events have left out too. */
export async function load() {
  let before = "";
  store.leftOut = 0;
  do {
    const { exchanges, buffer } = await getJson(`exchanges?limit=${PAGE}${before}`);
    if (!before) forget();
    store.buffer = buffer;
    exchanges.forEach(place);
    store.loaded = true;
    changed();
    before = exchanges.length && all.length < MOST ? `&before=${exchanges.at(-1).seq}` : null;
  } while (before !== null);
}

/** Load what the server has, then follow it until the signal aborts. */
export async function start(signal) {
  await follow((name, data) => {
    if (name === "exchange") take(data);
    if (name === "left_out") { store.leftOut += data.count; changed(); }
    if (name === "state") {
      store.gauges = data;
      store.buffer = { ...store.buffer, bytes: data.buffer_bytes, exchanges: data.exchanges, dropped: data.dropped };
      changed();
    }
  }, async (state) => {
    if (state === "open") { store.about = await getAbout(true); await load(); }
    store.live = state;
    changed();
  }, signal);
}
