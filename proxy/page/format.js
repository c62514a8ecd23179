// Numbers, times and paths as people read them.

const COUNT = new Intl.NumberFormat("en-US");
const BYTES = ["B", "KiB", "MiB", "GiB"]; // as in configurations

export const count = (number) => COUNT.format(number);
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;

/** Milliseconds, with three figures at most: 8 ms, 312 ms, 1.24 s, 2 min 5 s. */
export function duration(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 10) return `${ms.toFixed(1).replace(/\.0$/, "")} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 120_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

export function bytes(number) {
  let unit = 0;
  while (number >= 1000 && unit < BYTES.length - 1) [number, unit] = [number / 1024, unit + 1];
  return `${unit && number < 100 ? number.toFixed(1) : Math.round(number)} ${BYTES[unit]}`;
}

const two = (number) => String(number).padStart(2, "0");

/** The local time of a moment in Unix seconds: 12:01:07, or with milliseconds. */
export function time(seconds, exact = false) {
  const date = new Date(seconds * 1000);
  const clock = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  return exact ? `${clock}.${String(date.getMilliseconds()).padStart(3, "0")}` : clock;
}

export function moment(seconds) {
  const date = new Date(seconds * 1000);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time(seconds, true)}`;
}

/** A path as OpenAI writes it: messages[0].content. */
export function formatPath(path) {
  return path.map((part) => (typeof part === "number" ? `[${part}]` : `.${part}`)).join("").replace(/^\./, "");
}

const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Characters that nobody sees, or that turn the direction of a text, as escapes. */
export const reveal = (text) => String(text).replace(HIDDEN, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);

export const OUTCOMES = { running: "running", ok: "ok", fault: "fault", client_left: "client left" };
const CLASSES = { running: "is-running", ok: "is-ok", fault: "is-fault", client_left: "is-left" };
export const outcomeClass = (outcome) => CLASSES[outcome] ?? "is-left";
export const outcomeText = (found) => (found.outcome === "fault" && found.fault ? found.fault : OUTCOMES[found.outcome] ?? found.outcome);
