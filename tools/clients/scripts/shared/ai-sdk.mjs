// What the three providers of the AI SDK have in common: chat models, Responses models and embedding models.

import { BREAKDOWN, BROKEN, FAILING, FAILURE, REASONING, RESULT, SENTENCE, TOOLS } from "./checks.mjs";
import { check, contains, equal, present, throwsText } from "./checks.mjs";
import { embedMany, generateText, isStepCount, Output, streamText, tool } from "ai";
import { z } from "zod";

const City = z.object({ name: z.string(), inhabitants: z.number() });

function makeTools(given) {
  const execute = (input) => (given.push(input), RESULT);
  const get_weather = tool({ description: "Weather of a city", inputSchema: z.object({ city: z.string() }), execute });
  return { prompt: TOOLS, tools: { get_weather }, stopWhen: isStepCount(3) };
}

/** Read a whole stream; what its user would see as an error is thrown. */
async function read(options) {
  const errors = [];
  const reply = streamText({ ...options, maxRetries: 0, onError: ({ error }) => errors.push(error) });
  await reply.consumeStream();
  if (errors.length) throw errors[0];
  return { text: await reply.text, usage: await reply.usage };
}

async function converse(run, options) {
  const given = [];
  const reply = await run({ ...options, ...makeTools(given) });
  equal(given, [{ city: "Rome" }]);
  contains(reply.text, RESULT);
}

async function parse(model) {
  const reply = await generateText({ model, prompt: "Name a city.", output: Output.object({ schema: City }), maxRetries: 0 });
  present(reply.output.name, reply.output);
}

const generate = (options) => generateText({ ...options, maxRetries: 0 });

export async function checkChat(model) {
  await check("turn after reasoning", async () => {
    const asked = { role: "user", content: REASONING };
    const first = await generate({ model, messages: [asked] });
    const messages = [asked, ...first.response.messages, { role: "user", content: "Hello" }];
    equal((await generate({ model, messages })).text, SENTENCE);
  });
  await check("stream", async () => equal((await read({ model, prompt: "Hello" })).text, SENTENCE));
  await check("usage in streams", async () => {
    const { usage } = await read({ model, prompt: "Hello" });
    present(usage.totalTokens, usage);
  });
  await check("tools", () => converse(generate, { model }));
  await check("streamed tools", () => converse(read, { model }));
  await check("structured output", () => parse(model));
  await check("errors", () => throwsText(() => generate({ model, prompt: FAILING }), FAILURE));
  await check("errors in streams", () => throwsText(() => read({ model, prompt: BROKEN }), BREAKDOWN));
}

export async function checkEmbeddings(model) {
  await check("embeddings", async () => {
    const reply = await embedMany({ model, values: ["a", "b"], maxRetries: 0 });
    equal([reply.embeddings.length, typeof reply.embeddings[0][0]], [2, "number"]);
  });
}

export async function checkResponses(model) {
  await check("responses", async () => {
    equal((await generate({ model, prompt: "Hello" })).text, SENTENCE);
    await parse(model);
  });
  await check("streamed responses", async () => {
    const reply = await read({ model, prompt: "Hello" });
    equal(reply.text, SENTENCE);
    present(reply.usage.totalTokens, reply.usage);
    await throwsText(() => read({ model, prompt: BROKEN }), BREAKDOWN);
  });
  await check("responses with tools", async () => {
    await converse(generate, { model });
    await converse(read, { model });
  });
}
