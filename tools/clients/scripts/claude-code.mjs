import { callTool, checkAgent, checkBrokenStreams, runProgram, writeConfig } from "./shared/programs.mjs";

await writeConfig("claude.sh", `
# recipe
export ANTHROPIC_BASE_URL=BASE_URL
export ANTHROPIC_AUTH_TOKEN=API_KEY
export ANTHROPIC_MODEL=MODEL
# end of recipe
exec claude --print "$1"
`);

const env = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  CLAUDE_CODE_MAX_RETRIES: "0",
  DISABLE_AUTOUPDATER: "1",
  DISABLE_ERROR_REPORTING: "1",
  DISABLE_TELEMETRY: "1",
};
const run = (prompt) => runProgram(["sh", "claude.sh", prompt], { env });
await checkBrokenStreams(await checkAgent(run, callTool("Read", { file_path: `${process.cwd()}/note.txt` })));
