#!/usr/bin/env bash
# Codex speaks only Responses. Here it finishes a task with a shell tool over a provider that speaks only chat, or over the
# Responses API of openai or databricks.
#
#   npm install @openai/codex
#   PATH="$PWD/node_modules/.bin:$PATH" bash examples/codex.sh [openai|mindie|databricks|azure] [chat|responses]
#
# The script starts a fake provider and dragoman on loopback ports, asks `codex exec` to read a file in a new folder, and
# stops both. It fails if Codex fails, or if Codex's answer does not contain the text of the file.
# The message makes the fake call Codex's shell tool; the fake then repeats the tool's output.
set -euo pipefail

dialect=${1:-openai} protocol=${2:-chat}
fake_port=${FAKE_PORT:-9101} port=${PORT:-9100}
folder=$(mktemp -d)
case $dialect in
  openai) base=http://127.0.0.1:$fake_port/v1 ;;
  *) base=http://127.0.0.1:$fake_port ;;
esac
cat > "$folder/dragoman.yaml" <<YAML
server: {port: $port}
providers: {fake: {dialect: $dialect, base_url: "$base", protocols: [$protocol]}}
models: {fake-model: {targets: [{provider: fake}]}}
YAML
mkdir "$folder/codex" "$folder/work"
cat > "$folder/codex/config.toml" <<TOML
model = "fake-model"
model_provider = "dragoman"
[model_providers.dragoman]
name = "dragoman"
base_url = "http://127.0.0.1:$port/v1"
wire_api = "responses"
TOML

dragoman=${DRAGOMAN:-uv run dragoman}
$dragoman fake "$dialect" --port "$fake_port" > "$folder/fake.log" 2>&1 &
fake=$!
$dragoman serve --config "$folder/dragoman.yaml" > "$folder/dragoman.log" 2>&1 &
proxy=$!
trap 'kill $fake $proxy 2> /dev/null' EXIT
until (exec 3<> "/dev/tcp/127.0.0.1/$port") 2>/dev/null && (exec 3<> "/dev/tcp/127.0.0.1/$fake_port") 2>/dev/null; do
  sleep 0.2
done

said="The caravan leaves at noon."
echo "$said" > "$folder/work/note.txt"
task='fake:tools(name=exec_command, arguments={"cmd": "cat note.txt"}) What does note.txt say?'
(cd "$folder/work" && CODEX_HOME="$folder/codex" \
  codex exec --skip-git-repo-check -s read-only -o "$folder/answer.txt" "$task" < /dev/null)
echo "what dragoman did: $folder/dragoman.log"
if grep -qF "$said" "$folder/answer.txt"; then
  echo "Codex has read the file, over $dialect's $protocol."
else
  echo "Codex has not read the file; its last message: $(cat "$folder/answer.txt")" >&2
  exit 1
fi
