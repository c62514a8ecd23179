"""Conversion of a LiteLLM proxy configuration.

Each setting is either converted or reported as a warning at its place in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from dragoman.adapters.paths import Path as KeyPath
from dragoman.proxy.config.document import Document
from dragoman.proxy.config.problems import Problem
from dragoman.proxy.config.yaml_reader import read_document

from .deployments import Deployments
from .left_out import explain_setting, warn_of_unreadable_values
from .routing import add_aliases, add_fallbacks
from .values import convert_duration, convert_text

__all__ = ["import_config"]

_SECTIONS = {"model_list", "router_settings", "litellm_settings", "general_settings"}
_FALLBACKS = {"fallbacks", "context_window_fallbacks", "content_policy_fallbacks"}
_BALANCE = {"routing_strategy"}
_STRATEGIES = {"simple-shuffle": "weighted", "least-busy": "least-busy", "latency-based-routing": "fastest"}
_CONVERTED = {
    "router_settings": {*_FALLBACKS, "model_group_alias", "timeout", "stream_timeout", "num_retries", *_BALANCE},
    "litellm_settings": {*_FALLBACKS, "drop_params", "request_timeout", "num_retries"},
    "general_settings": {"master_key"},
}
_DEFAULTS: Mapping[str, object] = {"telemetry": False, "set_verbose": False}


def import_config(file: Path) -> tuple[str, list[Problem]]:
    """The text of the converted configuration, and a warning for each setting that was left out. Raises ConfigErrors if
    the file cannot be read or has no model that can be converted."""
    document = read_document(file)
    document.problems.clear()  # they are about dragoman's own configuration
    if not document.items("model_list"):
        hint = explain_setting("include") if document.find(("include",)) is not None else ""
        message = "there is no model_list: is this a configuration of the LiteLLM proxy?"
        raise document.fatal_error(None, "no-models", message, hint=hint)
    config: dict[str, Any] = {}
    if (key := convert_text(document, ("general_settings", "master_key"), "DRAGOMAN_KEY")) is not None:
        config["keys"] = [{"name": "master", "key": key}]
    deployments = Deployments(document)
    for position, _ in enumerate(document.items("model_list")):
        deployments.add(position)
    models = deployments.models()
    add_aliases(document, models)
    add_fallbacks(document, models)
    _add_balance(document, models)
    _warn_of_other_settings(document)
    if not models:
        raise document.fatal_error(None, "no-models", "none of the models could be converted")
    config |= {"providers": deployments.providers(), "models": models, **_convert_settings(document, models)}
    return _serialize(file, config), sorted(document.problems, key=lambda problem: (problem.line, problem.column))


def _add_balance(document: Document, models: dict[str, Any]) -> None:
    """Set the order of targets of every model that has several."""
    path = ("router_settings", "routing_strategy")
    strategy = document.text(*path)
    if strategy is None:
        return
    if strategy not in _STRATEGIES:
        known = ", ".join(_STRATEGIES)
        message = f"routing_strategy: dragoman has no equivalent of {strategy}; it has those of {known}"
        document.add_problem(path, "not-carried", message, severity="warning", at_key=True)
    elif (balance := _STRATEGIES[strategy]) != "weighted":
        for model in models.values():
            if len(model["targets"]) > 1:
                model["balance"] = balance


def _convert_settings(document: Document, models: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    node = document.find(("litellm_settings", "drop_params"))
    if node is not None and node.value is True:
        found["policy"] = {"unsupported": "drop"}
    total = convert_duration(document, ("router_settings", "timeout")) or convert_duration(
        document, ("litellm_settings", "request_timeout")
    )
    retries = document.find(("router_settings", "num_retries")) or document.find(("litellm_settings", "num_retries"))
    if retries is not None and isinstance(retries.value, int) and retries.value >= 0:
        fallbacks = max(len(model.get("fallbacks", ())) for model in models.values())
        found["retries"] = {"attempts": retries.value + 1 + fallbacks}  # LiteLLM does not count fallbacks as retries
    first = convert_duration(document, ("router_settings", "stream_timeout"))
    timeouts = {name: value for name, value in (("total", total), ("first_token", first)) if value is not None}
    return {**found, "timeouts": timeouts} if timeouts else found


def _warn_of_other_settings(document: Document) -> None:
    """Add a warning for each setting that has no equivalent, or whose value has none."""
    warn_of_unreadable_values(document, ("router_settings",), ("timeout", "stream_timeout", "num_retries"), ())
    warn_of_unreadable_values(document, ("litellm_settings",), ("request_timeout", "num_retries"), ("drop_params",))
    for section in document.mapping():
        if section not in _SECTIONS:
            _warn_of_setting(document, (section,), section)
        for name in document.mapping(section):
            if section in _CONVERTED and name not in _CONVERTED[section]:
                _warn_of_setting(document, (section, name), name)


def _warn_of_setting(document: Document, path: KeyPath, name: str) -> None:
    node = document.find(path)
    if node is None or (name in _DEFAULTS and node.value == _DEFAULTS[name]):
        return
    document.add_problem(path, "not-carried", explain_setting(name), severity="warning", at_key=True)


def _serialize(file: Path, config: dict[str, Any]) -> str:
    stream = StringIO()
    yaml = YAML()
    yaml.width = 120
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump(config, stream)
    return f"# Made by `dragoman import litellm {file.name}`; check it with `dragoman check`.\n{stream.getvalue()}"
