import { API_KEY, BASE_URL, MODEL } from "./shared/checks.mjs";
import { callTool, checkAgent, runProgram, writeConfig } from "./shared/programs.mjs";

const settings = {
  privacy: { usageStatisticsEnabled: false },
  general: { enableAutoUpdate: false },
  tools: { shell: { enableInteractiveShell: false } }, // a pseudo-terminal sometimes loses what a short command prints
};
await writeConfig(".qwen/settings.json", JSON.stringify(settings));
const direct = { HTTP_PROXY: undefined, HTTPS_PROXY: undefined, http_proxy: undefined, https_proxy: undefined }; // it has no NO_PROXY
const account = { OPENAI_BASE_URL: BASE_URL, OPENAI_API_KEY: API_KEY, OPENAI_MODEL: MODEL };
const run = (prompt) => runProgram(["qwen", "--yolo", "--auth-type", "openai", "-p", prompt], { env: { ...direct, ...account } });
await checkAgent(run, callTool("run_shell_command", { command: "cat note.txt", is_background: false }));
