// One of the four panes of an exchange: a message as it was on the wire, whole or as a timeline of events, with marks.

import { button, copy, fill, h, put, svg } from "./dom.js";
import { bytes, duration, plural, reveal } from "./format.js";
import { arrange, hasPath, Layout, parse, wrap } from "./json.js";
import { parseEvent } from "./sse.js";
import { findNews, fold } from "./stream.js";
import { Rows } from "./rows.js";

const BINS = 160;
const drawParts = (row) => {
  const text = h("span", { class: `text${row.open === undefined ? "" : " foldable"}` }, row.parts.map(([name, part]) => h("span", { class: `t-${name}` }, part)));
  text.style.paddingLeft = `${row.level * 2 + (row.hang ?? 0) * 2}ch`;
  return [text, row.says && row.marks && h("span", { class: "says" }, row.says)];
};
const textRows = (text, columns) => text.split("\n").flatMap((line) => wrap(reveal(line), columns).map((piece, index) => ({ level: 0, parts: [["p", piece]], quiet: index > 0 })));

function parseOr(text) {
  try { return { value: parse(text) }; } catch (error) { return { error }; }
}

const parsed = new WeakMap(); // of a message, its events taken apart
function parseEvents(message) {
  if (!parsed.has(message)) {
    const events = message.events ?? [];
    parsed.set(message, events.map(({ at_ms: at, text }, index) => {
      const { name, data } = parseEvent(text);
      const found = data === null ? {} : parseOr(data);
      return { index, at, gap: index ? at - events[index - 1].at_ms : null, name: name ?? found.value?.type ?? null, data, value: found.value, text: text.trimEnd() };
    }));
  }
  return parsed.get(message);
}

/** The number of the first event that has a path; -1 if none has. */
const findEvent = (message, path) => (message?.form === "events" && path ? parseEvents(message).findIndex(({ value }) => value !== undefined && hasPath(value, path)) : -1);

export class Pane {
  constructor(number, title, follow) {
    Object.assign(this, { number, title, follow, mode: null, viewer: null, selected: null, marks: [] });
    this.tools = h("div", { class: "tabs", role: "group", "aria-label": `View of ${title}` });
    this.line = h("p", { class: "line mono" });
    this.strip = h("div", { class: "strip" });
    this.body = h("div", { class: "pane-body" });
    this.large = button("⤢", () => this.onLarge?.(number), { class: "quiet small large", "aria-label": `Make ${title} large`, "aria-keyshortcuts": String(number), "aria-pressed": "false" });
    const copyButton = button("Copy", () => copy(this.text(), copyButton), { class: "quiet small" });
    this.root = h("section", { class: `pane pane-${number}`, "aria-label": title },
      h("header", {}, h("h2", {}, h("span", { class: "number" }, number), title), h("span", { class: "grow" }), this.tools, copyButton, this.large), this.line, this.strip, this.body);
  }

  /** What the pane shows as one text. */
  text() {
    const { message } = this;
    if (!message) return "";
    if (this.mode === "Headers") return [message.line, ...message.headers.map(([name, value]) => `${name}: ${value}`)].join("\n");
    return message.form === "events" ? (message.events ?? []).map(({ text }) => text).join("\n\n") : message.body ?? "";
  }

  /** Show a message, or null, with marks: [{number, weight, path, ghost, says, event}]. `partner` is the other
   *  side's message: a value that is only there is marked where it came. */
  show(message, marks, partner, absent) {
    Object.assign(this, { message, marks, partner, absent, layout: new Layout(), opened: new Set() });
    const modes = { json: ["Body", "Headers", "Raw"], events: ["Timeline", "Joined", "Headers", "Raw"], text: ["Body", "Headers"], binary: ["Body", "Headers"] };
    this.modes = message ? modes[message.form] ?? ["Body", "Headers"] : [];
    if (message?.form === "json") { this.parsed = parseOr(message.body ?? ""); if (this.parsed.error) this.modes = ["Body", "Headers"]; }
    if (message?.form === "events") this.readEvents();
    if (!this.modes.includes(this.mode)) this.mode = this.modes[0];
    fill(this.line, message ? h("span", { class: "wire" }, reveal(message.line ?? "")) : "", message && h("span", { class: "soft size" }, this.size()));
    this.draw();
  }

  size() {
    const { message } = this;
    if (message.form === "events") return `${plural(message.events?.length ?? 0, "event")}, ${bytes(message.bytes ?? 0)}`;
    if (!message.bytes) return "";
    return message.kept < message.bytes ? `${bytes(message.kept)} kept of ${bytes(message.bytes)}` : bytes(message.bytes);
  }

  readEvents() {
    this.events = parseEvents(this.message).map((event) => ({ ...event, marks: [] }));
    this.homeless = [];
    for (const mark of this.marks) {
      const event = this.events[mark.event] ?? this.events[findEvent(this.message, mark.path)] ?? this.events[Math.min(findEvent(this.partner, mark.ghost), this.events.length - 1)];
      if (event) event.marks.push(mark); else this.homeless.push(mark);
    }
  }

  draw() {
    const { message, mode } = this;
    this.viewer?.close();
    this.viewer = null;
    fill(this.tools, this.modes.map((name) => button(name, () => { this.mode = name; this.draw(); }, { "aria-pressed": String(name === mode) })));
    fill(this.strip);
    fill(this.body);
    if (!message) { put(this.body, h("div", { class: "note" }, typeof this.absent === "string" ? this.absent : this.absent.map((part) => (part instanceof Node ? part.cloneNode(true) : part)))); return; }
    if (mode === "Headers") { this.drawHeaders(); return; }
    if (message.why_not && !message.body && !message.events?.length) { put(this.body, h("div", { class: "note" }, this.explain(message.why_not))); return; }
    if (mode === "Timeline") this.drawTimeline();
    else if (mode === "Joined") this.drawValue(fold(this.events.map(({ value, name }) => [name, value])), []);
    else if (mode === "Body" && message.form === "json" && !this.parsed.error) this.drawValue(this.parsed.value, this.marks);
    else if (this.text()) this.drawText(this.text());
    else put(this.body, h("p", { class: "note" }, message.form === "binary" ? `${bytes(message.bytes)} of bytes that are not text.` : "No body."));
    if (message.form === "json" && this.parsed.error && message.kept >= message.bytes) put(this.strip, h("p", { class: "note small is-loss" }, "This body is not JSON."));
    if (message.why_not) put(this.strip, h("p", { class: "note small" }, message.why_not));
  }

  explain(reason) {
    return [h("span", {}, reason[0].toUpperCase() + reason.slice(1), /[.?!]$/.test(reason) ? "" : "."), /inspect/.test(reason) && h("pre", {}, "server:\n  inspect: bodies")];
  }

  drawHeaders() {
    const { headers } = this.message;
    if (!headers?.length) { put(this.body, h("div", { class: "note" }, this.message.why_not ? this.explain(this.message.why_not) : "No headers.")); return; }
    put(this.body, h("div", { class: "headers", tabindex: "0", role: "region", "aria-label": `Headers of ${this.title}` }, h("dl", {}, headers.map(([name, value]) => h("div", {}, h("dt", {}, reveal(name)), h("dd", {}, reveal(value)))))));
  }

  mount(viewer, homeless = []) {
    this.viewer = viewer;
    if (homeless.length) put(this.strip, h("p", { class: "homeless" }, "elsewhere: ", homeless.map((mark) => button(String(mark.number), () => this.follow(mark.number), { class: `mark is-${mark.weight}`, title: mark.says, "data-mark": mark.number, "aria-label": `change ${mark.number}: ${mark.says}` }))));
    put(this.body, viewer.box);
    viewer.refresh();
  }

  drawValue(value, marks) {
    const arranged = arrange(value, marks);
    this.value = value;
    this.mount(new Rows(this.title, {
      lay: (columns) => this.layout.rows(value, columns, arranged), draw: drawParts, fold: (row) => this.layout.toggle(row), follow: this.follow,
    }), arranged.homeless);
  }

  drawText(text) {
    this.mount(new Rows(this.title, { lay: (columns) => textRows(text, columns), draw: drawParts, fold: () => {}, follow: this.follow }));
  }

  drawTimeline() {
    if (this.events.length > 1) put(this.strip, drawStrip(this.events));
    this.mount(new Rows(this.title, {
      lay: (columns) => this.events.flatMap((event) => this.layEvent(event, columns)), draw: (row) => (row.event ? drawEvent(row.event, this.events[row.event.index - 1]) : drawParts(row)),
      fold: (row) => { if (!row.event) this.layout.toggle(row); else if (!this.opened.delete(row.event)) this.opened.add(row.event); }, follow: this.follow,
    }), this.homeless);
  }

  layEvent(event, columns) {
    const open = this.opened.has(event);
    const head = { level: 0, event, open, kind: "is-event", weightOf: (number) => event.marks.find((mark) => mark.number === number)?.weight };
    if (event.marks.length && !open) Object.assign(head, { marks: event.marks.map(({ number }) => number), weight: event.marks.some(({ weight }) => weight === "loss") ? "loss" : "form" });
    if (!open) return [head];
    const inner = event.value === undefined ? textRows(event.text, columns - 2).map((row) => ({ ...row, level: 1 })) : this.layout.rows(event.value, columns, arrange(event.value, event.marks), 1);
    return [head, ...inner];
  }

  /** Select a change; open what hides it. Returns whether this pane has a place for it. */
  select(number) {
    this.selected = number;
    const mark = this.marks.find((one) => one.number === number);
    if (mark && this.mode !== this.modes[0] && this.modes.length) { this.mode = this.modes[0]; this.draw(); }
    const event = mark && this.mode === "Timeline" && this.events.find(({ marks }) => marks.includes(mark));
    if (event) this.opened.add(event);
    if (mark && this.mode === "Body" && this.value) this.layout.unfold(this.value, mark.path ?? mark.ghost ?? []);
    if (mark) this.viewer?.refresh();
    return this.viewer?.select(number) ?? false;
  }

  close() { this.viewer?.close(); }
}

/** A row of the timeline: when, how long after the one before, what, and how it begins. */
function drawEvent(event, before) {
  return h("span", { class: "text foldable event" }, h("span", { class: "at" }, duration(event.at)), h("span", { class: "gap" }, event.gap === null ? "" : event.gap < 0.05 ? "·" : `+${duration(event.gap)}`),
    event.name && h("span", { class: "t-k" }, reveal(event.name), " "), drawNews(event, before));
}

/** What an event says that the one before did not; all of it if they have nothing in common. */
export function drawNews({ value, data, text }, before) {
  const news = value !== undefined && before?.value !== undefined ? findNews(before.value, value) : null;
  if (!news?.length) return h("span", { class: "t-p" }, reveal((data ?? text).slice(0, 400).replaceAll("\n", " ")));
  return h("span", { class: "t-p" }, news.map(([key, found]) => [h("span", { class: "soft" }, `${reveal(key)} `), h("span", { class: typeof found === "string" ? "t-s" : "t-n" }, reveal(JSON.stringify(found)).slice(0, 300)), "  "]));
}

/** When the events came, as bars: each is a part of the time, its height how many came in it. */
function drawStrip(events) {
  const begin = events[0].at, span = Math.max(1, events.at(-1).at - begin), bins = new Array(BINS).fill(0);
  for (const { at } of events) bins[Math.min(BINS - 1, Math.floor(((at - begin) / span) * BINS))] += 1;
  const most = Math.max(...bins);
  const path = bins.map((number, index) => (number ? `M${index + 0.5} 24V${24 - Math.max(4, (number / most) * 22)}` : "")).join("");
  const slowest = events.reduce((worst, event) => ((event.gap ?? 0) > (worst.gap ?? 0) ? event : worst));
  return h("figure", { class: "spark" }, svg("svg", { viewBox: `0 0 ${BINS} 24`, preserveAspectRatio: "none", "aria-hidden": "true" }, svg("path", { d: path })),
    h("figcaption", {}, `first after ${duration(begin)}, last after ${duration(events.at(-1).at)}, longest pause ${duration(slowest.gap)} before event ${slowest.index + 1}`));
}
