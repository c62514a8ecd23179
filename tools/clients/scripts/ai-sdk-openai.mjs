import { API_KEY, BASE_URL, MODEL, SENTENCE, check, equal } from "./shared/checks.mjs";
import { checkChat, checkEmbeddings, checkResponses } from "./shared/ai-sdk.mjs";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText } from "ai";

const dragoman = createOpenAI({ baseURL: BASE_URL, apiKey: API_KEY });

await check("chat", async () => {
  const { text } = await generateText({ model: dragoman.chat(MODEL), prompt: "Hello" });
  equal(text, SENTENCE);
});
await checkChat(dragoman.chat(MODEL));
await checkEmbeddings(dragoman.textEmbeddingModel(MODEL));
await checkResponses(dragoman(MODEL));
