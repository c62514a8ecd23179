// One exchange: its facts, its tries, four panes and the changes between them.

import { getJson } from "./api.js";
import { announce, button, empty, fill, h } from "./dom.js";
import { count, duration, moment, outcomeClass, outcomeText, plural, reveal } from "./format.js";
import { Changes, marksFor, numberChanges, placeOf } from "./changes.js";
import { openExport } from "./export.js";
import { openReplay } from "./replay.js";
import { Pane } from "./pane.js";
import { findByName, list, subscribe } from "./store.js";

const TITLES = ["Client sent", "Provider got", "Provider answered", "Client got"];
const NOT_KEPT = ["Messages are not kept: server.inspect is off. This shows those of later exchanges, secrets masked:", h("pre", {}, "server:\n  inspect: bodies")];
const TABS = ["1 sent", "2 to provider", "3 answered", "4 got", "Changes"];

const nameTry = (one, index) => (one.call > 0 ? `Try ${one.try}, call ${one.call + 1}` : `Try ${one.try ?? index + 1}`);

class Exchange {
  constructor(root, name) {
    this.name = name; // its reference or its id
    this.number = null; // of the selected change
    this.facts = h("div", { class: "facts" });
    this.panes = TITLES.map((title, index) => new Pane(index + 1, title, (number) => this.follow(number)));
    for (const pane of this.panes) pane.onLarge = (number) => this.makeLarge(number);
    this.changes = new Changes((number, pane) => this.follow(number, pane));
    this.tabs = h("div", { class: "tabs pane-tabs", role: "group", "aria-label": "Panes" }, TABS.map((text, index) => button(text, () => this.showTab(index), { "aria-pressed": String(index === 0) })));
    this.grid = h("div", { class: "panes", "data-tab": 0 }, this.panes.map((pane) => pane.root), this.changes.root);
    this.caption = h("p", { class: "caption", hidden: true }); // on a narrow page, where the list of changes is out of sight
    this.view = h("article", { class: "exchange" }, this.facts, h("div", { class: "above" }, this.tabs, this.caption), this.grid);
    this.root = root;
    fill(root, h("p", { class: "note" }, "Loading"));
  }

  async load() {
    const detail = await getJson(`exchanges/${encodeURIComponent(this.name)}`);
    if (this.closed) return;
    this.detail = detail;
    this.attempt = Math.max(1, detail.tries.length);
    if (!this.view.isConnected) fill(this.root, this.view);
    this.draw();
  }

  draw() {
    this.drawFacts();
    this.drawPanes();
  }

  drawFacts() {
    const { detail } = this;
    const fact = (name, value) => value !== null && value !== undefined && value !== "" && h("div", {}, h("dt", {}, name), h("dd", {}, value));
    const tokens = detail.tokens_in === null && detail.tokens_out === null ? null : `${count(detail.tokens_in ?? 0)} → ${count(detail.tokens_out ?? 0)}`;
    fill(this.facts,
      h("div", { class: "headline" },
        h("a", { class: "button quiet back", href: "#/", "aria-label": "Back to the list" }, "←"),
        h("h1", {}, h("span", {}, reveal(detail.model ?? detail.path)), detail.target && h("span", { class: "soft" }, " → ", reveal(detail.target))),
        h("span", { class: `outcome ${outcomeClass(detail.outcome)}` }, h("span", { class: `dot ${outcomeClass(detail.outcome)}` }), detail.status && `${detail.status} `, reveal(outcomeText(detail))),
        h("span", { class: "grow" }),
        detail.replayed_from && h("a", { class: "button", href: `#/compare/${encodeURIComponent(detail.replayed_from)}/${encodeURIComponent(detail.ref)}` }, "Compare with the original"),
        button("Replay", () => openReplay(detail), { "aria-keyshortcuts": "r" }), button("Export", () => openExport(detail), { "aria-keyshortcuts": "e" }),
        button("↑", () => this.step(-1), { class: "quiet", "aria-label": "Newer exchange", "aria-keyshortcuts": "k" }), button("↓", () => this.step(1), { class: "quiet", "aria-label": "Older exchange", "aria-keyshortcuts": "j" })),
      detail.message && h("p", { class: "message" }, reveal(detail.message)),
      h("dl", { class: "numbers" },
        fact("began", moment(detail.began)), fact("protocol", `${detail.dialect} ${detail.protocol}`), fact("first token", duration(detail.first_token_ms)), fact("duration", duration(detail.duration_ms)),
        fact("tokens", tokens), fact("key", detail.key && reveal(detail.key)), fact("client", detail.address && reveal(detail.address)), fact("id", h("code", {}, reveal(detail.id)))),
      this.drawTries());
  }

  drawTries() {
    const { tries, duration_ms: whole } = this.detail;
    if (!tries.length) return null;
    const end = Math.max(1, whole ?? 0, ...tries.map((one) => (one.began_ms ?? 0) + (one.duration_ms ?? 0)));
    const bars = tries.map((one, index) => {
      const bar = h("i", { class: outcomeClass(one.outcome) });
      bar.style.left = `${((one.began_ms ?? 0) / end) * 100}%`;
      bar.style.width = `max(3px, ${((one.duration_ms ?? end - (one.began_ms ?? 0)) / end) * 100}%)`;
      const label = [h("span", { class: `dot ${outcomeClass(one.outcome)}` }), tries.length > 1 ? nameTry(one, index) : "One try", h("span", { class: "soft" }, reveal(one.target ?? ""), one.outcome === "ok" ? "" : ` ${reveal(one.fault ?? one.outcome)}`)];
      return h("li", {}, tries.length > 1 ? button(label, () => this.choose(index + 1), { class: "try", "aria-pressed": String(index + 1 === this.attempt) }) : h("span", { class: "try" }, label),
        h("span", { class: "track", "aria-hidden": "true" }, bar), h("span", { class: "soft" }, duration(one.duration_ms)));
    });
    return h("ol", { class: "waterfall", "aria-label": plural(tries.length, "try").replace("trys", "tries") }, bars);
  }

  drawPanes() {
    const { detail } = this, one = detail.tries[this.attempt - 1];
    this.list = numberChanges(detail.changes, one?.try ?? this.attempt);
    const messages = [detail.client?.request, one?.request, one?.reply, detail.client?.reply];
    const none = this.explain();
    this.panes.forEach((pane, index) => pane.show(messages[index] ?? null, marksFor(this.list, index + 1), messages[[1, 0, 3, 2][index]], none));
    this.changes.show(this.list, detail.outcome === "running" ? "The exchange is running." : undefined);
  }

  /** Why a message is not here. */
  explain() {
    const { outcome, client, tries } = this.detail;
    if (!client) return NOT_KEPT;
    if (outcome === "running") return "The exchange is running.";
    return tries.length ? "Nothing came." : "No provider was asked: dragoman answered itself.";
  }

  choose(number) {
    if (number < 1 || number > this.detail.tries.length) return;
    this.attempt = number;
    this.number = null;
    this.caption.hidden = true;
    const focused = this.facts.contains(document.activeElement);
    this.draw();
    if (focused) this.facts.querySelector('.try[aria-pressed="true"]')?.focus();
    announce(`Try ${number} of ${this.detail.tries.length}`);
  }

  /** Select a change everywhere; with a pane, bring that pane forward and focus it. */
  follow(number, pane) {
    this.number = number;
    this.changes.select(number);
    if (pane) this.showTab(pane - 1);
    for (const one of this.panes) one.select(number);
    if (pane) this.panes[pane - 1].viewer?.box.focus({ preventScroll: true });
    const change = this.list.find((one) => one.number === number);
    fill(this.caption, change && [h("span", { class: `mark is-${change.weight}` }, number), " ", h("strong", {}, change.action), " ", h("code", {}, placeOf(change)), " ", reveal(change.reason), " ", button("Why", () => this.showTab(4), { class: "quiet small" })]);
    this.caption.hidden = !change;
    if (change) announce(`Change ${number} of ${this.list.length}: ${change.action}, ${change.reason}`);
  }

  stepChange(step) {
    if (!this.list?.length) return;
    const now = this.list.findIndex((one) => one.number === this.number);
    this.follow(this.list[now < 0 ? (step > 0 ? 0 : this.list.length - 1) : (now + step + this.list.length) % this.list.length].number);
  }

  showTab(index) {
    this.grid.dataset.tab = index;
    [...this.tabs.children].forEach((tab, place) => tab.setAttribute("aria-pressed", String(place === index)));
    if (index === 4) this.changes.select(this.number);
    if (this.grid.dataset.large) this.makeLarge(index < 4 ? index + 1 : 0, true);
  }

  makeLarge(number, keep = false) {
    const same = !keep && this.grid.dataset.large === String(number);
    if (same || !number) delete this.grid.dataset.large; else this.grid.dataset.large = number;
    this.panes.forEach((pane) => pane.large.setAttribute("aria-pressed", String(this.grid.dataset.large === String(pane.number))));
    if (number) {
      this.grid.dataset.tab = number - 1;
      [...this.tabs.children].forEach((tab, place) => tab.setAttribute("aria-pressed", String(place === number - 1)));
      this.panes[number - 1].viewer?.box.focus({ preventScroll: true });
    }
  }

  step(step) {
    const shown = list();
    const now = shown.indexOf(findByName(this.name));
    const next = shown[now < 0 ? 0 : now + step];
    if (next) location.hash = `#/exchange/${encodeURIComponent(next.ref)}`;
    else announce(step > 0 ? "This is the oldest exchange" : "This is the newest exchange");
  }

  close() {
    this.closed = true;
    for (const pane of this.panes) pane.close();
  }
}

/** Show an exchange in `root`; load it again when it ends. */
export function openExchange(root, name) {
  const view = new Exchange(root, name);
  const missing = (error) => fill(root, empty(error.status === 404 ? "This exchange is not here" : "This did not work",
    h("p", {}, error.status === 404 ? "The buffer keeps the newest exchanges within its bytes; older ones are dropped. It may be larger: " : error.message), error.status === 404 && h("code", {}, "server.inspect_bytes"), h("a", { class: "button", href: "#/" }, "To the list")));
  const load = () => view.load().catch(missing);
  let state = findByName(name)?.outcome ?? null;
  const end = subscribe(() => {
    const now = findByName(name)?.outcome ?? null;
    if (now !== state && view.detail?.outcome !== now) load();
    state = now;
  });
  load();
  const pane = (number) => () => view.makeLarge(number);
  return {
    title: "Exchange",
    close() { end(); view.close(); },
    keys: {
      j: () => view.step(1), k: () => view.step(-1), n: () => view.stepChange(1), N: () => view.stepChange(-1),
      "[": () => view.choose(view.attempt - 1), "]": () => view.choose(view.attempt + 1), 1: pane(1), 2: pane(2), 3: pane(3), 4: pane(4),
      r: () => view.detail && openReplay(view.detail), e: () => view.detail && openExport(view.detail),
      Escape: () => { if (view.grid.dataset.large) view.makeLarge(Number(view.grid.dataset.large)); else location.hash = "#/"; },
    },
  };
}
