import { API_KEY, MODEL, ORIGIN, SENTENCE, check, equal } from "./shared/checks.mjs";
import { checkChat, checkEmbeddings, checkResponses } from "./shared/ai-sdk.mjs";
import { createAzure } from "@ai-sdk/azure";
import { generateText } from "ai";

const options = { apiKey: API_KEY, baseURL: `${ORIGIN}/openai` };
const v1 = createAzure({ ...options, baseURL: `${ORIGIN}/openai/v1` });
const deployments = createAzure({ ...options, useDeploymentBasedUrls: true, apiVersion: "2024-10-21" });

await check("chat", async () => {
  for (const azure of [v1, deployments]) equal((await generateText({ model: azure.chat(MODEL), prompt: "Hello" })).text, SENTENCE);
});
await checkChat(deployments.chat(MODEL));
await checkEmbeddings(deployments.textEmbeddingModel(MODEL));
await checkResponses(v1.responses(MODEL));
