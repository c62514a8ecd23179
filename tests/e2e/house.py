"""A running proxy over a fake provider of each dialect."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from dragoman.adapters import dialects
from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import RunningProxy

__all__ = ["BuildHouse", "House", "configure"]


@dataclass
class House:
    """A running proxy, and the fake provider behind each of its models; a model is named like its dialect."""

    proxy: RunningProxy
    fakes: dict[str, FakeProvider]
    log: io.BytesIO = field(default_factory=io.BytesIO)
    profiles: Mapping[str, str] = field(default_factory=dict)
    """Those in which the dialects are served, where they are not the defaults."""

    @property
    def base_url(self) -> str:
        return f"{self.proxy.url}/v1"

    def line(self, request_id: str) -> JsonObject | None:
        """The log's line of a request; the latest, where several have that id."""
        mark = json.dumps(request_id).encode()
        found = [line for line in self.log.getvalue().splitlines() if mark in line]
        return json.loads(found[-1]) if found else None


def configure(fakes: dict[str, FakeProvider], **more: JsonValue) -> Config:
    """What is given goes to the top; `protocols` and `limits` go to the providers, each of which gets the protocols
    that its dialect has, and `more_models` to the models."""
    kind = {"databricks": {"kind": "provisioned-throughput"}}
    protocols, limits = more.pop("protocols", ["chat"]), more.pop("limits", {})
    called = {name: dialects[name].called for name in fakes}
    usual = {name: "chat" if "chat" in called[name] else "messages" for name in fakes}
    spoken = {name: [one for one in protocols if one in called[name]] or [usual[name]] for name in fakes}
    models = more.pop("more_models", {})
    return Config.from_values(
        {
            "providers": {
                name: {"dialect": name, "base_url": fake.base_url, "api_key": "sk-upstream", **kind.get(name, {})}
                | {"protocols": spoken[name], "limits": limits}
                for name, fake in fakes.items()
            },
            "models": {name: {"targets": [{"provider": name, "model": f"{name}-model"}]} for name in fakes} | models,
            "breaker": {"failures": 10**9, "requests": 10**9},  # each request is looked at on its own
            **more,
            "server": {"port": 0, "drain": {"delay": 0.001}, **more.get("server", {})},
        }
    )


class BuildHouse(Protocol):
    """Starts a house. The arguments are configuration, as `configure` takes it."""

    async def __call__(self, fake_names: tuple[str, ...] = ..., **more: object) -> House: ...
