// The live list of exchanges: a table of which only the visible rows exist, with filters, search, pause and j/k.

import { announce, button, empty, fill, fillChoices, h, put, select } from "./dom.js";
import { bytes, count, duration, outcomeClass, outcomeText, OUTCOMES, plural, reveal, time } from "./format.js";
import { choices, countAll, countHeld, isDropped, list, load, routes, setFilter, setPaused, store, subscribe } from "./store.js";

const COLUMNS = [
  ["time", "Time"], ["model", "Model"], ["target", "Target"], ["route", "Protocol"], ["status", "Status"], ["first", "First token"],
  ["total", "Duration"], ["tokens", "Tokens"], ["changes", "Changes"], ["outcome", "Outcome"],
];
const OVERSCAN = 12;
const NARROW = window.matchMedia("(max-width: 760px)");
const kept = { seq: null, top: 0 }; // where the person was, for the way back

const cell = (name, ...content) => h("td", { role: "cell", class: `c-${name}` }, content);

function tokens(one) {
  if (one.tokens_in === null && one.tokens_out === null) return "";
  return `${count(one.tokens_in ?? 0)} → ${count(one.tokens_out ?? 0)}`;
}

/** The number of changes by weight, losses first, as they are seen everywhere on the page. */
export function changePills({ form, loss }) {
  return [loss > 0 && h("span", { class: "pill is-loss" }, plural(loss, "loss")), " ",
    form > 0 && h("span", { class: "pill is-form" }, `${count(form)} form`)];
}

function fillRow(row, one, dropped) {
  const target = one.target ?? "";
  const link = h("a", { href: `#/exchange/${encodeURIComponent(one.ref)}`, class: "open", "data-seq": one.seq }, reveal(one.model ?? one.path ?? "no model"));
  fill(row,
    cell("time", time(one.began)),
    cell("model", link, one.stream && h("span", { class: "stream", title: "stream" }, "≋", h("span", { class: "unseen" }, "stream")), one.replayed_from && h("span", { class: "pill" }, "replay"),
      dropped && h("span", { class: "pill", title: "The proxy keeps nothing more of it: newer exchanges have taken its place (server.inspect_bytes)" }, "not kept")),
    cell("target", reveal(target)),
    cell("route", `${one.dialect} ${one.protocol}`),
    cell("status", one.status ?? "", one.attempts > 1 && h("span", { class: "tries", title: `${one.attempts} tries` }, ` ×${one.attempts}`)),
    cell("first", duration(one.first_token_ms)),
    cell("total", duration(one.duration_ms)),
    cell("tokens", tokens(one)),
    cell("changes", changePills(one.changes)),
    cell("outcome", h("span", { class: `dot ${outcomeClass(one.outcome)}` }), h("span", { class: outcomeClass(one.outcome) }, reveal(outcomeText(one)))),
  );
}

class Table {
  constructor(root) {
    this.rows = new Map();
    this.body = h("tbody", { role: "rowgroup" });
    this.table = h("table", { role: "table", "aria-label": "Exchanges, newest first" },
      h("thead", { role: "rowgroup" }, h("tr", { role: "row", "aria-rowindex": 1 }, COLUMNS.map(([name, text]) => h("th", { role: "columnheader", scope: "col", class: `c-${name}` }, text)))), this.body);
    this.scroller = h("div", { class: "scroller", tabindex: "-1" }, this.table);
    put(root, this.scroller);
    this.scroller.addEventListener("scroll", () => this.draw(), { passive: true });
    this.body.addEventListener("click", (event) => {
      const row = event.target.closest("tr");
      if (row && !event.target.closest("a") && !String(getSelection())) row.querySelector("a.open").click();
    });
    this.body.addEventListener("focusin", (event) => { kept.seq = Number(event.target.dataset.seq); this.mark(); });
    this.shown = [];
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(this.scroller);
  }

  get height() { return NARROW.matches ? 54 : 30; }

  /** Show a list; what the person looks at stays where it is while new rows come above it. */
  update(shown) {
    const top = this.scroller.scrollTop;
    const anchor = top > 0 && this.shown[Math.floor(top / this.height)];
    this.shown = shown;
    this.table.setAttribute("aria-rowcount", shown.length + 1);
    this.body.style.height = `${shown.length * this.height}px`;
    if (anchor) {
      const moved = shown.findIndex((one) => one.seq <= anchor.seq);
      if (moved >= 0) this.scroller.scrollTop = moved * this.height + (top % this.height);
    }
    this.draw();
  }

  draw() {
    const { scrollTop, clientHeight } = this.scroller;
    const first = Math.max(0, Math.floor(scrollTop / this.height) - OVERSCAN);
    const last = Math.min(this.shown.length, Math.ceil((scrollTop + clientHeight) / this.height) + OVERSCAN);
    const visible = this.shown.slice(first, last);
    this.removeExcept(new Set(visible.map(({ seq }) => seq)));
    let next = this.body.firstChild; // rows are in the order that people and screen readers read
    visible.forEach((one, place) => {
      const row = this.drawRow(one, first + place);
      if (row === next) next = next.nextSibling; else this.body.insertBefore(row, next);
    });
    this.mark();
  }

  removeExcept(needed) {
    for (const [seq, { row }] of this.rows) {
      if (needed.has(seq)) continue;
      if (row.contains(document.activeElement)) this.scroller.focus({ preventScroll: true });
      row.remove();
      this.rows.delete(seq);
    }
  }

  drawRow(one, index) {
    let made = this.rows.get(one.seq);
    if (!made) {
      made = { row: h("tr", { role: "row" }), one: null, dropped: false, index: -1 };
      this.rows.set(one.seq, made);
    }
    const dropped = isDropped(one);
    if (made.one !== one || made.dropped !== dropped) {
      const focused = made.row.contains(document.activeElement);
      fillRow(made.row, one, dropped);
      made.row.className = `is-row ${outcomeClass(one.outcome)}-row${dropped ? " is-dropped" : ""}`;
      Object.assign(made, { one, dropped });
      if (focused) made.row.querySelector("a.open").focus({ preventScroll: true });
    }
    if (made.index !== index) {
      made.row.style.transform = `translateY(${index * this.height}px)`;
      made.row.setAttribute("aria-rowindex", index + 2);
      made.index = index;
    }
    return made.row;
  }

  mark() {
    for (const [seq, { row }] of this.rows) row.classList.toggle("is-current", seq === kept.seq);
  }

  /** Move the current row by a number of rows, and focus its link. */
  move(step) {
    if (!this.shown.length) return;
    const now = this.shown.findIndex((one) => one.seq === kept.seq);
    this.focus(now < 0 ? 0 : Math.min(this.shown.length - 1, Math.max(0, now + step)));
  }

  focus(index) {
    kept.seq = this.shown[index].seq;
    const top = index * this.height, room = this.scroller.clientHeight - this.height * 2;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    if (top > this.scroller.scrollTop + room) this.scroller.scrollTop = top - room;
    this.draw();
    this.rows.get(kept.seq)?.row.querySelector("a.open").focus({ preventScroll: true });
  }
}

/** Where clients ask: the page may be on a listener of its own. */
function clientOrigin() {
  const port = store.about?.client_port;
  return port && String(port) !== location.port ? `http://${location.hostname}:${port}` : location.origin;
}

function drawEmpty() {
  if (!store.loaded) return empty(store.live === "lost" ? "The proxy does not answer" : "Loading", h("p", {}, store.live === "lost" ? "The page tries again by itself." : ""));
  if (countAll()) return empty("No exchange matches", h("p", {}, "Nothing of what is here has all of this. ", h("kbd", {}, "Esc"), " in the search clears it."), button("Clear the filters", clearFilters));
  const served = store.about?.serves?.find(({ protocol }) => protocol === "chat") ?? store.about?.serves?.[0];
  const path = served?.path ?? "/v1/chat/completions";
  const body = { ...served?.sample, ...(store.about?.models?.[0] && { model: store.about.models[0].name }) };
  return empty("No exchange yet",
    h("p", {}, "Requests appear here the moment they begin. Send one from the ", h("a", { href: "#/playground" }, "playground"), ", or from a terminal:"),
    h("pre", {}, `curl ${clientOrigin()}${path} \\\n  -H 'Content-Type: application/json' \\\n${store.about?.needs_key ? '  -H "Authorization: Bearer $DRAGOMAN_KEY" \\\n' : ""}  -d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`));
}

let resetControls = () => {};
function clearFilters() {
  setFilter({ outcome: "", model: "", dialect: "", losses: false, search: "" });
  resetControls();
}

function makeToolbar() {
  const { filter } = store;
  const search = h("input", {
    type: "search", value: filter.search, placeholder: "Search: text, model:name, status:4xx, -word", "aria-label": "Search the exchanges", "aria-keyshortcuts": "/",
    class: "search", spellcheck: "false", autocomplete: "off", oninput: () => setFilter({ search: search.value }),
    onkeydown: (event) => { if (event.key === "Escape") { event.stopPropagation(); if (search.value) { search.value = ""; setFilter({ search: "" }); } else search.blur(); } },
  });
  const outcome = select("Outcome", [["", "All outcomes"], ...Object.entries(OUTCOMES)], filter.outcome, (value) => setFilter({ outcome: value }));
  const model = select("Model", [["", "All models"]], filter.model, (value) => setFilter({ model: value }));
  const route = select("Protocol", [["", "All protocols"]], filter.dialect, (value) => setFilter({ dialect: value }));
  const losses = button("Losses", () => { setFilter({ losses: !store.filter.losses }); losses.setAttribute("aria-pressed", store.filter.losses); }, { "aria-pressed": filter.losses ? "true" : "false", title: "Only exchanges that lost something" });
  const more = button("", load, { class: "more", title: "They came too fast to be listed" });
  const pause = button("Pause", togglePause, { class: "pause", "aria-pressed": "false", "aria-keyshortcuts": "p" });
  resetControls = () => { search.value = ""; outcome.value = model.value = route.value = ""; losses.setAttribute("aria-pressed", "false"); };
  const bar = h("div", { class: "toolbar", role: "search" }, search, outcome, model, route, losses, more, pause);
  return { bar, search, model, route, more, pause };
}

function togglePause() {
  setPaused(!store.paused);
  announce(store.paused ? "The list is paused" : "The list is live");
}

function refreshChoices(made, first, values, value) {
  const key = values.join("\n");
  if (made.dataset.values === key || document.activeElement === made) return;
  made.dataset.values = key;
  fillChoices(made, [["", first], ...values], value);
}

function drawStatus(place, shown) {
  const { about, buffer } = store;
  const part = (...content) => h("span", {}, content);
  fill(place,
    part(shown.length === countAll() ? plural(shown.length, "exchange") : `${count(shown.length)} of ${plural(countAll(), "exchange")}`),
    store.paused && part(h("strong", {}, `paused, ${count(countHeld())} new`)),
    about && part("inspect: ", h("strong", {}, about.inspect), about.inspect !== "bodies" && " · bodies are kept with ", about.inspect !== "bodies" && h("code", {}, "server.inspect: bodies")),
    buffer && part(`${bytes(buffer.bytes)} of ${bytes(buffer.limit)}`, buffer.dropped > 0 && `, ${count(buffer.dropped)} older ones dropped`),
    h("span", { class: "grow" }),
    part(h("kbd", {}, "j"), " ", h("kbd", {}, "k"), " move  ", h("kbd", {}, "Enter"), " open  ", h("kbd", {}, "/"), " search  ", h("kbd", {}, "?"), " keys"));
}

/** Show the list in `root`. */
export function openList(root) {
  const { bar, search, model, route, more, pause } = makeToolbar();
  const view = h("div", { class: "list" }, h("h1", { class: "unseen" }, "Exchanges"), bar);
  const status = h("footer", { class: "status" });
  const table = new Table(view);
  const nothing = h("div", { class: "nothing" });
  put(view, nothing, status);
  fill(root, view);
  let last = "";

  function refresh() {
    const shown = list();
    table.update(shown);
    refreshChoices(model, "All models", choices("model"), store.filter.model);
    refreshChoices(route, "All protocols", routes(), store.filter.dialect);
    more.hidden = !store.leftOut;
    fill(more, `List ${count(store.leftOut)} more`);
    fill(pause, store.paused ? `Resume${countHeld() ? ` (${count(countHeld())})` : ""}` : "Pause");
    pause.setAttribute("aria-pressed", store.paused);
    const state = shown.length ? "" : `${store.loaded} ${countAll() > 0} ${store.live} ${Boolean(store.about)}`;
    table.scroller.hidden = !shown.length;
    nothing.hidden = shown.length > 0;
    if (state !== last) { last = state; fill(nothing, state && drawEmpty()); }
    drawStatus(status, shown);
  }

  const end = subscribe(refresh);
  const resized = () => { table.rows.forEach((made) => { made.index = -1; }); table.update(table.shown); };
  NARROW.addEventListener("change", resized);
  refresh();
  table.scroller.scrollTop = kept.top;
  const back = kept.seq === null ? -1 : table.shown.findIndex((one) => one.seq === kept.seq);
  if (back >= 0) table.focus(back);
  return {
    title: "Exchanges",
    focused: back >= 0,
    close() { kept.top = table.scroller.scrollTop; end(); NARROW.removeEventListener("change", resized); table.sizes.disconnect(); },
    keys: {
      j: () => table.move(1), ArrowDown: () => table.move(1), k: () => table.move(-1), ArrowUp: () => table.move(-1),
      Home: () => table.shown.length && table.focus(0), End: () => table.shown.length && table.focus(table.shown.length - 1),
      "/": () => search.focus(), p: togglePause, l: () => bar.querySelector("[aria-pressed]").click(),
      Enter: () => { const found = kept.seq !== null && table.rows.get(kept.seq); if (found) found.row.querySelector("a.open").click(); },
    },
  };
}
