// Makes elements. Data goes in as text nodes and attributes only: no function here takes markup.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element. `on...` attributes are listeners; true sets an empty attribute; null, undefined and false set none.
 *  Children are nodes, texts, numbers or arrays of them; null, undefined and false are left out. */
export function h(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  put(made, children);
  return made;
}

/** Append children to an element, as `h` does. */
export function put(parent, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return parent;
}

/** Replace all children of an element. */
export function fill(parent, ...children) {
  parent.replaceChildren();
  return put(parent, ...children);
}

export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

export function button(label, act, attributes = {}) {
  return h("button", { type: "button", onclick: act, ...attributes }, label);
}

/** Make a select. Choices are texts or [value, label]. */
export function select(label, choices, value, act, attributes = {}) {
  const made = h("select", { "aria-label": label, onchange: () => act(made.value), ...attributes });
  fillChoices(made, choices, value);
  return made;
}

export function fillChoices(made, choices, value) {
  fill(made, choices.map((choice) => {
    const [key, text] = Array.isArray(choice) ? choice : [choice, choice];
    return h("option", { value: key }, text);
  }));
  made.value = value;
}

export const field = (label, control) => h("label", { class: "field" }, h("span", {}, label), control);

/** Tell people who use a screen reader what has changed. */
export function announce(text) {
  const region = document.getElementById("announce");
  region.textContent = "";
  requestAnimationFrame(() => { region.textContent = text; });
}

/** Open a dialog that removes itself when it closes; the focus goes back to where it was. */
export function openDialog(title, content, attributes = {}) {
  const box = h("dialog", { "aria-label": title, ...attributes },
    h("div", { class: "box" },
      h("header", {}, h("h2", {}, title), button("Close", () => box.close(), { class: "quiet small" })), content));
  box.addEventListener("close", () => box.remove());
  box.addEventListener("click", (event) => { if (event.target === box) box.close(); });
  document.body.append(box);
  box.showModal();
  return box;
}

/** A page or a pane without content: what it is for, and what to do. */
export const empty = (title, ...content) => h("div", { class: "empty" }, h("h2", {}, title), content);

/** Run an action that fails visibly: its error is announced and shown in `place`. */
export async function attempt(action, place) {
  try {
    return await action();
  } catch (error) {
    if (error.name === "AbortError") return undefined;
    const notice = h("p", { class: "notice is-fault", role: "alert" }, error.message);
    if (place) fill(place, notice); else openDialog("This did not work", notice);
    return undefined;
  }
}

export async function copy(text, source) {
  await navigator.clipboard.writeText(text);
  const before = source.textContent;
  source.textContent = "Copied";
  announce("Copied");
  setTimeout(() => { source.textContent = before; }, 1200);
}

/** Offer a text as a file. */
export function download(name, text) {
  const url = URL.createObjectURL(new Blob([text]));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
