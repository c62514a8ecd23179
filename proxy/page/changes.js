// The list of changes of an exchange: what was changed, where, why, by which policy, and where the rule comes from.

import { button, fill, h, put } from "./dom.js";
import { formatPath, plural, reveal } from "./format.js";

const SIDES = [["request", "Request", 1, 2], ["reply", "Reply", 3, 4], [null, "Request and reply", 1, 4]];
const UNCHANGED = "No field was changed on the way. Two things are never listed: the provider gets its own name of the model, and a chat stream is asked to count its tokens (stream_options).";
const pathText = (path) => (path?.length ? reveal(formatPath(path)) : null);

/** What changed, in one line: max_completion_tokens → max_tokens. */
export function placeOf({ before, after }) {
  const [from, to] = [pathText(before), pathText(after)];
  if (from && to && from !== to) return `${from} → ${to}`;
  return from ?? to ?? "the whole body";
}

/** The numbered changes that concern one try: its own, and those before any. */
export function numberChanges(changes, attempt) {
  return changes.filter((change) => !change.try || change.try === attempt).map((change, index) => ({ ...change, number: index + 1 }));
}

/** The marks of a pane: 1 and 4 are the client's, 2 and 3 the provider's. A mark is `absent` where its value comes later. */
export function marksFor(changes, pane) {
  const side = pane <= 2 ? "request" : "reply";
  const [own, other] = pane % 2 ? ["before", "after"] : ["after", "before"];
  const has = (path) => path && path.length > 0;
  return changes.filter((change) => change.side === side).map((change) => ({
    number: change.number, weight: change.weight, path: has(change[own]) ? change[own] : null, ghost: has(change[other]) ? change[other] : null,
    absent: own === "before", says: reveal(`${change.action}: ${change.reason}`), event: change.event,
  }));
}

export class Changes {
  constructor(follow) {
    this.follow = follow;
    this.body = h("div", { class: "changes-body" });
    this.sum = h("span", { class: "soft" });
    this.root = h("section", { class: "changes", "aria-label": "Changes" }, h("header", {}, h("h2", {}, "Changes"), this.sum), this.body);
    this.items = new Map();
  }

  show(changes, missing) {
    this.items.clear();
    fill(this.body);
    const losses = changes.filter(({ weight }) => weight === "loss").length;
    fill(this.sum, changes.length ? `${changes.length - losses} form, ${plural(losses, "loss")}` : "");
    if (!changes.length) put(this.body, h("p", { class: "note" }, missing ?? UNCHANGED));
    for (const [side, title, first, second] of SIDES) {
      const found = changes.filter((change) => (change.side ?? null) === side);
      if (!found.length) continue;
      put(this.body, h("h3", {}, title), h("ol", {}, found.map((change) => this.make(change, first, second))));
    }
  }

  make(change, first, second) {
    const { number, weight } = change;
    const to = (pane) => button(`pane ${pane}`, () => this.follow(number, pane), { class: "quiet small", "aria-label": `Show change ${number} in pane ${pane}` });
    const item = h("li", { class: "change" },
      h("button", { type: "button", class: "change-main", "aria-pressed": "false", onclick: () => this.follow(number) },
        h("span", { class: `mark is-${weight}` }, number), h("span", { class: "what" },
          h("span", { class: "action" }, change.action, weight === "loss" && h("span", { class: "is-loss" }, " · loss"), weight !== "loss" && h("span", { class: "unseen" }, " form")), " ", h("code", {}, placeOf(change)), h("span", { class: "reason" }, reveal(change.reason ?? "")))),
      h("dl", { class: "why" },
        change.policy && [h("dt", {}, "policy"), h("dd", {}, h("code", {}, reveal(policyText(change.policy))))],
        change.source && [h("dt", {}, "rule"), h("dd", {}, linkSource(change.source))]),
      h("p", { class: "goto" }, to(first), to(second)));
    this.items.set(number, item);
    return item;
  }

  select(number) {
    for (const [own, item] of this.items) {
      item.classList.toggle("is-selected", own === number);
      item.querySelector(".change-main").setAttribute("aria-pressed", String(own === number));
    }
    this.items.get(number)?.scrollIntoView({ block: "nearest" });
  }
}

const policyText = (policy) => (typeof policy === "string" ? policy : Object.entries(policy).map(([key, value]) => `${key}: ${value}`).join(", "));

/** A source with its addresses as links: only http and https. */
function linkSource(source) {
  return reveal(source).split(/(https?:\/\/[^\s<>"')\]]+)/).map((part, index) => (index % 2 ? h("a", { href: part, rel: "noreferrer noopener", target: "_blank" }, part) : part));
}
