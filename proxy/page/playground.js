// Speaks each protocol that the proxy serves: a sample to change, sent as a client would, the answer as it comes.

import { ApiError, getAbout, post } from "./api.js";
import { announce, attempt, button, empty, field, fill, h, put, select } from "./dom.js";
import { bytes, duration, reveal } from "./format.js";
import { drawNews } from "./pane.js";
import { readEvents } from "./sse.js";
import { textOf } from "./stream.js";

const kept = { route: null, requests: new Map() }; // what was written, for the way back
const SHOWN = 200_000;

const routeOf = ({ dialect, protocol }) => `${dialect} ${protocol}`;
const pretty = (value) => JSON.stringify(value, null, 2);

/** The headers of lines `name: value`. Throws an Error for a line that is none. */
function parseHeaders(text) {
  return Object.fromEntries(text.split("\n").filter((line) => line.trim()).map((line) => {
    const [, name, value] = /^\s*([^\s:]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
    if (!name) throw new Error(`This header is not name: value: ${line}`);
    return [name, value];
  }));
}

class Playground {
  constructor(root, about) {
    this.about = about;
    this.served = about.serves.find((one) => routeOf(one) === kept.route) ?? about.serves[0];
    const onkeydown = (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); this.send(); } };
    const typed = { class: "code", spellcheck: "false", autocomplete: "off", oninput: () => this.check(), onkeydown };
    this.path = h("input", typed);
    this.headers = h("textarea", { ...typed, class: "code short", rows: 2, placeholder: "name: value" });
    this.body = h("textarea", { ...typed, "aria-label": "Body of the request", rows: 18 });
    this.problem = h("p", { class: "problem", role: "status" });
    this.model = select("Model", [], "", (value) => this.edit((body) => { this.renamePath(body.model, value); body.model = value; }));
    this.stream = h("input", { type: "checkbox", id: "stream", onchange: () => this.edit((body) => { body.stream = this.stream.checked; }) });
    this.go = button("Send", () => (this.sending ? this.sending.abort() : this.send()), { class: "main", "aria-keyshortcuts": "Control+Enter" });
    this.answer = h("section", { class: "answer", "aria-label": "Answer" });
    const route = select("Protocol", about.serves.map(routeOf), routeOf(this.served), (value) => this.choose(value));
    this.view = h("div", { class: "playground" }, h("h1", { class: "unseen" }, "Playground"),
      h("section", { class: "ask", "aria-label": "Request" },
        h("div", { class: "form" }, field("Protocol", route), field("Model", this.model)), field("Path", this.path), field("Headers", this.headers), this.body, this.problem,
        h("div", { class: "send" }, h("label", { class: "check" }, this.stream, "stream"), h("span", { class: "grow" }), h("span", { class: "soft keys-hint" }, h("kbd", {}, "Ctrl"), " ", h("kbd", {}, "Enter")), this.go)),
      this.answer);
    fill(root, this.view);
    this.choose(routeOf(this.served));
    fill(this.answer, empty("No answer yet", h("p", {}, "Send the request. It goes through the proxy as a client's would, and appears in the list of exchanges.")));
  }

  choose(route) {
    kept.route = route;
    this.served = this.about.serves.find((one) => routeOf(one) === route);
    const models = this.about.models.filter(({ protocols }) => !protocols?.length || protocols.includes(this.served.protocol)).map(({ name }) => name);
    const sample = structuredClone(this.served.sample ?? {});
    if (models.length && !models.includes(sample.model)) sample.model = models[0];
    const needed = { ...(this.about.needs_key && { Authorization: "Bearer " }), ...this.served.headers };
    const headers = Object.entries(needed).map((header) => header.join(": ")).join("\n");
    const written = kept.requests.get(route) ?? { path: this.served.path, headers, body: pretty(sample) };
    for (const [name, text] of Object.entries(written)) this[name].value = text;
    fill(this.model, models.map((name) => h("option", { value: name }, reveal(name))));
    this.model.disabled = !models.length;
    this.check();
  }

  /** Read what was written, {path, headers, body}; tell what is wrong with it. Returns undefined if something is. */
  check() {
    const { path, headers, body } = this;
    kept.requests.set(routeOf(this.served), { path: path.value, headers: headers.value, body: body.value });
    fill(this.problem);
    const read = (control, parse) => {
      try {
        const found = parse(control.value);
        control.removeAttribute("aria-invalid");
        return found;
      } catch (error) {
        fill(this.problem, error.message);
        control.setAttribute("aria-invalid", "true");
        return undefined;
      }
    };
    const found = { path: path.value.trim(), headers: read(headers, parseHeaders), body: read(body, JSON.parse) };
    this.showChoices(found.body);
    return found.headers === undefined || found.body === undefined ? undefined : found;
  }

  /** Let the controls for the model and for streams say what the body says. */
  showChoices(body) {
    if (body && typeof body === "object") {
      this.stream.checked = body.stream === true;
      if ([...this.model.options].some(({ value }) => value === body.model)) this.model.value = body.model;
      else this.model.selectedIndex = -1;
    }
  }

  /** Some addresses have the model's name. */
  renamePath(before, after) {
    this.path.value = this.path.value.replace(`/${encodeURIComponent(before)}/`, `/${encodeURIComponent(after)}/`);
  }

  edit(change) {
    let body;
    try { body = JSON.parse(this.body.value); } catch { return; }
    if (!body || typeof body !== "object") return;
    change(body);
    this.body.value = pretty(body);
    this.check();
  }

  async send() {
    const request = this.check();
    if (request === undefined) { this.view.querySelector("[aria-invalid]").focus(); return; }
    this.sending = new AbortController();
    fill(this.go, "Stop");
    const begin = performance.now();
    fill(this.answer, h("p", { class: "note" }, "Waiting"));
    await attempt(async () => {
      const response = await post("send", request, { raw: true, signal: this.sending.signal });
      const view = this.show(response, begin);
      if (/event-stream/.test(response.headers.get("Content-Type") ?? "")) await readEvents(response, view.take);
      else view.whole(await response.text());
      view.end();
    }, this.answer);
    this.sending = null;
    fill(this.go, "Send");
  }

  /** Draw the head of an answer; return what takes the rest. */
  show(response, begin) {
    const id = response.headers.get("x-request-id"), changes = response.headers.get("x-dragoman-changes");
    const clock = h("span", {}, duration(performance.now() - begin));
    const text = h("pre", { class: "said", tabindex: "0", role: "region", "aria-label": "Text" }), raw = h("pre", { class: "raw mono", tabindex: "0", role: "region", "aria-label": "Events" });
    fill(this.answer,
      h("div", { class: "headline" }, h("strong", { class: response.ok ? "is-ok" : "is-fault" }, response.status), clock, h("span", { class: "grow" }), id && h("a", { class: "button", href: `#/exchange/${encodeURIComponent(id)}` }, "See the exchange")),
      changes && h("p", { class: "notice" }, h("span", { class: "soft" }, "x-dragoman-changes: "), h("code", {}, reveal(changes))), text, raw);
    text.hidden = true;
    let first = null, last = null, count = 0, size = 0;
    return {
      take: (event) => {
        first ??= performance.now() - begin;
        count += 1;
        size += event.text.length;
        let value;
        try { value = JSON.parse(event.data); } catch { /* such as [DONE] */ }
        const said = textOf(value);
        if (said) { text.hidden = false; text.append(said); }
        if (size < SHOWN) put(raw, h("div", { class: "event-line" }, h("span", { class: "soft" }, `${duration(performance.now() - begin).padStart(8)}  `), event.name && h("span", { class: "t-k" }, reveal(event.name), " "), drawNews({ ...event, value }, last)));
        last = { value };
        fill(clock, `${duration(first)} to the first of ${count} events`);
      },
      whole: (body) => {
        let shown = body;
        try { shown = pretty(JSON.parse(body)); } catch { /* shown as it is */ }
        put(raw, reveal(shown.slice(0, SHOWN)));
        size = body.length;
      },
      end: () => {
        const took = duration(performance.now() - begin);
        fill(clock, first === null ? `${took}, ${bytes(size)}` : `${duration(first)} to the first of ${count} events, ${took} in all`);
        announce(`Answer with status ${response.status} after ${took}`);
      },
    };
  }
}

/** Show the playground in `root`. */
export function openPlayground(root) {
  let view = null;
  fill(root, empty("Loading"));
  attempt(async () => {
    const about = await getAbout();
    if (!about.serves?.length) throw new ApiError(0, "The proxy serves no protocol: configure a model.");
    view = new Playground(root, about);
  }, root);
  return { title: "Playground", close() { view?.sending?.abort(); }, keys: { i: () => view?.body.focus() } };
}
