// The running configuration: the file as it was read, secrets masked, and the values in effect with their lines.

import { getJson } from "./api.js";
import { attempt, empty, fill, h } from "./dom.js";
import { count, reveal } from "./format.js";

const isBox = (value) => value !== null && typeof value === "object";

/** All values below a path: [[path, value], ...], objects and arrays taken apart. */
function leaves(value, path = "") {
  if (!isBox(value) || !Object.keys(value).length) return [[path, value]];
  return Object.entries(value).flatMap(([key, part]) => leaves(part, Array.isArray(value) ? `${path}[${key}]` : path ? `${path}.${key}` : key));
}

/** The line of a path: its own, or that of the value it is in, if that is written in one place. Null for a default. */
function lineOf(places, path) {
  for (let at = path; at; at = at.replace(/(\.[^.[\]]+|\[\d+\]|^[^.[\]]+)$/, "")) {
    if (places[at] === undefined) continue;
    return at === path || !Object.keys(places).some((other) => other.startsWith(`${at}.`) || other.startsWith(`${at}[`)) ? places[at] : null;
  }
  return null;
}

function draw(root, { file, lines, values, places }) {
  const rows = (lines ?? []).map((line, index) => h("li", { id: `line-${index + 1}` }, h("span", { class: "at", "aria-hidden": "true" }, index + 1), h("code", {}, reveal(line) || " ")));
  const search = h("input", { type: "search", placeholder: "Find a setting", "aria-label": "Find a setting", class: "search", oninput: () => filter() });
  const written = h("button", { type: "button", class: "small", "aria-pressed": String(rows.length > 0), hidden: !rows.length, title: "Leaves out defaults", onclick: () => { written.setAttribute("aria-pressed", String(written.getAttribute("aria-pressed") !== "true")); filter(); } }, "In the file");
  const tally = h("span", { class: "soft", role: "status" });
  const settings = leaves(values ?? {}).map(([path, value]) => {
    const line = lineOf(places ?? {}, path);
    const show = () => showLine(line);
    const text = isBox(value) ? (Array.isArray(value) ? "[]" : "{}") : JSON.stringify(value);
    const where = line ? h("button", { type: "button", class: "quiet small", onclick: show, "aria-label": `${path}: line ${line}` }, `line ${line}`) : h("span", { class: "soft" }, rows.length ? "default" : "");
    return { path, line, row: h("tr", {}, h("th", { scope: "row" }, reveal(path)), h("td", { class: "mono" }, reveal(text)), h("td", {}, where)) };
  });
  function showLine(number) {
    for (const row of rows) row.classList.toggle("is-selected", row.id === `line-${number}`);
    rows[number - 1]?.scrollIntoView({ block: "center" });
  }
  function filter() {
    const wanted = search.value.toLowerCase();
    let shown = 0;
    const all = written.getAttribute("aria-pressed") !== "true";
    for (const { line, row } of settings) { row.hidden = !(all || line) || !row.textContent.toLowerCase().includes(wanted); shown += !row.hidden; }
    fill(tally, `${count(shown)} of ${count(settings.length)}`);
  }
  fill(root, h("div", { class: "configuration" }, h("h1", { class: "unseen" }, "Configuration"),
    h("section", { class: "pane", "aria-label": "File" }, h("header", {}, h("h2", {}, "File"), h("code", { class: "soft" }, reveal(file ?? "none"))),
      rows.length ? h("ol", { class: "source", tabindex: "0", "aria-label": `Lines of ${file}` }, rows) : empty("No file", h("p", {}, "The values come from the command that started dragoman, from the environment and from defaults. ", h("code", {}, "dragoman init"), " writes a file."))),
    h("section", { class: "pane", "aria-label": "Values in effect" }, h("header", {}, h("h2", {}, "Values in effect"), h("span", { class: "grow" }), tally, written, search),
      h("div", { class: "values", tabindex: "0", role: "region", "aria-label": "Settings" }, h("table", { class: "plain" }, h("thead", { class: "unseen" }, h("tr", {}, ["Setting", "Value", "From"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, settings.map(({ row }) => row)))))));
  filter();
  return { search };
}

/** Show the running configuration in `root`. */
export function openConfiguration(root) {
  let parts = null;
  fill(root, empty("Loading"));
  attempt(async () => { parts = draw(root, await getJson("configuration")); }, root);
  return { title: "Configuration", close() {}, keys: { "/": () => parts?.search.focus() } };
}
