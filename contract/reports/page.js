"use strict";
(() => {
  const VERDICTS = ["pass", "warn", "fail", "inconclusive", "skip", "error"];
  const MARKS = { pass: "✓", warn: "!", fail: "✗", inconclusive: "?", skip: "–", error: "⚡" };
  const ISSUE = /([\w.-]+\/[\w.-]+)#(\d+)/g;
  const by = (id) => document.getElementById(id);
  const { rules, reports } = JSON.parse(by("reports").textContent);
  for (const report of reports) report.cases = report.cases.map((found) => ({ reason: "", cause: "", steps: [], ...rules[found.rule], ...found }));
  const shown = new Set(VERDICTS);

  // Everything from a report goes in as text, never as HTML.
  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }
  function button(label, act, attributes = {}) {
    const made = element("button", { type: "button", ...attributes }, ...[label].flat());
    made.addEventListener("click", act);
    return made;
  }
  const areaOf = (id) => id.split("/").slice(0, 2).join("/");

  const rows = new Map();
  reports.forEach((report, column) => {
    for (const found of report.cases) {
      if (!rows.has(found.id)) rows.set(found.id, { ...found, cells: [] });
      rows.get(found.id).cells[column] = found;
    }
  });
  const sorted = [...rows.values()].sort((one, other) => (one.id < other.id ? -1 : 1));

  // The sums: targets x verdicts.

  const MEANINGS = {
    pass: "every check held", warn: "only recommendations are broken", fail: "a requirement is broken",
    inconclusive: "the model did not do its part", skip: "not run, or not served", error: "no complete reply",
  };

  function drawSums() {
    by("sums").tHead.append(element("tr", {}, element("th", { scope: "col" }, "target"),
      ...VERDICTS.map((verdict) => element("th", { scope: "col", class: verdict, "aria-label": verdict }, MARKS[verdict], element("span", {}, ` ${verdict}`)))));
    by("sums").tBodies[0].append(...reports.map((report) => element("tr", {},
      element("th", { scope: "row" }, report.target.name),
      ...VERDICTS.map((verdict) => element("td", { class: report.counts[verdict] ? verdict : "none" }, String(report.counts[verdict]))))));
    by("legend").append(...VERDICTS.map((verdict) => element("div", {},
      element("dt", { class: verdict }, `${MARKS[verdict]} ${verdict}`), " ", element("dd", {}, MEANINGS[verdict]))));
    by("advice").append(...reports.filter(({ advice }) => advice).map(({ target, advice }) => element("p", {}, `${target.name}: ${advice}.`)));
  }

  // The causes: how many cases of each target have the same one.

  const CAUSED = ["error", "fail", "warn"];

  function drawCauses() {
    const groups = new Map();
    reports.forEach((report, column) => {
      for (const found of report.cases.filter(({ verdict }) => CAUSED.includes(verdict))) {
        const key = `${CAUSED.indexOf(found.verdict)}${found.cause || found.reason.split("; ")[0]}`;
        if (!groups.has(key)) groups.set(key, reports.map(() => 0));
        groups.get(key)[column] += 1;
      }
    });
    const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
    const largest = [...groups].sort(([key, one], [other, two]) => key[0] - other[0] || sum(two) - sum(one));
    by("by-cause").hidden = !largest.length;
    by("causes").tHead.append(drawHeading("cause"));
    by("causes").tBodies[0].append(...largest.map(([key, numbers]) => {
      const verdict = CAUSED[key[0]], cause = key.slice(1);
      const look = () => { by("search").value = cause; draw(); by("matrix").scrollIntoView(); };
      return element("tr", {}, element("th", { scope: "row" }, button(cause, look)),
        ...numbers.map((number) => element("td", { class: number ? verdict : "none" }, number ? `${number} ${verdict}` : "–")));
    }));
  }

  // The chart: areas x targets.

  function countByArea(report) {
    const areas = new Map([["", report.counts]]);
    for (const found of report.cases) {
      const counts = areas.get(areaOf(found.id)) || {};
      counts[found.verdict] = (counts[found.verdict] || 0) + 1;
      areas.set(areaOf(found.id), counts);
    }
    return areas;
  }

  function drawBar(counts = {}) {
    const present = VERDICTS.filter((verdict) => verdict !== "skip" && counts[verdict]);
    if (!present.length) return element("td", { class: "skip" }, "–");
    const label = present.map((verdict) => `${counts[verdict]} ${verdict}`).join(", ");
    const made = element("span", { class: "bar", role: "img", "aria-label": label, title: label });
    for (const verdict of present) made.append(element("i", { class: verdict, style: `flex:${counts[verdict]}` }));
    const total = present.reduce((sum, verdict) => sum + counts[verdict], 0);
    return element("td", {}, made, `${counts.pass || 0}/${total}`, counts.warn ? element("span", { class: "warn" }, ` +${counts.warn} !`) : null);
  }

  function drawChart() {
    const counts = reports.map(countByArea);
    const ran = (row) => row.cells.some((found) => found && found.verdict !== "skip");
    const names = ["", ...new Set(sorted.filter(ran).map((row) => areaOf(row.id)))];
    const look = (name) => () => { by("search").value = name && `${name}/`; draw(); by("matrix").scrollIntoView(); };
    return names.map((name) => element("tr", {}, element("th", { scope: "row" }, button(name || "all", look(name))),
      ...counts.map((areas) => drawBar(areas.get(name)))));
  }

  function drawHeading(first) {
    const column = ({ target, started }) => {
      const about = [`${target.dialect} (${target.profile})`, `model ${target.model}`, target.upstream && `in front of a fake provider: ${target.upstream}`, started];
      return element("th", { scope: "col", title: about.filter(Boolean).join("\n") }, target.name);
    };
    return element("tr", {}, element("th", { scope: "col" }, first), ...reports.map(column));
  }

  // The matrix: cases x targets.

  function drawCell(found, report) {
    if (!found) return element("td", { class: "cell skip" }, "");
    const label = found.expected ? `${found.verdict} (known)` : found.verdict;
    const mark = element("span", { "aria-hidden": "true" }, MARKS[found.verdict]);
    const named = { class: `verdict ${found.verdict}`, "aria-label": `${label}: ${found.id}, ${report.target.name}`, title: found.reason || label };
    return element("td", { class: "cell" }, button(reports.length > 3 ? [mark] : [mark, label], () => openDetail(found, report), named));
  }

  function matches(row, wanted) {
    const verdicts = row.cells.filter(Boolean).map((found) => found.verdict).filter((verdict) => shown.has(verdict));
    const differs = new Set(verdicts.filter((verdict) => verdict !== "skip")).size > 1;
    const causes = row.cells.filter(Boolean).map((found) => found.cause || found.reason).join(" ");
    return verdicts.length && (differs || by("differences").getAttribute("aria-pressed") === "false")
      && `${row.id} ${row.title} ${row.source} ${row.level} ${causes}`.toLowerCase().includes(wanted);
  }

  function draw() {
    const wanted = by("search").value.trim().toLowerCase();
    const matching = sorted.filter((row) => matches(row, wanted));
    const made = [];
    let area = "";
    for (const row of matching) {
      if (areaOf(row.id) !== area) {
        area = areaOf(row.id);
        made.push(element("tr", { class: "group" }, element("th", { colspan: String(reports.length + 1), scope: "rowgroup" }, area)));
      }
      const name = element("td", { class: "case" }, element("code", {}, row.id), " ", element("span", { class: "level" }, row.level), element("small", {}, row.title));
      made.push(element("tr", {}, name, ...reports.map((report, column) => drawCell(row.cells[column], report))));
    }
    document.querySelector("#matrix tbody").replaceChildren(...made);
    by("count").textContent = matching.length ? `${matching.length} of ${sorted.length} cases` : "No case matches the filter.";
  }

  // The wire log of one cell.

  const pretty = (text) => { try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; } };
  const formatHeaders = (fields) => Object.entries(fields).map(([name, value]) => `${name}: ${value}`).join("\n");

  function linkIssues(text) {
    const parts = [];
    let end = 0;
    for (const match of text.matchAll(ISSUE)) {
      const link = element("a", { href: `https://github.com/${match[1]}/issues/${match[2]}`, rel: "noreferrer" }, match[0]);
      parts.push(text.slice(end, match.index), link);
      end = match.index + match[0].length;
    }
    return [...parts, text.slice(end)];
  }

  function listChecks(step) {
    const kind = (check) => ({ held: "pass", broken: check.level === "MUST" ? "fail" : "warn", unreached: "skip" })[check.state];
    return element("ul", {}, ...step.checks.map((check) => element("li", {},
      element("span", { class: kind(check) }, `${check.name}: ${check.state}`),
      (check.problems || []).length ? `: ${check.problems.join("; ")}` : "")));
  }

  function formatAnswer(answer) {
    const times = answer.chunks.length ? `, ${answer.chunks.length} chunks from ${answer.chunks[0]} s to ${answer.chunks[answer.chunks.length - 1]} s` : "";
    const end = answer.broken ? `\n\n[${answer.broken}]` : "";
    return `${answer.status}${times}\n${formatHeaders(answer.headers)}\n\n${pretty(answer.body)}${end}`;
  }

  function drawUpstream({ script, received, requests = received.length }) {
    const behaviour = script.length ? `Behaviour of the fake provider: ${script.join(", ")}` : "Behaviour of the fake provider: the default";
    const got = received.map((request) => element("pre", {}, `${request.method} ${request.path}\n${formatHeaders(request.headers)}\n\n${pretty(request.body)}`));
    const count = requests === 1 ? "it received one request" : `it received ${requests || "no"} requests`;
    return [element("h4", {}, `${behaviour}; ${count}${requests > got.length ? ", the last one is" : ""}`), ...got];
  }

  function drawStep(step, number, count) {
    const parts = [element("h3", {}, count > 1 ? `Step ${number + 1}` : "Wire log"), listChecks(step)];
    if (!step.exchange) return parts;
    const { request, answer } = step.exchange;
    parts.push(element("h4", {}, "Request"), element("pre", {}, `${request.method} ${request.url}\n${formatHeaders(request.headers)}\n\n${pretty(request.body)}`));
    parts.push(...(step.upstream ? drawUpstream(step.upstream) : []));
    parts.push(element("h4", {}, "Response"), element("pre", {}, formatAnswer(answer)));
    const curl = element("pre", { class: "curl", tabindex: "0" }, step.curl);
    const copy = button("Copy", async () => { await navigator.clipboard.writeText(step.curl); copy.textContent = "Copied"; });
    return [...parts, element("h3", {}, "Reproduce", navigator.clipboard ? copy : null), curl];
  }

  function openDetail(found, report) {
    const dialog = by("detail");
    const facts = [["target", report.target.name], ["verdict", found.verdict], ["level", found.level], ["rule", found.title], ["source", found.source], ["reason", found.reason], ["cause", found.cause], ["known gap", found.expected]];
    dialog.replaceChildren(button("Close", () => dialog.close(), { class: "close" }), element("h2", { id: "detail-title" }, found.id),
      element("dl", {}, ...facts.filter(([, value]) => value).flatMap(([name, value]) =>
        [element("dt", {}, name), element("dd", { class: name === "verdict" ? found.verdict : "" }, ...(name === "source" ? linkIssues(value) : [value]))])),
      ...found.steps.flatMap((step, number) => drawStep(step, number, found.steps.length)));
    if (!found.steps.length) dialog.append(element("p", {}, found.verdict === "skip" ? "The case sent no request." : "This report keeps only the wire logs of failures."));
    dialog.showModal();
    dialog.scrollTop = 0;
    history.replaceState(null, "", `#${reports.indexOf(report)}:${found.id}`);
  }

  // Filters and keys.

  function togglePressed(made) {
    const on = made.getAttribute("aria-pressed") !== "true";
    made.setAttribute("aria-pressed", String(on));
    return on;
  }

  function drawFilters() {
    return VERDICTS.filter((verdict) => reports.some((report) => report.counts[verdict])).map((verdict) => {
      const number = reports.reduce((sum, report) => sum + report.counts[verdict], 0);
      const act = () => { if (togglePressed(made)) shown.add(verdict); else shown.delete(verdict); draw(); };
      const made = button(`${number} ${verdict}`, act, { class: verdict, "aria-pressed": "true" });
      return made;
    });
  }

  function focusSearch(event) {
    if (event.key !== "/" || by("detail").open || event.target.id === "search") return;
    event.preventDefault();
    by("search").focus();
  }

  const several = reports.length > 1;
  by("intro").textContent = `${sorted.length} cases, ${several ? `${reports.length} targets` : "one target"}, ${reports[0] ? `${reports[0].suite}, ${reports[0].started.slice(0, 10)}` : ""}`;
  drawSums();
  drawCauses();
  document.querySelector("#areas thead").append(drawHeading("area"));
  document.querySelector("#areas tbody").append(...drawChart());
  document.querySelector("#matrix thead").append(drawHeading("case"));
  by("areas").className = several ? "many" : "one";
  by("matrix").className = by("causes").className = reports.length > 3 ? "many" : "";
  by("verdicts").append(...drawFilters());
  by("differences").hidden = !several;
  by("differences").addEventListener("click", (event) => { togglePressed(event.target); draw(); });
  by("search").addEventListener("input", draw);
  by("filter").addEventListener("submit", (event) => event.preventDefault());
  by("detail").addEventListener("click", (event) => { if (event.target.id === "detail") event.target.close(); });
  by("detail").addEventListener("close", () => history.replaceState(null, "", location.pathname + location.search));
  document.addEventListener("keydown", focusSearch);
  draw();
  const [column, id] = decodeURIComponent(location.hash.slice(1)).split(":");
  const linkedRow = rows.get(id);
  if (linkedRow && linkedRow.cells[Number(column)]) openDetail(linkedRow.cells[Number(column)], reports[Number(column)]);
})();
