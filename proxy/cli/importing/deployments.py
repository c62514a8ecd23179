"""Conversion of model_list: deployments become targets, and each distinct vendor with its settings a provider."""

from __future__ import annotations

import re
from typing import Any

from dragoman.adapters.dialect import Dialect
from dragoman.adapters.paths import Path
from dragoman.adapters.providers import Vendor
from dragoman.proxy.config.document import Document
from dragoman.proxy.config.masks import is_secret
from dragoman.proxy.config.values import MODEL_PATTERN, is_model_pattern

from .left_out import explain_setting, warn_of_deployment, warn_of_unreadable_values
from .secret_variables import SecretVariables
from .values import convert_duration, convert_text, read_number
from .vendors import NATIVE_VENDORS, RESPONSES, convert_base_url, find_native_vendor, name_key_variable, parse_vendor

__all__ = ["Deployments"]

_MODES = {None, "chat", "embedding", "responses", "completion"}
_PARAMETER = re.compile(r"(aws|vertex|azure|watsonx|oci|sap|gigachat)_[a-z0-9_]+|organization|project_id|region_name")
_NUMBERS = ("weight", "rpm", "tpm", "timeout", "stream_timeout")
_CONVERTED = {
    *("model", "api_key", "api_base", "base_url", "api_version", "custom_llm_provider"),
    *("weight", "rpm", "tpm", "timeout", "stream_timeout", "drop_params"),
}


class _NotConvertible(Exception):
    """The deployment has no equivalent: the path of what is in the way, and a sentence about it."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message


class Deployments:
    """The providers and models of the deployments added so far. A setting that cannot be converted becomes a warning in
    the document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._providers: dict[str, dict[str, Any]] = {}
        self._models: dict[str, list[dict[str, Any]]] = {}
        self._variables = SecretVariables(document)
        self._shares: dict[str, list[tuple[float | None, ...]]] = {}
        self._weighted: dict[str, list[Path]] = {}  # the paths of weights

    def add(self, position: int) -> None:
        """Convert the deployment at this position of model_list."""
        try:
            self._convert(position)
        except _NotConvertible as reason:
            self._add_warning(reason.path, reason.message)

    def _convert(self, position: int) -> None:
        path = ("model_list", position, "litellm_params")
        name = self._document.text("model_list", position, "model_name")
        requested = self._document.text(*path, "model")
        if name is None or requested is None:
            raise _NotConvertible(path[:2], "the deployment has no model_name or no model")
        if not is_model_pattern(name):
            raise _NotConvertible(path[:2], f"dragoman does not allow this model_name: a name has {MODEL_PATTERN}")
        mode = self._document.text("model_list", position, "model_info", "mode")
        if mode not in _MODES:
            raise _NotConvertible((*path[:2], "model_info", "mode"), f"dragoman serves no models of the mode {mode}")
        vendor, model = self._find_vendor(path, requested)
        target = self._convert_target(path, name, model.removeprefix(RESPONSES if vendor in NATIVE_VENDORS else ""))
        provider = self._convert_provider(path, vendor, model)
        self._models.setdefault(name, []).append({"provider": self._name_provider(vendor, provider), **target})
        self._record_shares(path, name)
        self._warn_of_other_settings(path, vendor)

    def _record_shares(self, path: Path, name: str) -> None:
        shares = tuple(read_number(self._document, (*path, key)) for key in ("weight", "rpm", "tpm"))
        self._shares.setdefault(name, []).append(shares)
        if shares[0] is not None:
            self._weighted.setdefault(name, []).append((*path, "weight"))

    def providers(self) -> dict[str, Any]:
        """The providers by name, as the configuration has them."""
        return self._providers

    def models(self) -> dict[str, Any]:
        """The models by name, as the configuration has them. Targets have weights if LiteLLM would draw them by weight,
        rpm or tpm."""
        for name, targets in self._models.items():
            weighted = self._weighted.get(name, [])
            if len(weighted) < len(targets):
                for path in weighted:
                    self._add_warning(path, "weight: it is used only if every deployment of the name has one above 0")
            for kind in zip(*self._shares[name], strict=True):
                if len(targets) > 1 and all(kind):
                    for target, share in zip(targets, kind, strict=True):
                        target["weight"] = share
                    break
        return {name: {"targets": targets} for name, targets in self._models.items()}

    def _find_vendor(self, path: Path, requested: str) -> tuple[str, str]:
        """The vendor, and its own name for the model."""
        vendor = self._document.text(*path, "custom_llm_provider")
        found = (vendor, requested.removeprefix(f"{vendor}/")) if vendor else parse_vendor(requested)
        if found is None:
            message = "the name does not begin with a vendor, as in anthropic/claude-sonnet-4-5"
            raise _NotConvertible((*path, "model"), message)
        if found[0] == "auto_router":
            raise _NotConvertible((*path, "model"), "dragoman does not choose among models by what a request says")
        return found

    def _convert_target(self, path: Path, name: str, model: str) -> dict[str, Any]:
        node = self._document.find((*path, "drop_params"))
        policy = {"policy": {"unsupported": "drop"}} if node is not None and node.value is True else {}
        if "*" not in model:
            return {"model": model, **policy}
        if "*" not in name or (model != "*" and model != name):
            message = "a model with * has to be * alone, or the same as model_name"
            raise _NotConvertible((*path, "model"), message)
        before = name.partition("*")[0]
        return {"strip": before, **policy} if model == "*" and before else policy

    def _convert_provider(self, path: Path, name: str, model: str) -> dict[str, Any]:
        native = find_native_vendor(name, model)
        found = (
            self._convert_litellm_provider(path, name)
            if native is None
            else self._convert_native_provider(path, name, *native)
        )
        total = convert_duration(self._document, (*path, "timeout"))
        first = convert_duration(self._document, (*path, "stream_timeout"))
        timeouts = {key: text for key, text in (("total", total), ("first_token", first)) if text is not None}
        return {**found, "timeouts": timeouts} if timeouts else found

    def _convert_native_provider(self, path: Path, name: str, dialect: Dialect, vendor: Vendor) -> dict[str, Any]:
        address = self._convert_address(path)
        base_url = convert_base_url(dialect, vendor, address) if address else vendor.base_url
        if not base_url:
            raise _NotConvertible(path, f"the vendor {name} has no default address, and there is no api_base")
        found: dict[str, Any] = {"dialect": dialect.name, "base_url": base_url, **vendor.settings}
        key = self._convert_key(path, name)
        if key is not None:
            found["api_key"] = key
        version = convert_text(self._document, (*path, "api_version"))
        if version is not None and "api_version" in {*dialect.settings, *vendor.settings}:
            found["api_version"] = version
        return {**found, "protocols": list(vendor.protocols)}

    def _convert_litellm_provider(self, path: Path, name: str) -> dict[str, Any]:
        found: dict[str, Any] = {"engine": "litellm", "vendor": name}
        if address := self._convert_address(path):
            found["base_url"] = address
        key = self._convert_key(path, name)
        if key is not None:
            found["api_key"] = key
        parameters = {}
        for given in self._document.mapping(*path):
            if _PARAMETER.fullmatch(given) or given == "api_version":
                variable = self._variables.name((*path, given), given.upper()) if is_secret((given,)) else ""
                parameters[given] = convert_text(self._document, (*path, given), variable)
        converted = {given: value for given, value in parameters.items() if value is not None}
        return {**found, **({"parameters": converted} if converted else {}), "protocols": ["chat", "embeddings"]}

    def _convert_key(self, path: Path, vendor: str) -> str | None:
        path, default = (*path, "api_key"), name_key_variable(vendor)
        variable = default or f"{vendor.replace('-', '_').upper()}_API_KEY"
        key = convert_text(self._document, path, self._variables.name(path, variable))
        return f"${{{default}}}" if key is None and default else key

    def _convert_address(self, path: Path) -> str | None:
        return convert_text(self._document, (*path, "api_base")) or convert_text(self._document, (*path, "base_url"))

    def _name_provider(self, vendor: str, provider: dict[str, Any]) -> str:
        """The name of an equal provider that was added before, else a new name for this one."""
        number = 1
        while (name := vendor if number == 1 else f"{vendor}-{number}") in self._providers:
            if self._providers[name] == provider:
                return name
            number += 1
        self._providers[name] = provider
        return name

    def _warn_of_other_settings(self, path: Path, vendor: str) -> None:
        for given in self._document.mapping(*path):
            if given in ("rpm", "tpm"):
                message = (
                    f"{given} becomes a routing weight, if every target has one; for a limit write rate at the provider"
                )
                self._add_warning((*path, given), message)
            elif given not in _CONVERTED and not (vendor not in NATIVE_VENDORS and _PARAMETER.fullmatch(given)):
                self._add_warning((*path, given), explain_setting(given))
        warn_of_unreadable_values(self._document, path, _NUMBERS, ("drop_params",))
        warn_of_deployment(self._document, int(path[1]))

    def _add_warning(self, path: Path, message: str) -> None:
        self._document.add_problem(path, "not-carried", message, severity="warning", at_key=True)
