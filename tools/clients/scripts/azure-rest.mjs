import { API_KEY, BASE_URL, BREAKDOWN, BROKEN, FAILING, FAILURE, MODEL, REASONING, RESULT, SENTENCE } from "./shared/checks.mjs";
import { TOOLS, WEATHER, check, contains, equal, present, throwsText, user } from "./shared/checks.mjs";
import { createSseStream } from "@azure/core-sse";
import { AzureKeyCredential } from "@azure/core-auth";
import createClient, { isUnexpected } from "@azure-rest/ai-inference";

const client = createClient(BASE_URL, new AzureKeyCredential(API_KEY), { allowInsecureConnection: true });

const CITY = { type: "object", properties: { name: { type: "string" } }, required: ["name"], additionalProperties: false };
const retryOptions = { maxRetries: 0 };

async function chat(more) {
  const reply = await client.path("/chat/completions").post({ body: { model: MODEL, ...more }, retryOptions });
  if (isUnexpected(reply)) throw reply.body.error;
  return reply.body.choices[0].message;
}

async function* stream(more, headers) {
  const body = { model: MODEL, stream: true, ...more };
  const reply = await client.path("/chat/completions").post({ headers, body, retryOptions }).asNodeStream();
  equal(reply.status, "200");
  for await (const { data } of createSseStream(reply.body)) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data);
    if (chunk.error) throw chunk;
    yield chunk;
  }
}

await check("chat", async () => {
  equal((await chat({ messages: user("Hello") })).content, SENTENCE);
});

await check("turn after reasoning", async () => {
  const first = await chat({ messages: user(REASONING) });
  equal((await chat({ messages: [...user(REASONING), first, ...user("Hello")] })).content, SENTENCE);
});

await check("stream", async () => {
  let text = "";
  for await (const chunk of stream({ messages: user("Hello") })) text += chunk.choices[0]?.delta.content ?? "";
  equal(text, SENTENCE);
});

await check("usage in streams", async () => {
  let usage;
  const body = { messages: user("Hello"), stream_options: { include_usage: true } };
  for await (const chunk of stream(body, { "extra-parameters": "pass-through" })) usage ??= chunk.usage;
  present(usage?.total_tokens, usage);
});

await check("tools", async () => {
  const tools = [{ type: "function", function: WEATHER }];
  const first = await chat({ messages: user(TOOLS), tools });
  const [call] = first.tool_calls;
  equal([call.function.name, JSON.parse(call.function.arguments)], ["get_weather", { city: "Rome" }]);
  const second = await chat({ messages: [...user(TOOLS), first, { role: "tool", tool_call_id: call.id, content: RESULT }], tools });
  contains(second.content, RESULT);
});

await check("structured output", async () => {
  const response_format = { type: "json_schema", json_schema: { name: "city", strict: true, schema: CITY } };
  const reply = await chat({ messages: user("Name a city."), response_format });
  present(JSON.parse(reply.content).name, reply);
});

await check("errors", async () => {
  await throwsText(() => chat({ messages: user(FAILING) }), FAILURE);
  await throwsText(() => chat({ messages: user("Hello"), temperature: "hot" }), "temperature");
  await throwsText(() => chat({ messages: user("Hello"), model: "no-such-model" }), "no-such-model");
});

await check("errors in streams", async () => {
  await throwsText(async () => {
    for await (const _ of stream({ messages: user(BROKEN) }));
  }, BREAKDOWN);
});

await check("embeddings", async () => {
  const reply = await client.path("/embeddings").post({ body: { model: MODEL, input: ["a", "b"] }, retryOptions });
  if (isUnexpected(reply)) throw reply.body.error ?? reply.body;
  equal(reply.body.data.length, 2);
});
