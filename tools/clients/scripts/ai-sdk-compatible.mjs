import { API_KEY, BASE_URL, MODEL, SENTENCE, check, equal } from "./shared/checks.mjs";
import { checkChat, checkEmbeddings } from "./shared/ai-sdk.mjs";
// recipe
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText } from "ai";

const options = { includeUsage: true, supportsStructuredOutputs: true };
const dragoman = createOpenAICompatible({ name: "dragoman", baseURL: BASE_URL, apiKey: API_KEY, ...options });
// end of recipe

await check("chat", async () => {
  // recipe
  const { text } = await generateText({ model: dragoman(MODEL), prompt: "Hello" });
  console.log(text);
  // end of recipe
  equal(text, SENTENCE);
});
await checkChat(dragoman(MODEL));
await checkEmbeddings(dragoman.embeddingModel(MODEL));
