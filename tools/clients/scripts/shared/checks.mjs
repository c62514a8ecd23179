// What the scripts in JavaScript share: the variables of a run, what a fake answers, and how a check is reported.
//
// A fake provider answers SENTENCE. TOOLS in a message makes it call a tool, and repeat the tool's result afterwards;
// REASONING makes it reason, FAILING refuse, BROKEN fail in the middle of a stream; a requested JSON schema gets JSON
// that matches it.

export const { BASE_URL, ORIGIN, API_KEY, MODEL } = process.env;
export const SENTENCE = "The dragoman bows to both courts: “grüß Gott, καλημέρα, 你好 👋🏽” – and the talks begin.";
export const TOOLS = 'What is the weather in Rome? fake:tools(name=get_weather, arguments={"city": "Rome"})';
export const REASONING = "Hello fake:reasoning";
export const RESULT = "22 degrees in Rome";
export const FAILURE = "The moon is full";
export const FAILING = `Hello fake:status-400(message=${FAILURE})`;
export const BROKEN = "Hello fake:error-event";
export const BREAKDOWN = "failed on purpose";
export const WEATHER = {
  name: "get_weather",
  description: "Weather of a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false },
};

const PATIENCE = 30; // seconds for one check

/** Return one message of the user. */
export function user(content) {
  return [{ role: "user", content }];
}

/** Run the function, and print whether it throws. */
export async function check(name, run, patience = PATIENCE) {
  try {
    await Promise.race([run(), expire(patience)]);
    report(name, true);
  } catch (error) {
    report(name, false, describe(error));
  }
}

function expire(patience) {
  return new Promise((_, reject) => setTimeout(() => reject(new Error(`not done after ${patience} s`)), patience * 1000).unref());
}

export function report(check, passed, reason = "") {
  console.log("\n" + JSON.stringify({ check, passed, reason }));
}

/** Describe what was thrown as its reader sees it; some clients throw plain objects. */
export function describe(error) {
  return error instanceof Error ? `${error.name}: ${error.message}` : JSON.stringify(error);
}

export function equal(found, expected) {
  const [left, right] = [found, expected].map((value) => JSON.stringify(value));
  if (left !== right) throw new Error(`${left} instead of ${right}`);
}

export function contains(text, part) {
  if (!String(text).includes(part)) throw new Error(`no ${JSON.stringify(part)} in ${JSON.stringify(text)}`);
}

/** Throw unless there is a value; `seen` shows where it was looked for. */
export function present(value, seen) {
  if (!value) throw new Error(`nothing found in ${JSON.stringify(seen)}`);
}

/** The client throws, and its user sees our message. Returns what was thrown. */
export async function throwsText(call, ...parts) {
  const thrown = await catchError(call);
  for (const part of parts) contains(describe(thrown), part);
  return thrown;
}

async function catchError(call) {
  let found;
  try {
    found = await call();
  } catch (error) {
    return error;
  }
  throw new Error(`no exception but ${JSON.stringify(found)}`);
}
