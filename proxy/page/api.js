// Talks to the server: JSON, the stream of events, and the token against forged requests.

import { readEvents } from "./sse.js";

const ROOT = "/page/api/";
const SIGN_OUT = "/page/logout";
const AGAIN = "dragoman-signed-in-again";
let about = null;

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function call(path, options = {}) {
  try {
    return await fetch(ROOT + path, { ...options, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The proxy does not answer. Is it running?");
  }
}

/** Without a session the server shows the form to sign in at the page's own address: load it, but never in a loop. */
function signInAgain() {
  const last = Number(sessionStorage.getItem(AGAIN) ?? 0);
  if (Date.now() - last < 10_000) return;
  sessionStorage.setItem(AGAIN, String(Date.now()));
  location.reload();
}

async function check(response) {
  if (response.ok) return response;
  if (response.status === 401) signInAgain();
  const text = await response.text();
  let message = text;
  try { message = JSON.parse(text).error ?? text; } catch { /* the text itself is the message */ }
  throw new ApiError(response.status, typeof message === "string" ? message : JSON.stringify(message));
}

export const getJson = async (path, options) => (await check(await call(path, options))).json();

/** A text that the server offers as a file: {name, text}. */
export async function getFile(path) {
  const response = await check(await call(path));
  const name = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") ?? "")?.[1] ?? "export.txt";
  return { name, text: await response.text() };
}

/** What the server is and serves; asked once, or again with `fresh`. */
export async function getAbout(fresh = false) {
  if (fresh || !about) about = await getJson("about");
  return about;
}

/** Send JSON with the token. Asks once for a new token if the server has been restarted. */
export async function post(path, body, options = {}) {
  const send = async (fresh) => call(path, {
    method: "POST", body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", "X-Csrf-Token": (await getAbout(fresh)).csrf }, signal: options.signal,
  });
  let response = await send(false);
  if (response.status === 403) response = await send(true);
  return options.raw ? response : (await check(response)).json();
}

/** End the session; the page's address then shows the form to sign in. */
export async function signOut() {
  await fetch(SIGN_OUT, { method: "POST", redirect: "manual", cache: "no-store" });
}

const MOST = 20; // new exchanges at a time, four times a second; the server tells how many it leaves out

/** Follow the server's events until the signal aborts; connect again after a break. `state` gets "open" and "lost". */
export async function follow(take, state, signal) {
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 8000)) {
    try {
      const response = await check(await call(`events?most=${MOST}`, { signal, headers: { Accept: "text/event-stream" } }));
      await state("open");
      wait = 500;
      await readEvents(response, ({ name, data }) => { if (data !== null) take(name, JSON.parse(data)); });
    } catch (error) {
      if (signal.aborted) return;
      console.debug("events", error.message);
    }
    await state("lost");
    await new Promise((done) => { setTimeout(done, wait); });
  }
}
