import { API_KEY, BASE_URL, BREAKDOWN, BROKEN, FAILING, FAILURE, MODEL, REASONING, RESULT, SENTENCE, TOOLS, WEATHER } from "./shared/checks.mjs";
import { check, contains, equal, present, throwsText, user } from "./shared/checks.mjs";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { z } from "zod";

// recipe
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: BASE_URL, apiKey: API_KEY });
// end of recipe
const once = new Anthropic({ baseURL: BASE_URL, apiKey: API_KEY, maxRetries: 0 });
const limits = { model: MODEL, max_tokens: 1024 };
const tools = [{ name: WEATHER.name, description: WEATHER.description, input_schema: WEATHER.parameters }];
const City = z.object({ name: z.string(), inhabitants: z.number() });
const readText = (message) => message.content.filter((block) => block.type === "text").map((block) => block.text).join("");
const stream = (text, more = {}) => once.messages.stream({ ...limits, messages: user(text), ...more }).finalMessage();

function findCall(message) {
  const [call] = message.content.filter((block) => block.type === "tool_use");
  equal([call.name, call.input, message.stop_reason], ["get_weather", { city: "Rome" }, "tool_use"]);
  return call;
}

await check("chat", async () => {
  // recipe
  const message = await client.messages.create({
    model: MODEL,
    max_tokens: 1024,
    messages: [{ role: "user", content: "Hello" }],
  });
  console.log(message.content[0].text);
  // end of recipe
  equal([readText(message), message.stop_reason], [SENTENCE, "end_turn"]);
});
await check("turn after reasoning", async () => {
  const asked = user(REASONING);
  const first = await once.messages.create({ ...limits, messages: asked });
  equal(first.content.map((block) => block.type), ["thinking", "text"]);
  const talk = [...asked, { role: "assistant", content: first.content }, ...user("Hello")];
  equal(readText(await once.messages.create({ ...limits, messages: talk })), SENTENCE);
});
await check("stream", async () => equal(readText(await stream("Hello")), SENTENCE));
await check("usage in streams", async () => {
  const { usage } = await stream("Hello");
  present(usage.input_tokens && usage.output_tokens, usage);
});
await check("tools", async () => {
  const reply = await once.messages.create({ ...limits, messages: user(TOOLS), tools });
  const content = [{ type: "tool_result", tool_use_id: findCall(reply).id, content: RESULT }];
  const talk = [...user(TOOLS), { role: "assistant", content: reply.content }, { role: "user", content }];
  contains(readText(await once.messages.create({ ...limits, messages: talk, tools })), RESULT);
});
await check("streamed tools", async () => findCall(await stream(TOOLS, { tools })));
await check("structured output", async () => {
  const reply = await once.messages.parse({ ...limits, messages: user("Name a city."), output_config: { format: zodOutputFormat(City) } });
  present(reply.parsed_output?.name, reply);
});
await check("agent", async () => {
  const get_weather = betaZodTool({ ...WEATHER, inputSchema: z.object({ city: z.string() }), run: () => RESULT });
  for (const streamed of [false, true]) {
    const runner = once.beta.messages.toolRunner({ ...limits, messages: user(TOOLS), tools: [get_weather], stream: streamed });
    contains(readText(await runner.runUntilDone()), RESULT);
  }
});
await check("errors", async () => {
  const cases = [[FAILING, 400, "invalid_request_error"], ["Hello fake:status-429", 429, "rate_limit_error"]];
  for (const [text, status, type] of cases) {
    const error = await throwsText(() => once.messages.create({ ...limits, messages: user(text) }), text === FAILING ? FAILURE : "");
    equal([error.status, error.type], [status, type]);
    present(error.requestID, error);
  }
});
await check("errors in streams", () => throwsText(() => stream(BROKEN), BREAKDOWN));
await check("token count", async () => {
  const counted = await once.messages.countTokens({ model: MODEL, messages: user("Hello") });
  present(counted.input_tokens, counted);
});
await check("models", async () => {
  const names = [];
  for await (const model of once.models.list()) names.push(model.id);
  present(names.includes(MODEL), names);
});
