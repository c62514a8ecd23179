import { API_KEY, BASE_URL, FAILING, FAILURE, MODEL, SENTENCE, WEATHER, check, contains, equal } from "./shared/checks.mjs";
import { runProgram, writeConfig } from "./shared/programs.mjs";
import { readFile } from "node:fs/promises";

const env = { PROMPTFOO_DISABLE_TELEMETRY: "1", PROMPTFOO_DISABLE_UPDATE: "1", PROMPTFOO_DISABLE_REMOTE_GENERATION: "1" };
const CITY = { type: "object", properties: { name: { type: "string" } }, required: ["name"], additionalProperties: false };

/** Evaluate one prompt with a provider of promptfoo. Returns the row of its result. */
async function evaluate(kind, question, more = {}, test = {}) {
  const config = { apiBaseUrl: BASE_URL, apiKey: API_KEY, ...more };
  const suite = { prompts: ["{{question}}"], providers: [{ id: `openai:${kind}:${MODEL}`, config }], tests: [{ vars: { question }, ...test }] };
  await writeConfig("suite.json", JSON.stringify(suite));
  const command = ["promptfoo", "eval", "-c", "suite.json", "--no-cache", "--no-table", "--no-progress-bar", "--no-write", "-o", "rows.json"];
  const { text } = await runProgram(command, { env });
  const rows = await readFile("rows.json", "utf8").catch(() => Promise.reject(new Error(text.slice(-500))));
  return JSON.parse(rows).results.results[0];
}

await check("chat", async () => equal((await evaluate("chat", "Hello")).response?.output, SENTENCE), 60);
await check("tools", async () => {
  const tools = [{ type: "function", function: WEATHER }];
  const tool_choice = { type: "function", function: { name: "get_weather" } };
  const row = await evaluate("chat", "What is the weather in Rome?", { tools, tool_choice });
  contains(JSON.stringify(row.response?.output ?? row.error), "get_weather");
}, 60);
await check("structured output", async () => {
  const response_format = { type: "json_schema", json_schema: { name: "city", strict: true, schema: CITY } };
  const row = await evaluate("chat", "Name a city.", { response_format });
  equal(Object.keys(row.response?.output ?? row), ["name"]);
}, 60);
await check("errors", async () => contains(JSON.stringify((await evaluate("chat", FAILING)).error), FAILURE), 60);
await check("embeddings", async () => {
  const embedding = { id: `openai:embedding:${MODEL}`, config: { apiBaseUrl: BASE_URL, apiKey: API_KEY } };
  const assert = [{ type: "similar", value: "Hello", threshold: -1, provider: embedding }];
  const row = await evaluate("chat", "Hello", {}, { assert });
  equal([row.success, row.error ?? ""], [true, ""]);
}, 60);
await check("responses", async () => equal((await evaluate("responses", "Hello")).response?.output, SENTENCE), 60);
