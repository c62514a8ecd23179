// Exports an exchange: as a curl command, as a recording of a fake provider, as a case of the contract suite.

import { getText } from "./api.js";
import { attempt, button, copy, download, fill, h, openDialog, put } from "./dom.js";

const FORMS = [
  ["curl", "curl", "sh", "Repeats the client's request. The key is a variable of the shell."],
  ["recording", "Recording", "yaml", "What the provider answered, for a fake provider that answers so again."],
  ["case", "Contract case", "yaml", "Checks any endpoint for what happened here: dragoman contract run --cases FILE."],
];

export function openExport(detail) {
  const says = h("p", { class: "soft" });
  const text = h("pre", { class: "export mono", tabindex: "0", role: "region", "aria-label": "Exported text" });
  const copyButton = button("Copy", () => copy(text.textContent, copyButton));
  let chosen = FORMS[0];
  const tabs = h("div", { class: "tabs", role: "group", "aria-label": "Form" }, FORMS.map((form) => button(form[1], () => show(form), { "data-form": form[0] })));
  const save = button("Download", () => download(`${detail.id}.${chosen[0]}.${chosen[2]}`, text.textContent), { class: "main" });
  openDialog("Export", [tabs, says, text, h("footer", {}, copyButton, save)], { class: "wide" });

  async function show(form) {
    chosen = form;
    for (const tab of tabs.children) tab.setAttribute("aria-pressed", String(tab.dataset.form === form[0]));
    fill(says, form[3]);
    fill(text, "…");
    copyButton.disabled = save.disabled = true;
    const got = await attempt(() => getText(`exchanges/${encodeURIComponent(detail.id)}/export?as=${form[0]}`), text);
    if (got === undefined || chosen !== form) return;
    put(fill(text), got);
    copyButton.disabled = save.disabled = false;
  }
  show(chosen);
}
