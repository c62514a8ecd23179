// Exports an exchange: as a curl command, as a recording of a fake provider, as a case of the contract suite.

import { getFile } from "./api.js";
import { attempt, button, copy, download, fill, h, openDialog } from "./dom.js";

const FORMS = [
  ["curl", "curl", ["Repeats the client's request. Keys are variables of the shell."]],
  ["recording", "Recording", ["What the provider answered. A fake provider answers so again: ", h("code", {}, "dragoman fake --replay FOLDER")]],
  ["case", "Contract case", ["Asks any endpoint the same, and checks the answer: ", h("code", {}, "dragoman contract run --base-url URL --model NAME --cases FOLDER"), ". A second case checks what a proxy sends to a provider: add ", h("code", {}, "--upstream DIALECT")]],
];

/** Show the exports of an exchange in a dialog, to copy and to download. */
export function openExport(detail) {
  const says = h("p", { class: "soft" });
  const text = h("pre", { class: "export mono", tabindex: "0", role: "region", "aria-label": "Exported text" });
  const copyButton = button("Copy", () => copy(file.text, copyButton));
  const save = button("Download", () => download(file.name, file.text), { class: "main" });
  const tabs = h("div", { class: "tabs", role: "group", "aria-label": "Form" }, FORMS.map((form) => button(form[1], () => show(form), { "data-form": form[0] })));
  let chosen = null, file = null;
  openDialog("Export", [tabs, says, text, h("footer", {}, copyButton, save)], { class: "wide" });

  async function show(form) {
    chosen = form;
    for (const tab of tabs.children) tab.setAttribute("aria-pressed", String(tab.dataset.form === form[0]));
    fill(says, form[2]);
    fill(text, "…");
    copyButton.disabled = save.disabled = true;
    const got = await attempt(() => getFile(`exchanges/${encodeURIComponent(detail.ref)}/export?as=${form[0]}`), text);
    if (got === undefined || chosen !== form) return;
    file = got;
    fill(text, file.text);
    copyButton.disabled = save.disabled = false;
  }
  show(FORMS[0]);
}
