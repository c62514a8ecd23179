"""The file that `dragoman init` writes."""

from __future__ import annotations

__all__ = ["STARTER"]

STARTER = """\
# yaml-language-server: $schema=dragoman.schema.json
# For help in your editor, write that file to the same folder: dragoman schema config > dragoman.schema.json
#
# dragoman check    lists what is wrong with this file
# dragoman serve    serves the models

# ${NAME} is a variable of the environment (or of a file given with --env-file), ${NAME:-default} has a default,
# ${file:/run/secrets/name} is the text of a file.

server:
  host: 127.0.0.1
  port: 8080

# The keys that clients present. Without keys dragoman listens on a loopback address only, such as 127.0.0.1.
# keys:
#   - {name: me, key: "${DRAGOMAN_KEY}"}

# Upstreams: dialect, address, credential.
providers:
  openai:
    dialect: openai
    base_url: https://api.openai.com/v1
    api_key: ${OPENAI_API_KEY}
    protocols: [chat, responses, embeddings]
    # api_key_file: /run/secrets/openai         # instead of api_key; read again when it changes
    # proxy: http://me:${PROXY_PASSWORD}@proxy.example.com:3128
  # lakehouse:
  #   dialect: databricks
  #   base_url: https://adb-1234567890123456.7.azuredatabricks.net
  #   api_key: ${DATABRICKS_TOKEN}  # or a service principal's tokens:
  #   # oauth:
  #   #   token_url: https://adb-1234567890123456.7.azuredatabricks.net/oidc/v1/token
  #   #   client_id: ${DATABRICKS_CLIENT_ID}
  #   #   client_secret: ${DATABRICKS_CLIENT_SECRET}
  #   #   scope: all-apis
  #   #   auth_style: basic
  #   kind: pay-per-token           # or provisioned-throughput
  # foundry:
  #   dialect: azure
  #   base_url: https://my-resource.services.ai.azure.com/models
  #   api_key: ${AZURE_INFERENCE_CREDENTIAL}
  # azure-openai:
  #   dialect: openai
  #   address: azure-openai         # a target's model is the name of a deployment
  #   base_url: https://my-resource.openai.azure.com
  #   api_version: 2024-10-21
  #   api_key: ${AZURE_OPENAI_API_KEY}
  # claude:
  #   dialect: anthropic
  #   base_url: https://api.anthropic.com
  #   api_key: ${ANTHROPIC_API_KEY}
  # ascend:
  #   dialect: mindie
  #   base_url: https://10.0.0.8:1025
  #   tls: {ca: ca.pem}             # relative to this file's folder

# Models that clients can ask for. A name with * is a pattern: its targets get the name that the client asked for.
models:
  "gpt-*": {targets: [{provider: openai}]}
  "text-embedding-*": {targets: [{provider: openai}]}
  # fast:
  #   targets:                      # drawn by weight
  #     - {provider: lakehouse, model: databricks-meta-llama-3-3-70b-instruct, weight: 3}
  #     - {provider: ascend, model: qwen3-32b, weight: 1}
  #   fallbacks: [careful]          # tried when these fail
  # careful: {targets: [{provider: openai, model: gpt-5}]}

# What to do if a request or a reply does not fit; providers, models and targets may have policies of their own.
policy:
  preset: faithful                  # or lenient: drop and clamp what a target does not accept; or strict
  # unsupported: drop               # parameters that the target lacks and that would change the answer
  # out_of_range: clamp             # or error, drop
  # replies: report                 # or off, repair, strict
  # emulate_completions: true       # completions over providers that only chat; the model answers the prompt

# Where responses are stored, so that clients can continue them by previous_response_id; `kind: none` stores none.
# Default path: dragoman/responses.db in $XDG_STATE_HOME, or in ~/.local/state if that is not set.
store: {kind: sqlite, retention: 30d, max_size: 1GiB}   # path: responses.db

timeouts: {connect: 5s, first_token: 120s, inter_token: 60s, total: 600s}
"""
