import { API_KEY, BASE_URL, MODEL } from "./shared/checks.mjs";
import { callTool, checkAgent, checkBrokenStreams, runProgram } from "./shared/programs.mjs";

const env = { CLINE_SESSION_BACKEND_MODE: "local", CLINE_NO_AUTO_UPDATE: "1" }; // otherwise it leaves a server behind
await runProgram(["cline", "auth", "--provider", "openai", "--apikey", API_KEY, "--baseurl", BASE_URL, "--modelid", MODEL], { env });
const run = (prompt) => runProgram(["cline", "--timeout", "60", "--retries", "1", "-P", "openai-compatible", "-m", MODEL, prompt], { env });
await checkBrokenStreams(await checkAgent(run, callTool("run_commands", { commands: ["cat note.txt"] })));
