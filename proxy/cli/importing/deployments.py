"""The model_list: deployments become targets, and what they have in common becomes providers."""

from __future__ import annotations

import re
from typing import Any

from dragoman.adapters.dialect import Dialect
from dragoman.adapters.providers import Vendor
from dragoman.proxy.config.document import Document
from dragoman.proxy.config.masks import is_secret
from dragoman.proxy.config.values import is_pattern

from .texts import duration, number, written
from .vendors import CLOUDS, base_address_of, vendor_of, vendors

__all__ = ["Deployments"]

_MODES = {None, "chat", "embedding", "responses", "completion"}
_PARAMETER = re.compile(r"(aws|vertex|azure|watsonx|oci|sap|gigachat)_[a-z0-9_]+|organization|project_id|region_name")
_CARRIED = {
    *("model", "api_key", "api_base", "base_url", "api_version", "custom_llm_provider"),
    *("weight", "rpm", "tpm", "timeout", "stream_timeout", "drop_params"),
}
_REASONS = {
    "max_retries": "dragoman makes at most 3 attempts for one request, and that cannot be set",
    "num_retries": "dragoman makes at most 3 attempts for one request, and that cannot be set",
}


class Deployments:
    """Collects providers and models. What cannot be carried over is noted in the document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._providers: dict[str, dict[str, Any]] = {}
        self._models: dict[str, list[dict[str, Any]]] = {}
        self._variables: dict[str, str] = {}
        self._shares: dict[str, list[tuple[float | None, ...]]] = {}
        self._weighted: dict[str, list[tuple[str | int, ...]]] = {}  # where weights stand

    def add(self, position: int) -> None:
        path = ("model_list", position, "litellm_params")
        name = self._document.text("model_list", position, "model_name")
        asked = self._document.text(*path, "model")
        if name is None or asked is None or not is_pattern(name):
            self._left(("model_list", position), "the deployment has no model_name and model that can be used here")
            return
        mode = self._document.text("model_list", position, "model_info", "mode")
        if mode not in _MODES:
            self._left(("model_list", position, "model_info", "mode"), f"models of the mode {mode} are not served")
            return
        found = self._vendor(path, asked)
        if found is None:
            self._left((*path, "model"), "its name does not say the vendor, as in anthropic/claude-sonnet-4-5")
            return
        target = self._target(path, name, found[1])
        if target is None:
            self._left((*path, "model"), "only * alone, or the client's whole name, can stand for what was asked for")
            return
        provider = self._provider(path, found[0])
        if provider is None:
            self._left(path, f"the vendor {found[0]} has no address of its own, and there is no api_base")
            return
        self._models.setdefault(name, []).append({"provider": self._named(found[0], provider), **target})
        shares = tuple(number(self._document, (*path, key)) for key in ("weight", "rpm", "tpm"))
        self._shares.setdefault(name, []).append(shares)
        if shares[0] is not None:
            self._weighted.setdefault(name, []).append((*path, "weight"))
        self._leave(path, found[0])

    def providers(self) -> dict[str, Any]:
        return self._providers

    def models(self) -> dict[str, Any]:
        """The targets of each name, with weights where LiteLLM would draw by weight, rpm or tpm."""
        for name, targets in self._models.items():
            weighted = self._weighted.get(name, [])
            if len(weighted) < len(targets):
                for path in weighted:
                    self._left(
                        path, "weight: it counts where all deployments of the name have one, which is more than 0"
                    )
            for kind in zip(*self._shares[name], strict=True):
                if len(targets) > 1 and all(kind):
                    for target, share in zip(targets, kind, strict=True):
                        target["weight"] = share
                    break
        return {name: {"targets": targets} for name, targets in self._models.items()}

    def _vendor(self, path: tuple[str | int, ...], asked: str) -> tuple[str, str] | None:
        vendor = self._document.text(*path, "custom_llm_provider")
        return (vendor, asked.removeprefix(f"{vendor}/")) if vendor else vendor_of(asked)

    def _target(self, path: tuple[str | int, ...], name: str, model: str) -> dict[str, Any] | None:
        node = self._document.find((*path, "drop_params"))
        policy = {"policy": {"unsupported": "drop"}} if node is not None and node.value is True else {}
        if "*" not in model:
            return {"model": model, **policy}
        if "*" not in name or (model != "*" and model != name):
            return None
        before = name.partition("*")[0]
        return {"strip": before, **policy} if model == "*" and before else policy

    def _provider(self, path: tuple[str | int, ...], name: str) -> dict[str, Any] | None:
        known = vendors.get(name)
        found = self._foreign(path, name) if known is None else self._native(path, name, *known)
        if found is None:
            return None
        waits = (("total", "timeout"), ("first_token", "stream_timeout"))
        timeouts = {key: text for key, given in waits if (text := duration(self._document, (*path, given))) is not None}
        return {**found, "timeouts": timeouts} if timeouts else found

    def _native(
        self, path: tuple[str | int, ...], name: str, dialect: Dialect, vendor: Vendor
    ) -> dict[str, Any] | None:
        address = self._address(path)
        base_url = base_address_of(dialect, address) if address else vendor.base_url
        if not base_url:
            return None
        found: dict[str, Any] = {"dialect": dialect.name, "base_url": base_url}
        key = written(self._document, (*path, "api_key"), self._variable((*path, "api_key"), f"{name}_API_KEY"))
        if key is None and vendor.key:
            key = f"${{{vendor.key}}}"
        if key is not None:
            found["api_key"] = key
        version = written(self._document, (*path, "api_version"))
        if version is not None and "api_version" in dialect.settings:
            found["api_version"] = version
        return {**found, "protocols": list(vendor.protocols)}

    def _foreign(self, path: tuple[str | int, ...], name: str) -> dict[str, Any]:
        found: dict[str, Any] = {"engine": "litellm", "vendor": name}
        if address := self._address(path):
            found["base_url"] = address
        key = written(self._document, (*path, "api_key"), self._variable((*path, "api_key"), f"{name}_API_KEY"))
        if key is None and name not in CLOUDS:
            key = f"${{{name.upper()}_API_KEY}}"
        if key is not None:
            found["api_key"] = key
        parameters = {}
        for given in self._document.mapping(*path):
            if _PARAMETER.fullmatch(given) or given == "api_version":
                variable = self._variable((*path, given), given) if is_secret((given,)) else ""
                parameters[given] = written(self._document, (*path, given), variable)
        carried = {given: value for given, value in parameters.items() if value is not None}
        return {**found, **({"parameters": carried} if carried else {}), "protocols": ["chat", "embeddings"]}

    def _variable(self, path: tuple[str | int, ...], name: str) -> str:
        """A variable for the secret at a path, the same for the same secret only."""
        secret, number = self._document.text(*path) or "", 1
        while self._variables.setdefault(variable := f"{name}_{number}".upper().removesuffix("_1"), secret) != secret:
            number += 1
        return variable

    def _address(self, path: tuple[str | int, ...]) -> str | None:
        return written(self._document, (*path, "api_base")) or written(self._document, (*path, "base_url"))

    def _named(self, vendor: str, provider: dict[str, Any]) -> str:
        """The name of such a provider, known already or new."""
        number = 1
        while (name := vendor if number == 1 else f"{vendor}-{number}") in self._providers:
            if self._providers[name] == provider:
                return name
            number += 1
        self._providers[name] = provider
        return name

    def _leave(self, path: tuple[str | int, ...], vendor: str) -> None:
        for given in self._document.mapping(*path):
            if given in ("rpm", "tpm"):
                self._left((*path, given), f"{given} sets shares, where all targets have one, and limits nothing here")
            elif given not in _CARRIED and not (vendor not in vendors and _PARAMETER.fullmatch(given)):
                self._left((*path, given), f"{given}: {_REASONS.get(given, 'there is nothing like it')}")

    def _left(self, path: tuple[str | int, ...], message: str) -> None:
        self._document.add(path, "not-carried", message, severity="warning", at_key=True)
