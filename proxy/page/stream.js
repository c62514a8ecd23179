// Joins the events of a stream into one value, so that streams can be read and compared as whole replies can.

const isBox = (value) => value !== null && typeof value === "object";
const LAST = new Set(["index", "output_index", "content_index", "sequence_number", "created", "created_at", "id", "item_id", "object", "type", "role", "name", "model", "finish_reason", "call_id"]);

function join(old, next, inDelta) {
  if (old === undefined || old === null) return next;
  if (typeof old === "string" && typeof next === "string" && inDelta) return old + next;
  if (Array.isArray(old) && Array.isArray(next)) return joinLists(old, next, inDelta);
  if (isBox(old) && isBox(next) && !Array.isArray(next)) {
    const joined = { ...old };
    for (const [key, value] of Object.entries(next)) joined[key] = join(joined[key], value, (inDelta || key === "delta" || key === "text") && !LAST.has(key));
    return joined;
  }
  return next === null ? old : next;
}

function joinLists(old, next, inDelta) { // items with an index are joined by it, such as choices and calls of tools
  const joined = [...old];
  for (const item of next) {
    const place = isBox(item) && Number.isInteger(item.index) ? joined.findIndex((other) => other?.index === item.index) : -1;
    if (place >= 0) joined[place] = join(joined[place], item, inDelta);
    else joined.push(item);
  }
  return joined;
}

/** Join [name, data] of events: by name, and texts of deltas one after the other. Data that is not JSON is left out. */
export function fold(events) {
  const groups = {};
  for (const [name, value] of events) {
    if (!isBox(value)) continue;
    const parts = [name ?? "chunk", value.output_index, value.content_index, value.index].filter((part) => part !== undefined);
    const key = parts.join(" ");
    groups[key] = join(groups[key], value, false);
  }
  const keys = Object.keys(groups);
  return keys.length === 1 ? groups[keys[0]] : groups;
}

/** The text that people read, of one event's data: chat, completions, Responses and Messages. */
export function textOf(value) {
  if (!isBox(value)) return "";
  if (typeof value.delta === "string" && /text|refusal/.test(value.type ?? "text")) return value.delta;
  if (typeof value.delta?.text === "string") return value.delta.text;
  return (Array.isArray(value.choices) ? value.choices : []).map((choice) => choice?.delta?.content ?? choice?.text ?? "").filter((text) => typeof text === "string").join("");
}

const DULL = new Set(["type", "sequence_number", "event_id", "obfuscation", "created", "created_at"]);

/** What is in `now` and not, or with another value, in `before`: [[key, value], ...], the smallest parts. */
export function findNews(before, now) {
  const found = [];
  const walk = (old, value, key) => {
    if (found.length >= 6 || DULL.has(key)) return;
    if (isBox(value) && isBox(old)) for (const [name, part] of Object.entries(value)) walk(old[name], part, Array.isArray(value) ? key : name);
    else if (isBox(value) || value !== old) found.push([key, value]);
  };
  walk(before, now, "");
  return found;
}
