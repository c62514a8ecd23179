import { API_KEY, BASE_URL, BREAKDOWN, BROKEN, FAILING, FAILURE, MODEL, REASONING, RESULT, SENTENCE, TOOLS } from "./shared/checks.mjs";
import { WEATHER, check, contains, equal, present, throwsText, user } from "./shared/checks.mjs";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
// recipe
import OpenAI from "openai";

const client = new OpenAI({ baseURL: BASE_URL, apiKey: API_KEY });
// end of recipe

const City = z.object({ name: z.string(), inhabitants: z.number() });
const WEATHER_TOOL = { type: "function", function: WEATHER };
client.maxRetries = 0;

await check("chat", async () => {
  // recipe
  const reply = await client.chat.completions.create({ model: MODEL, messages: [{ role: "user", content: "Hello" }] });
  console.log(reply.choices[0].message.content);
  // end of recipe
  equal(reply.choices[0].message.content, SENTENCE);
  present(reply.usage?.total_tokens, reply);
});

await check("turn after reasoning", async () => {
  const messages = user(REASONING);
  messages.push((await client.chat.completions.create({ model: MODEL, messages })).choices[0].message, ...user("Hello"));
  equal((await client.chat.completions.create({ model: MODEL, messages })).choices[0].message.content, SENTENCE);
});

await check("stream", async () => {
  const reply = await client.chat.completions.stream({ model: MODEL, messages: user("Hello") }).finalChatCompletion();
  equal([reply.choices[0].message.content, reply.choices[0].finish_reason], [SENTENCE, "stop"]);
});

await check("usage in streams", async () => {
  const options = { stream_options: { include_usage: true } };
  const reply = await client.chat.completions.stream({ model: MODEL, messages: user("Hello"), ...options }).finalChatCompletion();
  present(reply.usage?.total_tokens, reply);
});

await check("tools", async () => {
  const messages = user(TOOLS);
  const first = await client.chat.completions.create({ model: MODEL, messages, tools: [WEATHER_TOOL] });
  const [call] = first.choices[0].message.tool_calls;
  equal([call.function.name, JSON.parse(call.function.arguments)], ["get_weather", { city: "Rome" }]);
  messages.push(first.choices[0].message, { role: "tool", tool_call_id: call.id, content: RESULT });
  const second = await client.chat.completions.create({ model: MODEL, messages, tools: [WEATHER_TOOL] });
  contains(second.choices[0].message.content, RESULT);
});

await check("streamed tools", async () => {
  const given = [];
  const run = (city) => (given.push(city), RESULT);
  const tools = [{ type: "function", function: { ...WEATHER, parse: JSON.parse, function: run } }];
  const text = await client.chat.completions.runTools({ model: MODEL, stream: true, messages: user(TOOLS), tools }).finalContent();
  equal(given, [{ city: "Rome" }]);
  contains(text, RESULT);
});

await check("one call at a time", async () => {
  const tools = [WEATHER_TOOL, { type: "function", function: { ...WEATHER, name: "get_time" } }];
  const reply = await client.chat.completions.create({ model: MODEL, messages: user(TOOLS), tools, parallel_tool_calls: false });
  equal(reply.choices[0].message.tool_calls.length, 1);
});

await check("structured output", async () => {
  const format = zodResponseFormat(City, "city");
  const reply = await client.chat.completions.parse({ model: MODEL, messages: user("Name a city."), response_format: format });
  present(reply.choices[0].message.parsed.name, reply);
});

await check("errors", async () => {
  const thrown = await throwsText(() => client.chat.completions.create({ model: MODEL, messages: user(FAILING) }), FAILURE);
  equal(thrown instanceof OpenAI.BadRequestError, true);
});

await check("errors in streams", async () => {
  await throwsText(() => client.chat.completions.stream({ model: MODEL, messages: user(BROKEN) }).finalChatCompletion(), BREAKDOWN);
});

await check("embeddings", async () => {
  const reply = await client.embeddings.create({ model: MODEL, input: ["a", "b"] });
  equal([reply.data.length, typeof reply.data[0].embedding[0]], [2, "number"]);
});

await check("completions", async () => {
  present((await client.completions.create({ model: MODEL, prompt: "Hello" })).choices[0].text, "the choice");
});

await check("responses", async () => {
  const reply = await client.responses.create({ model: MODEL, input: "Hello", instructions: "Be brief." });
  equal(reply.output_text, SENTENCE);
  const parsed = await client.responses.parse({ model: MODEL, input: "Name a city.", text: { format: zodTextFormat(City, "city") } });
  present(parsed.output_parsed.name, parsed);
});

await check("streamed responses", async () => {
  const reply = await client.responses.stream({ model: MODEL, input: "Hello" }).finalResponse();
  equal(reply.output_text, SENTENCE);
  present(reply.usage?.total_tokens, reply);
});

await check("responses with tools", async () => {
  const tools = [{ type: "function", strict: true, ...WEATHER }];
  const first = await client.responses.create({ model: MODEL, input: TOOLS, tools });
  const call = first.output.find((item) => item.type === "function_call");
  present(call, first);
  const result = { type: "function_call_output", call_id: call.call_id, output: RESULT };
  const second = await client.responses.create({ model: MODEL, input: [...user(TOOLS), ...first.output, result], tools });
  contains(second.output_text, RESULT);
});
