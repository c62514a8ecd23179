// The difference of two JSON values as rows: equal parts once, what only one has with - or +.

import { Written } from "./json.js";

const isBox = (value) => value !== null && typeof value === "object" && !(value instanceof Written);
const MOST = 400; // items of arrays that are aligned; longer ones are compared place by place

export const same = (one, other) => {
  if (one instanceof Written || other instanceof Written) return one?.source === other?.source;
  if (!isBox(one) || !isBox(other)) return one === other;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => Object.hasOwn(other, key) && same(one[key], other[key]));
};

const likeness = (one, other) => {
  if (same(one, other)) return 3;
  if (!isBox(one) || !isBox(other)) return 0;
  return Object.keys(one).some((key) => ["id", "name", "role", "type", "index"].includes(key) && same(one[key], other[key])) ? 1 : 0;
};

/** Pair the items of two arrays in order, the most alike: [[place, place], ...] with null where one has none. */
export function align(one, other) {
  if (one.length * other.length > MOST * MOST) return Array.from({ length: Math.max(one.length, other.length) }, (_, place) => [place < one.length ? place : null, place < other.length ? place : null]);
  const best = Array.from({ length: one.length + 1 }, () => new Int32Array(other.length + 1));
  for (let i = one.length - 1; i >= 0; i -= 1) for (let j = other.length - 1; j >= 0; j -= 1) {
    const like = likeness(one[i], other[j]);
    best[i][j] = Math.max(best[i + 1][j], best[i][j + 1], like ? best[i + 1][j + 1] + like : 0);
  }
  const pairs = [];
  let i = 0, j = 0;
  while (i < one.length || j < other.length) {
    const like = i < one.length && j < other.length ? likeness(one[i], other[j]) : 0;
    if (like && best[i][j] === best[i + 1][j + 1] + like) pairs.push([i++, j++]);
    else if (j >= other.length || (i < one.length && best[i][j] === best[i + 1][j])) pairs.push([i++, null]);
    else pairs.push([null, j++]);
  }
  return pairs;
}

/** Compare two values: a list of {sign: " " | "-" | "+", level, key, value, open?, size?} in reading order. */
export function compare(one, other) {
  const out = [];
  put(out, 0, null, one, other, false);
  return out;
}

function put(out, level, key, one, other) {
  if (one === undefined) { out.push({ sign: "+", level, key, value: other }); return; }
  if (other === undefined) { out.push({ sign: "-", level, key, value: one }); return; }
  if (same(one, other)) { out.push({ sign: " ", level, key, value: one }); return; }
  if (!isBox(one) || !isBox(other) || Array.isArray(one) !== Array.isArray(other)) {
    out.push({ sign: "-", level, key, value: one }, { sign: "+", level, key, value: other });
    return;
  }
  const list = Array.isArray(one);
  out.push({ sign: " ", level, key, begin: list ? "[" : "{" });
  if (list) for (const [i, j] of align(one, other)) put(out, level + 1, null, i === null ? undefined : one[i], j === null ? undefined : other[j]);
  else for (const name of mergeKeys(one, other)) put(out, level + 1, name, Object.hasOwn(one, name) ? one[name] : undefined, Object.hasOwn(other, name) ? other[name] : undefined);
  out.push({ sign: " ", level, key: null, end: list ? "]" : "}" });
}

function mergeKeys(one, other) {
  const keys = Object.keys(one);
  for (const [place, key] of Object.keys(other).entries()) if (!Object.hasOwn(one, key)) keys.splice(Math.min(place, keys.length), 0, key);
  return keys;
}

/** The rows of a difference, for a width in characters. Equal objects and arrays are folded unless opened. */
export function layDifference(lines, columns, layout, opened) {
  return lines.flatMap((line) => {
    const label = line.key === null ? [] : [["k", JSON.stringify(line.key)], ["p", ": "]];
    const kind = { "-": "is-gone", "+": "is-new" }[line.sign] ?? "";
    const weightOf = () => "form";
    if (line.begin ?? line.end) return [{ level: line.level, parts: [...label, ["p", line.begin ?? line.end]], weightOf, quiet: Boolean(line.end) }];
    const equal = line.sign === " " && isBox(line.value) && Object.keys(line.value).length > 0;
    if (equal && !opened.has(line)) {
      const list = Array.isArray(line.value), size = Object.keys(line.value).length;
      return [{ level: line.level, parts: [...label, ["fold", `${list ? "[" : "{"} ${size} equal ${list ? "]" : "}"}`]], open: false, line, weightOf }];
    }
    const rows = layout.rows(line.value, columns - line.level * 2 - 2, null, 0);
    return rows.map((row, index) => ({ ...row, kind, level: row.level + line.level, sign: line.sign, parts: [...(index ? [] : label), ...row.parts], open: index === 0 && equal ? true : undefined, line, kept: row }));
  });
}
