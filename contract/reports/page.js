"use strict";
(() => {
  const VERDICTS = ["pass", "warn", "fail", "inconclusive", "skip", "error"];
  const MARKS = { pass: "✓", warn: "!", fail: "✗", inconclusive: "?", skip: "–", error: "⚡" };
  const reports = JSON.parse(document.getElementById("reports").textContent);
  const shown = new Set(VERDICTS);

  // Everything from a report goes in as text, never as HTML.
  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }
  const areaOf = (id) => id.split("/").slice(0, 2).join("/");

  const rows = new Map();
  reports.forEach((report, place) => {
    for (const found of report.cases) {
      if (!rows.has(found.id)) rows.set(found.id, { id: found.id, title: found.title, level: found.level, source: found.source, cells: [] });
      rows.get(found.id).cells[place] = found;
    }
  });
  const sorted = [...rows.values()].sort((one, other) => (one.id < other.id ? -1 : 1));

  function bar(counts) {
    const total = VERDICTS.reduce((sum, verdict) => sum + (verdict === "skip" ? 0 : counts[verdict] || 0), 0);
    const told = VERDICTS.filter((verdict) => verdict !== "skip" && counts[verdict]);
    const made = element("span", { class: "bar", role: "img", "aria-label": told.map((v) => `${counts[v]} ${v}`).join(", ") || "nothing asked" });
    for (const verdict of told) made.append(element("i", { class: verdict, style: `flex:${counts[verdict]}`, title: `${counts[verdict]} ${verdict}` }));
    return [made, element("span", {}, `${(counts.pass || 0) + (counts.warn || 0)}/${total}`)];
  }

  function card(report) {
    const target = report.target;
    const areas = new Map();
    for (const found of report.cases) {
      const counts = areas.get(areaOf(found.id)) || {};
      counts[found.verdict] = (counts[found.verdict] || 0) + 1;
      areas.set(areaOf(found.id), counts);
    }
    const about = [`${target.dialect} (${target.profile})`, `model ${target.model}`, target.upstream && `in front of a ${target.upstream} fake`, report.started].filter(Boolean).join(" · ");
    const lines = [["all", report.counts], ...areas].filter(([, counts]) => VERDICTS.some((v) => v !== "skip" && counts[v]));
    return element("article", { class: "target" }, element("h2", {}, target.name), element("p", {}, about),
      ...lines.map(([name, counts]) => element("div", { class: "area" }, element("span", {}, name), ...bar(counts))));
  }

  function cell(found, report) {
    if (!found) return element("td", { class: "cell" }, element("span", { class: "skip" }, "–"));
    const label = found.expected ? `${found.verdict} (known)` : found.verdict;
    const button = element("button", { class: `verdict ${found.verdict}`, type: "button" }, element("span", { "aria-hidden": "true" }, MARKS[found.verdict]), label);
    button.addEventListener("click", () => open(found, report));
    return element("td", { class: "cell" }, button);
  }

  function draw() {
    const wanted = document.getElementById("search").value.toLowerCase();
    const body = document.querySelector("#matrix tbody");
    const fitting = sorted.filter((row) => `${row.id} ${row.title} ${row.source}`.toLowerCase().includes(wanted)
      && row.cells.some((found) => found && shown.has(found.verdict)));
    const made = [];
    let area = "";
    for (const row of fitting) {
      if (areaOf(row.id) !== area) {
        area = areaOf(row.id);
        made.push(element("tr", { class: "group" }, element("th", { colspan: String(reports.length + 1), scope: "rowgroup" }, area)));
      }
      const name = element("td", { class: "case" }, element("code", {}, row.id), " ", element("span", { class: "level" }, row.level), element("small", {}, row.title));
      made.push(element("tr", {}, name, ...reports.map((report, place) => cell(row.cells[place], report))));
    }
    body.replaceChildren(...made);
    document.getElementById("nothing").hidden = fitting.length > 0;
  }

  const pretty = (text) => { try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; } };
  const headers = (fields) => Object.entries(fields).map(([name, value]) => `${name}: ${value}`).join("\n");

  function wire(step, number, count) {
    const parts = [element("h3", {}, count > 1 ? `Step ${number + 1}` : "Wire log")];
    const checks = step.checks.map((check) => element("li", {},
      element("span", { class: { held: "pass", broken: check.level === "MUST" ? "fail" : "warn", unreached: "skip" }[check.state] }, `${check.name}: ${check.state}`),
      (check.problems || []).length ? `: ${check.problems.join("; ")}` : ""));
    parts.push(element("ul", {}, ...checks));
    if (!step.exchange) return parts;
    const { request, answer } = step.exchange;
    parts.push(element("pre", {}, `${request.method} ${request.url}\n${headers(request.headers)}\n\n${pretty(request.body)}`));
    const times = answer.chunks.length ? `, ${answer.chunks.length} chunks from ${answer.chunks[0]} s to ${answer.chunks[answer.chunks.length - 1]} s` : "";
    const end = answer.broken ? `\n\n[${answer.broken}]` : "";
    parts.push(element("pre", {}, `${answer.status}${times}\n${headers(answer.headers)}\n\n${pretty(answer.body)}${end}`));
    parts.push(element("h3", {}, "Reproduce"), element("pre", {}, step.curl));
    return parts;
  }

  function open(found, report) {
    const dialog = document.getElementById("detail");
    const close = element("button", { class: "close", type: "button" }, "Close");
    close.addEventListener("click", () => dialog.close());
    const facts = [["target", report.target.name], ["verdict", found.verdict], ["level", found.level], ["rule", found.title], ["source", found.source], ["found", found.reason], ["known gap", found.expected]];
    dialog.replaceChildren(close, element("h2", { id: "detail-title" }, found.id),
      element("dl", {}, ...facts.filter(([, value]) => value).flatMap(([name, value]) => [element("dt", {}, name), element("dd", { class: name === "verdict" ? found.verdict : "" }, value)])),
      ...found.steps.flatMap((step, number) => wire(step, number, found.steps.length)));
    dialog.showModal();
    dialog.scrollTop = 0;
    location.hash = `${reports.indexOf(report)}:${found.id}`;
  }

  function filters() {
    return VERDICTS.filter((verdict) => reports.some((report) => report.counts[verdict])).map((verdict) => {
      const number = reports.reduce((sum, report) => sum + report.counts[verdict], 0);
      const button = element("button", { type: "button", class: verdict, "aria-pressed": "true" }, `${number} ${verdict}`);
      button.addEventListener("click", () => {
        if (shown.has(verdict)) shown.delete(verdict); else shown.add(verdict);
        button.setAttribute("aria-pressed", String(shown.has(verdict)));
        draw();
      });
      return button;
    });
  }

  document.getElementById("intro").textContent = `${sorted.length} cases, ${reports.length} ${reports.length === 1 ? "target" : "targets"}, ${reports[0] ? reports[0].suite : ""}`;
  document.getElementById("targets").append(...reports.map(card));
  document.getElementById("verdicts").append(...filters());
  document.querySelector("#matrix thead").append(element("tr", {}, element("th", { scope: "col" }, "case"), ...reports.map((report) => element("th", { scope: "col" }, report.target.name))));
  document.getElementById("search").addEventListener("input", draw);
  document.getElementById("detail").addEventListener("click", (event) => { if (event.target.id === "detail") event.target.close(); });
  draw();
  const [place, id] = decodeURIComponent(location.hash.slice(1)).split(":");
  const linked = rows.get(id);
  if (linked && linked.cells[Number(place)]) open(linked.cells[Number(place)], reports[Number(place)]);
})();
