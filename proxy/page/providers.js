// The health of providers and their targets, and the limits that are in use.

import { getJson } from "./api.js";
import { attempt, empty, fill, h } from "./dom.js";
import { bytes, count, duration, plural, reveal, time } from "./format.js";

const EVERY = 2000;
const STATES = { closed: ["is-ok", "healthy"], open: ["is-fault", "open: not asked"], "half-open": ["is-loss", "half open: one request tries it"] };
const GAUGES = { in_flight: "in flight", loop_lag_ms: "event loop lag", calls_in_flight: "calls to providers", calls_waiting: "calls waiting", exchanges: "exchanges kept", dropped: "no longer kept" };

function drawTarget(target) {
  const [color, text] = STATES[target.state] ?? ["", target.state ?? ""];
  return h("tr", {}, h("th", { scope: "row" }, reveal(target.model ?? "any model")),
    h("td", {}, h("span", { class: `dot ${color}` }), " ", h("span", { class: color }, text), target.until ? h("span", { class: "soft" }, ` until ${time(target.until)}`) : ""),
    h("td", { class: "amount" }, duration(target.latency_ms) || "–"));
}

function drawProvider(provider) {
  return h("section", { class: "card", "aria-label": `Provider ${provider.name}` },
    h("header", {}, h("h2", {}, reveal(provider.name)), h("span", { class: "pill" }, provider.engine ? `${provider.engine} engine` : provider.dialect), h("span", { class: "grow" }),
      h("span", { class: "soft" }, `${count(provider.in_flight ?? 0)} in flight`, provider.waiting > 0 && h("span", { class: "is-loss" }, `, ${count(provider.waiting)} waiting`))),
    provider.url && h("p", { class: "soft mono url" }, reveal(provider.url)),
    provider.targets?.length > 0 && h("table", { class: "plain" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Model"), h("th", { scope: "col" }, "Circuit breaker"), h("th", { scope: "col", class: "amount" }, "Latency"))), h("tbody", {}, provider.targets.map(drawTarget))));
}

function drawLimit(limit) {
  const whole = limit.burst ?? limit.limit;
  const used = whole ? Math.min(1, Math.max(0, 1 - limit.remaining / whole)) : 0;
  const bar = h("i", { class: used > 0.9 ? "is-fault" : used > 0.7 ? "is-loss" : "" });
  bar.style.width = `${used * 100}%`;
  return h("tr", {}, h("th", { scope: "row" }, reveal(limit.key ?? limit.provider ?? ""), h("span", { class: "soft" }, limit.key ? " key" : " provider")), h("td", {}, reveal(limit.kind)),
    h("td", {}, h("span", { class: "meter", role: "img", "aria-label": `${Math.round(used * 100)} % used` }, bar)),
    h("td", { class: "amount" }, `${count(limit.remaining ?? 0)} of ${count(whole ?? 0)} left`), h("td", { class: "amount soft" }, limit.reset_s === null || limit.reset_s === undefined ? "" : `resets in ${duration(limit.reset_s * 1000)}`));
}

const showGauge = (name, value) => (/_ms$/.test(name) ? duration(value) : /_bytes$/.test(name) ? bytes(value) : typeof value === "number" ? count(value) : String(value));

/** Show the state of providers in `root`, and ask for it again every two seconds. */
export function openProviders(root) {
  let timer = null, closed = false, last = "";
  fill(root, empty("Loading"));
  async function load() {
    const state = await getJson("state");
    if (closed) return;
    const text = JSON.stringify(state);
    if (text !== last) draw(state);
    last = text;
  }
  function draw({ providers, limits, gauges }) {
    fill(root, h("div", { class: "page" }, h("h1", { class: "unseen" }, "Providers"),
      h("dl", { class: "gauges" }, Object.entries(gauges ?? {}).filter(([, value]) => typeof value === "number").map(([name, value]) => h("div", {}, h("dt", {}, GAUGES[name] ?? name.replace(/_(ms|bytes)$/, "").replaceAll("_", " ")), h("dd", {}, showGauge(name, value))))),
      providers?.length ? h("div", { class: "cards" }, providers.map(drawProvider)) : empty("No provider", h("p", {}, "Add one to the configuration, or set the environment variables of one, and start the proxy again:"), h("pre", {}, "providers:\n  mine:\n    dialect: openai\n    base_url: http://127.0.0.1:8000/v1")),
      h("h2", { class: "heading" }, "Limits in use"),
      limits?.length ? h("div", { class: "card wide-table" }, h("table", { class: "plain limits" }, h("caption", { class: "unseen" }, plural(limits.length, "limit")), h("thead", { class: "unseen" }, h("tr", {}, ["Of", "Limit", "Used", "Left", "Reset"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, limits.map(drawLimit))))
        : h("p", { class: "soft" }, "No limit is in use. Keys can have limits (", h("code", {}, "keys"), "), and providers tell theirs in the headers of their answers.")));
  }
  async function again() {
    if (!closed) await attempt(load, last ? undefined : root).catch(() => {});
    if (!closed) timer = setTimeout(again, EVERY);
  }
  again();
  return { title: "Providers", close() { closed = true; clearTimeout(timer); }, keys: {} };
}
