// Sends the request of an exchange again: to another model or target, under other policies, in another profile.

import { getAbout, post } from "./api.js";
import { attempt, button, field, h, openDialog, select } from "./dom.js";
import { reveal } from "./format.js";
import { findByName, subscribe } from "./store.js";

/** Ask how to replay an exchange, replay it, and show both side by side once the replay has ended. */
export async function openReplay(detail) {
  const about = await attempt(() => getAbout());
  if (!about) return;
  const wish = { model: "", target: "", profile: "", policy: {} };
  const fields = [field("Model", select("Model", [["", `as sent${detail.model ? ` (${reveal(detail.model)})` : ""}`], ...about.models.map(({ name }) => name)], "", (value) => { wish.model = value; }))];
  if (about.targets?.length) fields.push(field("Target", h("input", { list: "targets", placeholder: "as the routes choose", "aria-label": "Target", spellcheck: "false", oninput: (event) => { wish.target = event.target.value.trim(); } })), h("datalist", { id: "targets" }, about.targets.map((value) => h("option", { value }))));
  const profiles = [...new Set(Object.values(about.profiles ?? {}).flat())];
  if (profiles.length) fields.push(field("Profile of the provider", select("Profile", [["", "as configured"], ...profiles], "", (value) => { wish.profile = value; })));
  const policies = (about.policies ?? []).map(({ name, values }) => field(name.replaceAll("_", " "), select(name, [["", "as configured"], ...values.map(String)], "", (value) => {
    if (value === "") delete wish.policy[name]; else wish.policy[name] = values.find((one) => String(one) === value);
  }, { "data-policy": name })));
  const note = h("div", { role: "status" });
  const send = button("Replay", () => run(), { class: "main" });
  const box = openDialog("Replay", [
    h("p", { class: "soft" }, "Sends what the client sent once more, as a new exchange, and compares the two."),
    h("div", { class: "form" }, fields), policies.length > 0 && h("h3", {}, "Policies"), h("div", { class: "form" }, policies), note, h("footer", {}, send)]);
  send.focus({ preventScroll: true });

  async function run() {
    send.disabled = true;
    const body = Object.fromEntries(Object.entries(wish).filter(([, value]) => (typeof value === "string" ? value : Object.keys(value).length)));
    const made = await attempt(() => post(`exchanges/${encodeURIComponent(detail.ref)}/replay`, body), note);
    send.disabled = false;
    if (!made) return;
    note.textContent = "Running";
    await ended(made.id);
    if (!box.isConnected) return;
    box.close();
    location.hash = `#/compare/${encodeURIComponent(detail.ref)}/${encodeURIComponent(made.id)}`;
  }
}

/** Wait until an exchange has ended, at most as long as a person waits for a dialog. */
function ended(id) {
  return new Promise((done) => {
    const isOver = () => { const now = findByName(id); return now && now.outcome !== "running"; };
    const finish = () => { end(); clearTimeout(timer); done(); };
    const end = subscribe(() => isOver() && finish());
    const timer = setTimeout(finish, 120_000);
    if (isOver()) finish();
  });
}
