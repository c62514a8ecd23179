"""Warnings about what a LiteLLM configuration says and dragoman's does not."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.adapters.paths import Path
from dragoman.proxy.config.document import Document

from .values import read_number

__all__ = ["explain_setting", "warn_of_deployment", "warn_of_unreadable_values"]

_NONE = "dragoman has no such setting"
_RETRIES = "retries.attempts is for the whole file"
_OAUTH = "to get tokens from Microsoft Entra ID, write oauth at the provider"
_PRICE = "write price at the target, for a million tokens"
_PROMETHEUS = "for Prometheus set server.admin_port, for OpenTelemetry server.tracing; dragoman has no others"
_REASONS = {
    **dict.fromkeys(("max_retries", "num_retries"), _RETRIES),
    **dict.fromkeys(("tenant_id", "client_id", "client_secret"), _OAUTH),
    **dict.fromkeys(("input_cost_per_token", "output_cost_per_token"), _PRICE),
    **dict.fromkeys(("callbacks", "success_callback", "failure_callback"), _PROMETHEUS),
    "azure_ad_token": "write it as api_key, with auth: bearer, at the provider",
    "max_parallel_requests": "write rate.concurrency at the provider or the key",
    "allowed_fails": "breaker.failures is for the whole file",
    "cooldown_time": "breaker.pause is for the whole file",
    "extra_headers": "write headers at the provider",
    "organization": "write headers with OpenAI-Organization at the provider",
    "additional_drop_params": "write lacks, and policy: {unsupported: drop}, at the target",
    "allowed_openai_params": "write takes at the target",
    "default_fallbacks": "write fallbacks at each model",
    "json_logs": "see `dragoman serve --log-format`",
    "max_budget": "write budget at a key",
    "include": "import each of these files too, and put their models into one file",
    "ssl_verify": "certificates are always checked; tls.ca at the provider names other authorities",
    "telemetry": "dragoman sends no telemetry",
    "set_verbose": "see `dragoman serve --log-level`",
    "cache": "dragoman has no cache of replies",
    "environment_variables": "set them in the environment, or in a file given with --env-file",
}
_LABELS = {"id", "base_model", "mode"}
"""Settings of model_info without a meaning for dragoman, and the one that is read."""


def explain_setting(name: str) -> str:
    """Why the setting is not converted, or what to write instead."""
    return f"{name}: {_REASONS.get(name, _NONE)}"


def warn_of_deployment(document: Document, position: int) -> None:
    """Warn of the settings outside litellm_params, which LiteLLM reads too."""
    path: Path = ("model_list", position)
    for name in document.mapping(*path):
        if name not in ("model_name", "litellm_params", "model_info"):
            _add_warning(document, (*path, name), explain_setting(name))
    for name in document.mapping(*path, "model_info"):
        if name not in _LABELS:
            _add_warning(document, (*path, "model_info", name), explain_setting(name))


def warn_of_unreadable_values(document: Document, path: Path, numbers: Iterable[str], flags: Iterable[str]) -> None:
    """Warn of settings below a path that would be converted if they were numbers above 0, or true or false."""
    for name in numbers:
        node = document.find((*path, name))
        if node is not None and node.value not in (None, 0) and read_number(document, (*path, name)) is None:
            _add_warning(document, (*path, name), f"{name}: only a number above 0 can be converted")
    for name in flags:
        node = document.find((*path, name))
        if node is not None and not (node.value is None or isinstance(node.value, bool)):
            _add_warning(document, (*path, name), f"{name}: only true or false can be converted")


def _add_warning(document: Document, path: Path, message: str) -> None:
    document.add_problem(path, "not-carried", message, severity="warning", at_key=True)
