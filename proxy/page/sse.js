// Reads server-sent events from a response, as they come.

/** Call `take({name, data, text})` for each event of a response's body. Ends with the body; throws what reading throws. */
export async function readEvents(response, take) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    const parts = (rest + (value ?? "")).split(/\r\n\r\n|\n\n|\r\r/);
    rest = done ? "" : parts.pop();
    for (const text of parts) if (text.trim()) take(parseEvent(text));
    if (done) return;
  }
}

/** Take one event's text apart. Its data are joined with newlines. */
export function parseEvent(text) {
  const found = { name: null, data: null, text };
  for (const line of text.split(/\r\n|\n|\r/)) {
    const at = line.indexOf(":");
    const key = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
    if (key === "event") found.name = value;
    if (key === "data") found.data = found.data === null ? value : `${found.data}\n${value}`;
  }
  return found;
}
