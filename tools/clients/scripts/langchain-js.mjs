import { API_KEY, BASE_URL, BREAKDOWN, BROKEN, FAILING, FAILURE, MODEL, REASONING, RESULT, SENTENCE } from "./shared/checks.mjs";
import { TOOLS, check, contains, equal, present, throwsText, user } from "./shared/checks.mjs";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { tool } from "@langchain/core/tools";
import { z } from "zod";

const options = { model: MODEL, apiKey: API_KEY, maxRetries: 0, configuration: { baseURL: BASE_URL } };
const chat = new ChatOpenAI(options);
const responses = new ChatOpenAI({ ...options, useResponsesApi: true });
const City = z.object({ name: z.string(), inhabitants: z.number() });
const weather = tool(() => RESULT, { name: "get_weather", description: "Weather of a city", schema: z.object({ city: z.string() }) });

async function join(stream) {
  let whole;
  for await (const chunk of await stream) whole = whole ? whole.concat(chunk) : chunk;
  return whole;
}

/** Run one tool call and send its result; `first` makes the reply that calls. */
async function converse(bound, first) {
  const [call] = first.tool_calls;
  equal([call.name, call.args], ["get_weather", { city: "Rome" }]);
  const second = await bound.invoke([...user(TOOLS), first, await weather.invoke(call)]);
  contains(second.text, RESULT);
}

await check("chat", async () => {
  const reply = await chat.invoke("Hello");
  equal(reply.text, SENTENCE);
  present(reply.usage_metadata?.total_tokens, reply);
});

await check("turn after reasoning", async () => {
  const first = await chat.invoke(REASONING);
  equal((await chat.invoke([...user(REASONING), first, ...user("Hello")])).text, SENTENCE);
});

await check("stream", async () => {
  equal((await join(chat.stream("Hello"))).text, SENTENCE);
});

await check("usage in streams", async () => {
  const reply = await join(chat.stream("Hello"));
  present(reply.usage_metadata?.total_tokens, reply);
});

await check("tools", async () => {
  const bound = chat.bindTools([weather]);
  await converse(bound, await bound.invoke(user(TOOLS)));
});

await check("streamed tools", async () => {
  const bound = chat.bindTools([weather]);
  await converse(bound, await join(bound.stream(user(TOOLS))));
});

await check("one call at a time", async () => {
  const other = tool(() => RESULT, { name: "get_time", description: "Time of a city", schema: z.object({ city: z.string() }) });
  const bound = chat.bindTools([weather, other], { parallel_tool_calls: false });
  await converse(bound, await bound.invoke(user(TOOLS)));
});

for (const method of ["jsonSchema", "functionCalling"]) {
  await check("structured output", async () => {
    const asked = chat.withStructuredOutput(City, { name: "city", method });
    present((await asked.invoke("Name a city.")).name, method);
  });
}

await check("errors", async () => {
  await throwsText(() => chat.invoke(FAILING), FAILURE);
});

await check("errors in streams", async () => {
  await throwsText(() => join(chat.stream(BROKEN)), BREAKDOWN);
});

await check("embeddings", async () => {
  const vectors = await new OpenAIEmbeddings(options).embedDocuments(["a", "b"]);
  equal([vectors.length, typeof vectors[0][0]], [2, "number"]);
});

await check("responses", async () => {
  equal((await responses.invoke("Hello")).text, SENTENCE);
  present((await responses.withStructuredOutput(City, { name: "city" }).invoke("Name a city.")).name, "the city");
});

await check("streamed responses", async () => {
  const reply = await join(responses.stream("Hello"));
  equal(reply.text, SENTENCE);
  present(reply.usage_metadata?.total_tokens, reply);
});

await check("responses with tools", async () => {
  const bound = responses.bindTools([weather]);
  await converse(bound, await join(bound.stream(user(TOOLS))));
});
