import { API_KEY, BASE_URL, MODEL } from "./shared/checks.mjs";
import { callTool, checkAgent, runProgram, writeConfig } from "./shared/programs.mjs";

const settings = {
  privacy: { usageStatisticsEnabled: false },
  general: { enableAutoUpdate: false },
  tools: { shell: { enableInteractiveShell: false } }, // a pseudo-terminal loses output more often
};
await writeConfig(".qwen/settings.json", JSON.stringify(settings));
const direct = { HTTP_PROXY: undefined, HTTPS_PROXY: undefined, http_proxy: undefined, https_proxy: undefined }; // it has no NO_PROXY
const account = { OPENAI_BASE_URL: BASE_URL, OPENAI_API_KEY: API_KEY, OPENAI_MODEL: MODEL };
const run = (prompt) => runProgram(["qwen", "--yolo", "--auth-type", "openai", "-p", prompt], { env: { ...direct, ...account } });
const command = "cat note.txt && sleep 1"; // its shell sometimes loses what a shorter command prints
await checkAgent(run, callTool("run_shell_command", { command, is_background: false }));
