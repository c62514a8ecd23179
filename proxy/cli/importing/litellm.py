"""A configuration of the LiteLLM proxy, as one of ours.

What can be said here is carried over. Whatever cannot is noted as a warning at its place in the file, so that nothing
goes missing unsaid.
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
from dragoman.proxy.config.source import read

from .deployments import Deployments
from .routing import add_aliases, add_fallbacks
from .texts import duration, written

__all__ = ["imported"]

_SECTIONS = {"model_list", "router_settings", "litellm_settings", "general_settings"}
_CARRIED = {
    "router_settings": {"fallbacks", "model_group_alias", "timeout", "stream_timeout"},
    "litellm_settings": {"fallbacks", "drop_params", "request_timeout"},
    "general_settings": {"master_key"},
}
_REASONS = {
    "num_retries": "dragoman makes at most 3 attempts for one request, and that cannot be set",
    "routing_strategy": "targets are drawn by weight",
    "telemetry": "dragoman sends none",
    "set_verbose": "see `dragoman serve --log-level`",
    "cache": "dragoman keeps no replies",
    "environment_variables": "set them in the environment, or in a file given with --env-file",
}
_DEFAULTS: Mapping[str, object] = {"routing_strategy": "simple-shuffle", "telemetry": False, "set_verbose": False}


def imported(file: Path) -> tuple[str, list[Problem]]:
    """The text of our configuration, and what it does not hold. Raises ConfigErrors where the file cannot be read."""
    document = read(file)
    document.problems.clear()  # they are about our files
    if not document.items("model_list"):
        raise document.fatal(None, "no-models", "there is no model_list: is this a configuration of the LiteLLM proxy?")
    found: dict[str, Any] = {}
    if (key := written(document, ("general_settings", "master_key"), "DRAGOMAN_KEY")) is not None:
        found["keys"] = [{"name": "master", "key": key}]
    deployments = Deployments(document)
    for position, _ in enumerate(document.items("model_list")):
        deployments.add(position)
    models = deployments.models()
    add_aliases(document, models)
    add_fallbacks(document, models)
    found |= {"providers": deployments.providers(), "models": models, **_settings(document)}
    _leave(document)
    if not models:
        raise document.fatal(None, "no-models", "none of the models could be carried over")
    return _text(file, found), sorted(document.problems, key=lambda problem: (problem.line, problem.column))


def _settings(document: Document) -> dict[str, Any]:
    found: dict[str, Any] = {}
    node = document.find(("litellm_settings", "drop_params"))
    if node is not None and node.value is True:
        found["policy"] = {"unsupported": "drop"}
    total = duration(document, ("router_settings", "timeout")) or duration(
        document, ("litellm_settings", "request_timeout")
    )
    first = duration(document, ("router_settings", "stream_timeout"))
    timeouts = {name: value for name, value in (("total", total), ("first_token", first)) if value is not None}
    return {**found, "timeouts": timeouts} if timeouts else found


def _leave(document: Document) -> None:
    """Note the settings that nobody carried over."""
    for section in document.mapping():
        if section not in _SECTIONS:
            _left(document, (section,), section)
        for name in document.mapping(section):
            if section in _CARRIED and name not in _CARRIED[section]:
                _left(document, (section, name), name)


def _left(document: Document, path: KeyPath, name: str) -> None:
    node = document.find(path)
    if node is None or (name in _DEFAULTS and node.value == _DEFAULTS[name]):
        return
    reason = _REASONS.get(name, "there is nothing like it")
    document.add(path, "not-carried", f"{name}: {reason}", severity="warning", at_key=True)


def _text(file: Path, found: dict[str, Any]) -> str:
    stream = StringIO()
    yaml = YAML()
    yaml.width = 120
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump(found, stream)
    return f"# Made by `dragoman import litellm {file.name}`; check it with `dragoman check`.\n{stream.getvalue()}"
