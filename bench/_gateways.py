"""The gateways that `contract_matrix.py` compares: how each one is installed, configured and started."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = [
    "CLIENTS",
    "GATEWAYS",
    "KEY",
    "LACKS",
    "MODEL",
    "OVERRIDES",
    "SERVED",
    "SKIPPED",
    "Client",
    "Gateway",
    "Json",
    "own_program",
]

KEY, MODEL, TEXT_MODEL = "sk-contract", "m", "m-text"
LITELLM, ROSETTA = "litellm[proxy]==1.109.1", "llm-rosetta[gateway]==0.13.0"
OVERRIDES = ("certifi>=2026.10.1", "litellm-proxy-extras>=0.4")
"""Replace two of litellm's pins, of versions that not every registry has: the certificates, and the migrations of a
database that is not used here."""

SERVED = {
    "openai": ("chat", "completions", "embeddings"),
    "databricks": ("chat", "completions", "embeddings"),
    "azure": ("chat", "embeddings"),
    "mindie": ("chat",),
    "anthropic": ("messages",),
}
"""Maps an upstream to the protocols of its provider."""

LACKS = {
    "openai": ("matched_stop",),
    "databricks": ("seed", "penalties", "parallel_off", "dimensions", "tokens", "completion_logprobs", "matched_stop"),
    "azure": (
        *("n", "logprobs", "stream_usage", "reasoning", "parallel_off", "tokens", "instruction", "sampling"),
        "matched_stop",
    ),
    "mindie": ("parallel_off", "matched_stop"),
    "anthropic": ("n", "logprobs", "seed", "penalties", "tokens", "json_object", "temperature_of_2"),
}
"""Maps an upstream to the capabilities that its API lacks. Cases that need one are skipped for every gateway."""

SKIPPED = ("patience",)
"""Capabilities whose cases are skipped for every gateway. The other gateways have a provider timeout of 15 seconds, so
that cases with a silent provider end; `patience` needs a longer one."""

Json = dict[str, Any]
_ALL = ("openai", "databricks", "azure", "mindie", "anthropic")


@dataclass(frozen=True)
class Client:
    """The clients of a measurement: their dialect, the path of their base address, the fakes that also run alone, each
    with the path of its own base address, and the page. `protocols` are asked for whatever the provider serves."""

    dialect: str
    path: str
    fakes: Mapping[str, str]
    protocols: frozenset[str]
    page: str
    lacks: Sequence[str] = ()
    has_known_defects: bool = False
    """Whether the page also says what was known of the gateways before."""
    follows_provider: bool = False
    """Whether the gateway is also asked for the protocols of the provider."""


CLIENTS = {
    "openai": Client(
        "openai",
        "/v1",
        {"openai": "/v1", "databricks": "", "azure": "", "mindie": ""},
        frozenset({"chat", "responses", "models"}),
        "contract-matrix.md",
        has_known_defects=True,
        follows_provider=True,
    ),
    "anthropic": Client(
        "anthropic",
        "",
        {"anthropic": ""},
        frozenset({"messages", "count_tokens", "models"}),
        "messages-matrix.md",
        ("strict_fields",),
    ),
}


def own_program(name: str) -> Path:
    return Path(sys.executable).with_name(name)


@dataclass(frozen=True)
class Gateway:
    """A gateway. `upstreams` are the providers that it supports, `clients` the dialects in which it is called.
    `configuration` gets the upstream's dialect, its origin and the gateway's own port; `start` gets the folder of the
    environment, the configuration file and the port. `text_model` is the model for completions, `seed` a Python
    script to run once before the start."""

    name: str
    upstreams: Sequence[str]
    configuration: Callable[[str, str, int], Json]
    start: Callable[[Path, Path, int], list[str]]
    requirement: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    text_model: str = MODEL
    seed: str = ""
    clients: Sequence[str] = ("openai",)

    @property
    def package(self) -> str:
        return self.requirement.partition("[")[0] or "dragoman"


def dragoman(upstream: str, origin: str, port: int) -> Json:
    kind = {"kind": "provisioned-throughput"} if upstream == "databricks" else {}
    base = origin + ("/v1" if upstream == "openai" else "")
    given = {"base_url": base, "api_key": "sk-upstream", "protocols": SERVED[upstream]}
    return {
        "server": {"host": "127.0.0.1", "port": port},
        "keys": [{"name": "contract", "key": KEY, "models": ["*"]}],
        "providers": {"p": {"dialect": upstream, **given, **kind}},
        "models": {MODEL: {"targets": [{"provider": "p", "model": "fake-model"}]}},
    }


def litellm(upstream: str, origin: str, port: int) -> Json:
    """Build the configuration, with what LiteLLM's map of models says of known models: tools, embedding dimensions."""
    prefix, base, more = {
        "openai": ("openai", f"{origin}/v1", {"use_chat_completions_api": True}),
        "databricks": ("databricks", f"{origin}/serving-endpoints", {}),
        "azure": ("azure_ai", origin, {"api_version": "2024-05-01-preview"}),
        "mindie": ("openai", f"{origin}/v1", {"use_chat_completions_api": True}),
        "anthropic": ("anthropic", origin, {}),
    }[upstream]
    given = {"api_base": base, "api_key": "sk-upstream"}
    abilities = ("function_calling", "parallel_function_calling", "tool_choice", "response_schema", "vision")
    info = {"mode": "chat", **{f"supports_{ability}": True for ability in abilities}}
    chat = {"model": f"{prefix}/fake-model", "allowed_openai_params": ["dimensions"], **given, **more}
    text = {"model": "text-completion-openai/fake-model", **given}
    return {
        "model_list": [
            {"model_name": MODEL, "litellm_params": chat, "model_info": info},
            {"model_name": TEXT_MODEL, "litellm_params": text},
        ],
        "litellm_settings": {"request_timeout": 15, "telemetry": False},
        "router_settings": {"disable_cooldowns": True},
        "general_settings": {"master_key": KEY},
    }


def litellm_that_drops(upstream: str, origin: str, port: int) -> Json:
    plain = litellm(upstream, origin, port)
    return plain | {"litellm_settings": {**plain["litellm_settings"], "drop_params": True}}


def start_litellm(venv: Path, file: Path, port: int) -> list[str]:
    options = ["--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
    return [str(venv / "bin" / "litellm"), "--config", str(file), *options]


def rosetta(upstream: str, origin: str, port: int) -> Json:
    provider = {"type": "openai", "base_url": f"{origin}/v1", "api_key": "sk-upstream"}
    return {
        "providers": {"p": {**provider, "embedding_format": "openai", "embedding_path": "/embeddings"}},
        "models": {MODEL: {"provider": "p", "upstream_model": "fake-model"}},
        "embedding_providers": {"e": {**provider, "embedding_path": "/embeddings"}},
        "embedding_models": {MODEL: "e"},
        "server": {"host": "127.0.0.1", "port": port, "upstream_timeout": 15},
    }


_QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False", "DO_NOT_TRACK": "1"}

GATEWAYS = (
    Gateway(
        "dragoman",
        _ALL,
        dragoman,
        lambda venv, file, port: [str(own_program("dragoman")), "serve", "--config", str(file)],
        clients=("openai", "anthropic"),
    ),
    Gateway(
        "LiteLLM",
        _ALL,
        litellm,
        start_litellm,
        LITELLM,
        _QUIET,
        TEXT_MODEL,
        clients=("openai", "anthropic"),
    ),
    Gateway(
        "LiteLLM, drop_params", ("databricks", "mindie"), litellm_that_drops, start_litellm, LITELLM, _QUIET, TEXT_MODEL
    ),
    Gateway(
        "llm-rosetta",
        ("openai", "mindie"),
        rosetta,
        lambda venv, file, port: [str(venv / "bin" / "llm-rosetta-gateway"), "--no-banner", "--config", str(file)],
        ROSETTA,
        seed=f"from llm_rosetta.gateway.keystore import KeyStore as K; K('keys.db').create(manual_key='{KEY}')",
    ),
)
