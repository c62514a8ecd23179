import { API_KEY } from "./shared/checks.mjs";
import { callTool, checkAgent, checkBrokenStreams, runProgram, writeConfig } from "./shared/programs.mjs";

await writeConfig(".codex/config.toml", `
# recipe
# ~/.codex/config.toml
model = MODEL
model_provider = "dragoman"

[model_providers.dragoman]
name = "dragoman"
base_url = BASE_URL
wire_api = "responses"
# end of recipe
env_key = "DRAGOMAN_KEY"
request_max_retries = 0
stream_max_retries = 0
`);

const command = ["codex", "exec", "--skip-git-repo-check", "--sandbox", "read-only"];
const run = (prompt) => runProgram([...command, prompt], { env: { DRAGOMAN_KEY: API_KEY } });
await checkBrokenStreams(await checkAgent(run, callTool("exec_command", { cmd: "cat note.txt" })));
