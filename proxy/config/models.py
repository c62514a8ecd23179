"""The configuration file's shape. Python is the source here: `schemas/config.json` is generated from these models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

__all__ = [
    "Config",
    "Drain",
    "Key",
    "Limits",
    "Model",
    "PolicyChoice",
    "Pool",
    "Provider",
    "Server",
    "TargetChoice",
    "Timeouts",
    "Tls",
]

Dialect = Literal["openai", "databricks", "azure", "mindie"]
Profile = Literal["documented", "actual", "native"]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Seconds = Annotated[float, Field(gt=0)]  # written 30s, 500ms, 2m
Bytes = Annotated[int, Field(gt=0)]  # written 32MiB, 64kB


class Drain(Part):
    delay: Seconds = 0.1
    timeout: Seconds = 300.0


class Server(Part):
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    default_model: str | None = None
    profiles: dict[Dialect, Profile] = {}
    body_limit: Bytes = 32 * 1024 * 1024
    header_timeout: Seconds = 10.0
    body_timeout: Seconds = 30.0
    write_stall: Seconds = 30.0
    hold_headers: Seconds = 15.0
    drain: Drain = Drain()


class Key(Part):
    name: str
    key: SecretStr
    models: list[str] = ["*"]


class Tls(Part):
    ca: str | None = None
    cert: str | None = None
    key: str | None = None


class Limits(Part):
    max_tokens: Annotated[int, Field(gt=0)] | None = None


class Pool(Part):
    connections: Annotated[int, Field(gt=0)] = 256
    idle: Seconds = 15.0


class PolicyChoice(Part):
    """What to do where a request or reply does not fit; unset means: ask the next wider level."""

    extra_parameters: Literal["error", "drop", "pass-through"] | None = None
    unsupported: Literal["refuse", "drop"] | None = None
    out_of_range: Literal["error", "clamp", "drop"] | None = None
    replies: Literal["off", "report", "repair", "strict"] | None = None


class Timeouts(Part):
    connect: Seconds = 5.0
    first_token: Seconds = 120.0
    inter_token: Seconds = 60.0
    total: Seconds = 600.0


class Provider(Part):
    dialect: Dialect
    base_url: str
    api_key: SecretStr | None = None
    auth: str | None = None  # a name in the dialect's `auth` table: bearer, api-key, both
    profile: Profile = "actual"
    protocols: list[Literal["chat"]] = ["chat"]
    kind: Literal["pay-per-token", "provisioned-throughput"] | None = None  # databricks
    api_version: str | None = None  # azure
    headers: dict[str, str] = {}
    tls: Tls = Tls()
    limits: Limits = Limits()
    pool: Pool = Pool()
    timeouts: Timeouts | None = None
    policy: PolicyChoice = PolicyChoice()


class TargetChoice(Part):
    provider: str
    model: str | None = None  # the upstream's name; "*" or unset keeps the client's
    weight: Annotated[float, Field(ge=0)] = 1
    lacks: list[str] = []
    deployment: str | None = None  # azure
    policy: PolicyChoice = PolicyChoice()


class Model(Part):
    targets: Annotated[list[TargetChoice], Field(min_length=1)]
    fallbacks: list[str] = []
    policy: PolicyChoice = PolicyChoice()


class Config(Part):
    server: Server = Server()
    keys: list[Key] = []
    providers: dict[str, Provider] = {}
    models: dict[str, Model] = {}
    policy: PolicyChoice = PolicyChoice()
    timeouts: Timeouts = Timeouts()
