"""The file that `dragoman init` writes: the providers and models that were found, and commented suggestions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dragoman.local_engine.embedded import NAME

from .values import make_model_name

__all__ = ["MOST_NAMES", "StarterProvider", "write_starter"]

MOST_NAMES = 20
"""The most models of a provider that are written one by one; for more, the file has patterns."""


@dataclass(frozen=True, slots=True)
class StarterProvider:
    """A provider of the file: its settings as the configuration has them, the patterns of names that only it has, and
    the models that it lists, if it was asked."""

    name: str
    settings: Mapping[str, str | Sequence[str]]
    patterns: Sequence[str] = ()
    models: Sequence[str] = field(default_factory=tuple)


def write_starter(providers: Sequence[StarterProvider], *, embedded: bool) -> str:
    """The text of a file with these providers, and, if `embedded`, with the model that comes with dragoman. One of the
    two is needed: a configuration without models is not valid."""
    models = dict(_list_models(providers))
    plain = [name for name in models if "*" not in name]
    default = f"  default_model: {json.dumps(plain[0])}   # for requests that name none\n" if plain else ""
    if embedded:
        models[NAME] = _write_target("embedded")
    entries = [f"  {_quote(name)}: {{targets: [{target}]}}\n" for name, target in models.items()]
    return "".join(
        [
            _HEAD.replace("{default}", default),
            "providers:\n",
            *(line for provider in providers for line in _write_provider(provider)),
            _EMBEDDED if embedded else "",
            _PROVIDER_EXAMPLES,
            _MODELS,
            *entries,
            _REST,
        ]
    )


def _write_provider(provider: StarterProvider) -> Iterator[str]:
    yield f"  {provider.name}:\n"
    for key, value in provider.settings.items():
        yield f"    {key}: {value if isinstance(value, str) else f'[{chr(44).join(value)}]'.replace(',', ', ')}\n"


def _list_models(providers: Sequence[StarterProvider]) -> Iterator[tuple[str, str]]:
    """Each model: its public name, and its target. A name that two providers have is the first one's, and below the
    other's own name the other's."""
    taken: set[str] = set()
    for provider in providers:
        listed = provider.models if 0 < len(provider.models) <= MOST_NAMES else ()
        for name in listed:
            public = make_model_name(name) or provider.name
            public = f"{provider.name}/{public}" if public in taken or public == NAME else public
            if public in taken:
                continue
            taken.add(public)
            yield public, _write_target(provider.name, **({} if public == name else {"model": name}))
        if listed:
            continue
        if len(providers) == 1:
            yield "*", _write_target(provider.name)
            continue
        prefix = f"{provider.name}/"
        yield f"{prefix}*", _write_target(provider.name, strip=prefix)
        yield from ((pattern, _write_target(provider.name)) for pattern in provider.patterns)


def _write_target(provider: str, **settings: str) -> str:
    text = "".join(f", {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in settings.items())
    return f"{{provider: {provider}{text}}}"


def _quote(name: str) -> str:
    return name if name == NAME else json.dumps(name)


_EMBEDDED = """\
  embedded:                         # dragoman-mini, the tiny model inside the package
    engine: local
    device: cpu
    threads: 1
    protocols: [chat, completions]
"""

_HEAD = """\
# yaml-language-server: $schema=dragoman.schema.json
# For help in your editor, write that file to the same folder: dragoman schema config > dragoman.schema.json
#
# dragoman check    lists what is wrong with this file
# dragoman serve    serves the models

# ${NAME} is a variable of the environment (or of the file .env next to this one), ${NAME:-default} has a default,
# ${file:/run/secrets/name} is the text of a file.

server:
  host: 127.0.0.1
  port: 8080
{default}
# The keys that clients present. Without keys dragoman listens on a loopback address only, such as 127.0.0.1.
# keys:
#   - {name: me, key: "${DRAGOMAN_KEY}"}

# Upstreams: dialect, address, credential.
"""

_PROVIDER_EXAMPLES = """\
  # openai:
  #   dialect: openai
  #   base_url: https://api.openai.com/v1
  #   api_key: ${OPENAI_API_KEY}
  #   protocols: [chat, responses, embeddings]
  #   # api_key_file: /run/secrets/openai       # instead of api_key; read again when it changes
  #   # proxy: http://me:${PROXY_PASSWORD}@proxy.example.com:3128
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

"""

_MODELS = """\
# Models that clients can ask for. A name with * is a pattern: its targets get the name that the client asked for.
models:
"""

_REST = """\
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
