#!/usr/bin/env bash
# Claude Code speaks only Anthropic's Messages. Here it reads and edits a file, over a provider of any dialect.
#
#   npm install @anthropic-ai/claude-code
#   PATH="$PWD/node_modules/.bin:$PATH" bash examples/claude_code.sh [openai|databricks|azure|mindie|anthropic] [PROTOCOL]
#
# PROTOCOL is what the provider speaks: chat, responses (openai only), or messages (anthropic only).
# The script starts a fake provider and dragoman on loopback ports, asks `claude --print` to change a word in a file of a
# new folder, and stops both. It fails if Claude Code fails, or if the word is not changed.
# The fake plays a model with a script: it calls the tool Read, then Edit, then says that it is done.
set -euo pipefail

dialect=${1:-openai}
case $dialect in anthropic) usual=messages ;; *) usual=chat ;; esac
protocol=${2:-$usual}
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

dragoman=${DRAGOMAN:-uv run dragoman}
$dragoman fake "$dialect" --port "$fake_port" > "$folder/fake.log" 2>&1 &
fake=$!
$dragoman serve --config "$folder/dragoman.yaml" > "$folder/dragoman.log" 2>&1 &
proxy=$!
trap 'kill $fake $proxy 2> /dev/null' EXIT
until (exec 3<> "/dev/tcp/127.0.0.1/$port") 2>/dev/null && (exec 3<> "/dev/tcp/127.0.0.1/$fake_port") 2>/dev/null; do
  sleep 0.2
done

mkdir "$folder/work" "$folder/home"
note=$folder/work/note.txt
echo "The caravan leaves at noon." > "$note"
curl --silent --show-error --fail --request PUT "http://127.0.0.1:$fake_port/_fake/script" --data @- <<JSON
[
  "call(name=Read, arguments={\"file_path\": \"$note\"})",
  "call(name=Edit, arguments={\"file_path\": \"$note\", \"old_string\": \"noon\", \"new_string\": \"dawn\"})",
  "text(say=The caravan now leaves at dawn.)"
]
JSON
(cd "$folder/work" && env HOME="$folder/home" \
  ANTHROPIC_BASE_URL="http://127.0.0.1:$port" ANTHROPIC_AUTH_TOKEN=any ANTHROPIC_MODEL=fake-model \
  DISABLE_AUTOUPDATER=1 DISABLE_TELEMETRY=1 DISABLE_ERROR_REPORTING=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
  claude --print --permission-mode acceptEdits "In note.txt, change noon to dawn." < /dev/null | tee "$folder/answer.txt")
echo "what dragoman did: $folder/dragoman.log"
if [ "$(cat "$note")" = "The caravan leaves at dawn." ] && grep -qF "leaves at dawn" "$folder/answer.txt"; then
  echo "Claude Code has edited the file, over $dialect's $protocol."
else
  echo "Claude Code has not edited the file; it says: $(cat "$note")" >&2
  exit 1
fi
