import { MODEL } from "./shared/checks.mjs";
import { callTool, checkAgent, runProgram, writeConfig } from "./shared/programs.mjs";

await writeConfig("opencode.json", `
// recipe
// opencode.json
{ "provider": { "dragoman": {
  "npm": "@ai-sdk/openai-compatible",
  "options": { "baseURL": BASE_URL, "apiKey": API_KEY },
  "models": { MODEL: {} }
} } }
// end of recipe
`);
const env = { OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1" };
const command = ["opencode", "run", "--auto", "--pure", "--title", "note", "--model", `dragoman/${MODEL}`];
const run = (input) => runProgram(command, { input, env });
await checkAgent(run, callTool("bash", { command: "cat note.txt", description: "Read the note" }));
