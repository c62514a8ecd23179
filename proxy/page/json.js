// Lays JSON out as rows of text: parsed without losing how numbers were written, wrapped to a width, folded, and marked
// where changes concern it.

import { formatPath, reveal } from "./format.js";

const SHORT = 12; // rows of a long text that are shown at first
const LONG = 40;
const WORD = 24; // characters

/** A number whose text JavaScript would write differently. */
export class Written { constructor(source) { this.source = source; } }

/** Parse JSON and keep how its numbers are written. Throws SyntaxError. */
export function parse(text) {
  return JSON.parse(text, (key, value, context) => (typeof value === "number" && context?.source !== undefined && String(value) !== context.source ? new Written(context.source) : value));
}

const isBox = (value) => value !== null && typeof value === "object" && !(value instanceof Written);
export const hasPath = (value, path) => path.every((part) => {
  if (!isBox(value) || !Object.hasOwn(value, part)) return false;
  value = value[part];
  return true;
});

const node = () => ({ below: new Map(), marks: [], ghosts: [], all: [] });

/** Arrange changes by path: `marks` are [{number, weight, path, ghost}]; `ghost` paths are values of the other side.
 *  Returns the tree, and the marks for which the value has no place. */
export function arrange(value, marks) {
  const root = node(), homeless = [];
  for (const mark of marks) {
    const path = mark.path ?? mark.ghost ?? [];
    if (!path.length || !isBox(value)) { homeless.push(mark); continue; }
    let length = path.length;
    while (length && !hasPath(value, path.slice(0, length))) length -= 1;
    const here = mark.path && length === path.length;
    if (!here && length) length = boxLength(value, path.slice(0, length));
    const found = descend(root, path.slice(0, length), mark);
    if (here) found.marks.push(mark);
    else found.ghosts.push({ ...mark, label: formatPath(path.slice(length)) });
  }
  return { root, homeless };
}

function boxLength(value, path) { // how much of a path leads to an object or array
  let length = 0;
  for (const part of path) { value = value[part]; if (!isBox(value)) break; length += 1; }
  return length;
}

function descend(root, path, mark) {
  let at = root;
  at.all.push(mark);
  for (const part of path) {
    if (!at.below.has(part)) at.below.set(part, node());
    at = at.below.get(part);
    at.all.push(mark);
  }
  return at;
}

const wide = (code) => code >= 0x1100 && (code <= 0x115f || (code >= 0x2e80 && code <= 0xd7ff) || (code >= 0xf900 && code <= 0xfaff) || (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) || code >= 0xd800 && code <= 0xdbff);

/** Cut a text into pieces of at most `columns` cells, the first of at most `first`; between words if they are short. */
export function wrap(text, columns, first = columns) {
  const pieces = [];
  let begin = 0, cells = 0, room = Math.max(8, first), space = 0;
  for (let index = 0; index < text.length; index += 1) {
    const size = wide(text.charCodeAt(index)) ? 2 : 1;
    if (cells + size > room && !isLow(text.charCodeAt(index))) {
      const end = space > begin && index - space < WORD ? space : index;
      pieces.push(text.slice(begin, end));
      [begin, cells, room] = [end, index - end, Math.max(8, columns)];
    }
    cells += size;
    if (text[index] === " ") space = index + 1;
  }
  pieces.push(text.slice(begin));
  return pieces;
}
const isLow = (code) => code >= 0xdc00 && code <= 0xdfff;

/** The rows of a string in JSON: a line of the text ends a row, too. */
function wrapString(text, columns, first, whole) {
  const limit = columns * SHORT;
  const cut = !whole && text.length > columns * LONG;
  const lines = (cut ? text.slice(0, limit) : text).split("\n");
  const pieces = [];
  lines.forEach((line, index) => {
    const last = index === lines.length - 1;
    const written = reveal(JSON.stringify(line).slice(1, -1)) + (last ? "" : "\\n");
    const opened = index ? written : `"${written}`;
    if (last && index && !written) pieces.push("");
    else pieces.push(...wrap(opened, columns, pieces.length ? columns : first));
  });
  if (!whole && !cut && pieces.length > LONG) return { pieces: pieces.slice(0, SHORT), more: text.length };
  if (cut) return { pieces, more: text.length };
  pieces[pieces.length - 1] += '"';
  return { pieces, more: 0 };
}

function writeScalar(value) {
  if (value instanceof Written) return ["n", value.source];
  if (typeof value === "number") return ["n", String(value)];
  return ["b", String(value)];
}

/** Lays one value out; keeps what is folded. */
export class Layout {
  constructor() {
    this.folded = new WeakSet();
    this.whole = new WeakMap(); // of an object or array, the keys of the long texts that are shown whole
  }

  /** Fold or unfold what a row shows. */
  toggle(row) {
    if (row.kind === "more") {
      if (!this.whole.has(row.parent)) this.whole.set(row.parent, new Set());
      this.whole.get(row.parent).add(row.key);
    } else if (this.folded.has(row.value)) this.folded.delete(row.value);
    else this.folded.add(row.value);
  }

  /** Unfold all that hides a path. */
  unfold(value, path) {
    for (const part of path) { if (isBox(value)) this.folded.delete(value); value = value?.[part]; }
  }

  rows(value, columns, arranged, level = 0) {
    this.out = [];
    this.columns = columns;
    this.put({ [""]: value }, "", value, level, arranged?.root, null, "");
    return this.out;
  }

  push(level, parts, rest = {}) {
    this.out.push({ level, parts, weightOf: (number) => rest.list?.find((mark) => mark.number === number)?.weight ?? "form", ...rest });
  }

  marked(list) {
    if (!list?.length) return {};
    return { list, marks: list.map((mark) => mark.number), weight: list.some((mark) => mark.weight === "loss") ? "loss" : "form", says: list[0].says };
  }

  put(parent, key, value, level, at, name, comma) {
    const label = name === null ? [] : [["k", reveal(JSON.stringify(name))], ["p", ": "]];
    const used = level * 2 + (name === null ? 0 : label[0][1].length + 2);
    if (isBox(value)) this.putBox(value, level, at, label, comma);
    else if (typeof value === "string") this.putString(parent, key, value, level, at, label, comma, used);
    else this.push(level, [...label, writeScalar(value), ["p", comma]], this.marked(at?.marks));
  }

  putString(parent, key, value, level, at, label, comma, used) {
    const { pieces, more } = wrapString(value, this.columns - level * 2 - 2, this.columns - used - 2, this.whole.get(parent)?.has(key));
    pieces.forEach((piece, index) => {
      const last = index === pieces.length - 1 && !more;
      this.push(level, [...(index ? [] : label), ["s", piece], ...(last ? [["p", comma]] : [])], index ? { hang: 1, quiet: true, weight: this.marked(at?.marks).weight } : this.marked(at?.marks));
    });
    if (more) this.push(level, [["more", `show all ${more.toLocaleString("en-US")} characters`]], { kind: "more", open: false, parent, key, hang: 1 });
  }

  putBox(value, level, at, label, comma) {
    const list = Array.isArray(value), keys = Object.keys(value);
    const [begin, end] = list ? "[]" : "{}";
    if (!keys.length && !at?.ghosts.length) { this.push(level, [...label, ["p", begin + end + comma]], this.marked(at?.marks)); return; }
    if (this.folded.has(value)) {
      const size = `${keys.length} ${list ? "item" : "key"}${keys.length === 1 ? "" : "s"}`;
      this.push(level, [...label, ["p", begin], ["fold", ` ${size} `], ["p", end + comma]], { open: false, value, ...this.marked(at?.all) });
      return;
    }
    this.push(level, [...label, ["p", begin]], { open: true, value, ...this.marked(at?.marks) });
    if (list && keys.length > 8 && !at?.below.size && value.every((item) => !isBox(item) && typeof item !== "string")) this.putNumbers(value, level + 1);
    else keys.forEach((key, index) => this.put(value, key, value[key], level + 1, at?.below.get(list ? Number(key) : key), list ? null : key, index < keys.length - 1 ? "," : ""));
    for (const ghost of at?.ghosts ?? []) this.push(level + 1, [[ghost.absent ? "absent" : "ghost", reveal(ghost.label)]], { kind: "is-ghost", ...this.marked([ghost]) });
    this.push(level, [["p", end + comma]], { quiet: true });
  }

  putNumbers(value, level) { // an array of numbers, such as an embedding, fills its rows
    const text = value.map((item) => writeScalar(item)[1]);
    let line = "";
    const room = this.columns - level * 2 - 2;
    text.forEach((item, index) => {
      const next = item + (index < text.length - 1 ? ", " : "");
      if (line && line.length + next.length > room) { this.push(level, [["n", line]]); line = ""; }
      line += next;
    });
    if (line) this.push(level, [["n", line]]);
  }
}
