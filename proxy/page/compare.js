// An exchange and its replay, side by side: facts, receipts, what the provider got, and what the client got.

import { getJson } from "./api.js";
import { placeOf } from "./changes.js";
import { attempt, empty, fill, h } from "./dom.js";
import { compare, layDifference } from "./diff.js";
import { count, duration, outcomeText, plural, reveal } from "./format.js";
import { Layout, parse } from "./json.js";
import { Rows } from "./rows.js";
import { parseEvent } from "./sse.js";
import { fold } from "./stream.js";

const FACTS = [
  ["model", (one) => one.model], ["target", (one) => one.target], ["status", (one) => one.status], ["outcome", outcomeText], ["tries", (one) => one.attempts],
  ["first token", (one) => duration(one.first_token_ms)], ["duration", (one) => duration(one.duration_ms)], ["tokens in", (one) => one.tokens_in === null ? "" : count(one.tokens_in)], ["tokens out", (one) => one.tokens_out === null ? "" : count(one.tokens_out)],
  ["changes of form", (one) => ofTry(one).filter(({ weight }) => weight === "form").length], ["losses", (one) => ofTry(one).filter(({ weight }) => weight === "loss").length],
];

/** What a message says, as one value: JSON, joined events, or the text. */
function valueOf(message) {
  if (!message) return undefined;
  if (message.form === "events") return fold((message.events ?? []).map(({ text }) => { const { name, data } = parseEvent(text); try { const value = parse(data); return [name ?? value?.type ?? null, value]; } catch { return [name, null]; } }));
  try { return parse(message.body ?? "null"); } catch { return message.body; }
}

const lastTry = (detail) => detail.tries.at(-1);
const ofTry = (detail) => detail.changes.filter((change) => !change.try || change.try === (lastTry(detail)?.try ?? Math.max(1, detail.tries.length)));

function drawFacts(one, other) {
  return h("table", { class: "facts-table" }, h("caption", { class: "unseen" }, "Facts of both exchanges"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "unseen" }, "Fact")), [[one, "Original"], [other, "Replay"]].map(([{ ref }, title]) => h("th", { scope: "col" }, h("a", { href: `#/exchange/${encodeURIComponent(ref)}` }, title))))),
    h("tbody", {}, FACTS.map(([name, read]) => {
      const [left, right] = [one, other].map((detail) => String(read(detail) ?? ""));
      return (left || right) && h("tr", { class: left === right ? "" : "differs" }, h("th", { scope: "row" }, name), h("td", {}, reveal(left) || "–"), h("td", {}, reveal(right) || "–"));
    })));
}

function drawReceipts(one, other) {
  const say = (change) => JSON.stringify([change.side, change.action, placeOf(change), change.reason, change.weight]);
  const [left, right] = [ofTry(one), ofTry(other)].map((list) => new Map(list.map((change) => [say(change), change])));
  const rows = [...[...left].map(([key, change]) => [right.has(key) ? " " : "-", change]), ...[...right].filter(([key]) => !left.has(key)).map(([, change]) => ["+", change])];
  rows.sort(([one_], [other_]) => (one_ === " ") - (other_ === " "));
  if (!rows.length) return h("p", { class: "note" }, "Neither has a change.");
  return h("ul", { class: "receipts" }, rows.map(([sign, change]) => h("li", { class: { "-": "is-gone", "+": "is-new" }[sign] ?? "" },
    h("span", { class: "sign" }, sign, h("span", { class: "unseen" }, { "-": "only in the original", "+": "only in the replay", " ": "in both" }[sign])),
    h("span", { class: `pill is-${change.weight}` }, change.weight), h("span", {}, change.side, " ", change.action, " ", h("code", {}, placeOf(change)), " ", h("span", { class: "soft" }, reveal(change.reason))))));
}

function drawDifference(title, one, other, viewers) {
  const section = h("section", { class: "pane", "aria-label": title }, h("header", {}, h("h2", {}, title)));
  if (one === undefined && other === undefined) section.append(h("p", { class: "note" }, "Neither is here."));
  else {
    const lines = compare(one, other), layout = new Layout(), opened = new Set();
    const changed = lines.filter(({ sign }) => sign !== " ").length;
    section.querySelector("header").append(h("span", { class: "soft" }, changed ? plural(changed, "difference") : "equal"));
    const viewer = new Rows(title, {
      lay: (columns) => layDifference(lines, columns, layout, opened), follow: null,
      fold: (row) => { if (row.kind === "more") layout.toggle(row.kept); else if (!opened.delete(row.line)) opened.add(row.line); },
      draw: (row) => { const text = h("span", { class: `text${row.open === undefined ? "" : " foldable"}` }, row.parts.map(([name, part]) => h("span", { class: `t-${name}` }, part))); text.style.paddingLeft = `${(row.level + (row.hang ?? 0)) * 2}ch`; return text; },
    });
    viewers.push(viewer);
    section.append(h("div", { class: "pane-body" }, viewer.box));
  }
  return section;
}

/** Show two exchanges in `root`: the original and its replay. */
export function openCompare(root, original, replay) {
  const viewers = [];
  let closed = false;
  async function load() {
    const [one, other] = await Promise.all([original, replay].map((id) => getJson(`exchanges/${encodeURIComponent(id)}`)));
    if (closed) return;
    fill(root, h("article", { class: "compare" },
      h("div", { class: "headline" }, h("a", { class: "button quiet back", href: `#/exchange/${encodeURIComponent(original)}`, "aria-label": "Back to the exchange" }, "←"), h("h1", {}, "Replay and original")),
      h("div", { class: "compare-top" }, drawFacts(one, other), h("section", { class: "pane", "aria-label": "Receipts" }, h("header", {}, h("h2", {}, "Receipts")), drawReceipts(one, other))),
      h("div", { class: "compare-bodies" }, drawDifference("Provider got", valueOf(lastTry(one)?.request), valueOf(lastTry(other)?.request), viewers), drawDifference("Client got", valueOf(one.client?.reply), valueOf(other.client?.reply), viewers))));
  }
  fill(root, empty("Loading"));
  attempt(load, root);
  return { title: "Replay", close() { closed = true; viewers.forEach((viewer) => viewer.close()); }, keys: { Escape: () => { location.hash = `#/exchange/${encodeURIComponent(original)}`; } } };
}
