import { API_KEY, BASE_URL, MODEL, SENTENCE, check, equal } from "./shared/checks.mjs";
import { checkChat } from "./shared/ai-sdk.mjs";
import { createAnthropic } from "@ai-sdk/anthropic";
import { generateText } from "ai";

const dragoman = createAnthropic({ baseURL: BASE_URL + "/v1", apiKey: API_KEY });

await check("chat", async () => {
  const { text } = await generateText({ model: dragoman(MODEL), prompt: "Hello" });
  equal(text, SENTENCE);
});
await checkChat(dragoman(MODEL));
