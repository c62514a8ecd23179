import { API_KEY, BASE_URL, BREAKDOWN, BROKEN, FAILING, FAILURE, MODEL, RESULT, SENTENCE, TOOLS } from "./shared/checks.mjs";
import { check, contains, equal, present, throwsText } from "./shared/checks.mjs";
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from "@openai/agents";
import { z } from "zod";
import OpenAI from "openai";

setTracingDisabled(true);
const openAIClient = new OpenAI({ baseURL: BASE_URL, apiKey: API_KEY, maxRetries: 0 });
const [chat, responses] = [false, true].map((useResponses) => new Runner({ modelProvider: new OpenAIProvider({ openAIClient, useResponses }) }));
const City = z.object({ name: z.string(), inhabitants: z.number() });

function makeAgent(more) {
  return new Agent({ name: "guide", instructions: "Be brief.", model: MODEL, ...more });
}

/** Run an agent as a stream; what its user would see as an error is thrown. */
async function read(runner, agent, input) {
  const reply = await runner.run(agent, input, { stream: true });
  let text = "";
  for await (const piece of reply.toTextStream()) text += piece;
  await reply.completed;
  return { text, usage: reply.rawResponses[0].usage, finalOutput: reply.finalOutput };
}

async function converse(run, more) {
  const given = [];
  const execute = (input) => (given.push(input), RESULT);
  const describe = (name) => tool({ name, description: "Weather of a city", parameters: z.object({ city: z.string() }), execute });
  const reply = await run(makeAgent({ tools: [describe("get_weather"), describe("get_time")], ...more }));
  equal(given, [{ city: "Rome" }]);
  contains(reply.finalOutput, RESULT);
}

await check("chat", async () => equal((await chat.run(makeAgent(), "Hello")).finalOutput, SENTENCE));
await check("stream", async () => equal((await read(chat, makeAgent(), "Hello")).text, SENTENCE));
await check("usage in streams", async () => {
  const { usage } = await read(chat, makeAgent(), "Hello");
  present(usage.totalTokens, usage);
});
await check("tools", () => converse((agent) => chat.run(agent, TOOLS)));
await check("streamed tools", () => converse((agent) => read(chat, agent, TOOLS)));
await check("one call at a time", () => converse((agent) => chat.run(agent, TOOLS), { modelSettings: { parallelToolCalls: false } }));
await check("structured output", async () => {
  const reply = await chat.run(makeAgent({ outputType: City }), "Name a city.");
  present(reply.finalOutput.name, reply.finalOutput);
});
await check("agent", async () => {
  const handoffs = [makeAgent({ name: "other" })];
  const reply = await chat.run(makeAgent({ handoffs }), "fake:tools(name=transfer_to_other, arguments={})");
  equal(reply.lastAgent.name, "other");
});
await check("errors", () => throwsText(() => chat.run(makeAgent(), FAILING), FAILURE));
await check("errors in streams", () => throwsText(() => read(chat, makeAgent(), BROKEN), BREAKDOWN));
await check("responses", async () => {
  equal((await responses.run(makeAgent(), "Hello")).finalOutput, SENTENCE);
  await throwsText(() => responses.run(makeAgent(), FAILING), FAILURE);
});
await check("streamed responses", async () => {
  const reply = await read(responses, makeAgent(), "Hello");
  equal(reply.text, SENTENCE);
  present(reply.usage.totalTokens, reply.usage);
  await throwsText(() => read(responses, makeAgent(), BROKEN), BREAKDOWN);
});
await check("responses with tools", () => converse((agent) => responses.run(agent, TOOLS), { modelSettings: { parallelToolCalls: false } }));
