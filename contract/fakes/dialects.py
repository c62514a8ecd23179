"""The paths, keys, statuses and treatment of unknown fields of each dialect: one row of data each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from dragoman.contract.json_types import JsonObject

from .errors import Problem, write_error
from .forms import CREATED
from .wire import Reply

__all__ = ["DIALECTS", "MODEL", "Dialect"]

MODEL = "fake-model"
_PROTOCOL_BY_KEY = {"prompt": "completions", "input": "embeddings"}


def _write_not_found(dialect: str, problem: Problem) -> Reply:
    return write_error(dialect, "actual", problem)


@dataclass(frozen=True, slots=True)
class Dialect:
    """One dialect's addresses and errors. `root` completes the address to a base_url; `paths` are those of each
    protocol. A path with the group `model` also serves the other protocols, selected by the body. `keys` maps a header
    that may carry the key to its prefix. `invalid` is the status for a body that violates the schema, `malformed` for
    one that is not a JSON object; `invalid_json` is the error code of the latter, `unknown_path` that of a path that
    the dialect lacks."""

    name: str
    paths: Mapping[str, tuple[re.Pattern[str], ...]]
    invalid: int
    malformed: int = 400
    root: str = ""
    keys: Mapping[str, str] = field(default_factory=lambda: {"Authorization": "Bearer "})
    versioned: bool = False
    extras: Literal["ignored", "refused", "by header"] = "ignored"
    invalid_json: str = ""
    unknown_path: str = ""
    info: Mapping[str, JsonObject] = field(default_factory=dict)
    write_not_found: Callable[[str, Problem], Reply] = _write_not_found

    def route(self, path: str) -> tuple[str, re.Match[str]] | None:
        """Match a raw path: its protocol and the match, None for an unknown path."""
        found = ((protocol, pattern.fullmatch(path)) for protocol, some in self.paths.items() for pattern in some)
        return next(((protocol, match) for protocol, match in found if match), None)

    def select_protocol(self, protocol: str, path: re.Match[str], body: JsonObject) -> str:
        """Select the protocol that the body belongs to, if the path serves several."""
        if "model" not in path.re.groupindex or "messages" in body:
            return protocol
        return next((other for key, other in _PROTOCOL_BY_KEY.items() if key in body), protocol)


def _models(owner: str) -> JsonObject:
    return {"object": "list", "data": [{"id": MODEL, "object": "model", "created": CREATED, "owned_by": owner}]}


_CHAT = re.compile(r"/v1/chat/completions")

DIALECTS: Mapping[str, Dialect] = {
    "openai": Dialect(
        "openai",
        {
            "chat": (_CHAT,),
            "completions": (re.compile(r"/v1/completions"),),
            "responses": (re.compile(r"/v1/responses"),),
            "embeddings": (re.compile(r"/v1/embeddings"),),
        },
        400,
        root="/v1",
        unknown_path="unknown_url",
        info={"/v1/models": _models("dragoman")},
    ),
    "databricks": Dialect(
        "databricks",
        {
            "chat": (
                re.compile(r"/serving-endpoints/(?P<model>[^/]+)/invocations"),
                re.compile(r"/serving-endpoints/chat/completions"),
            ),
            "completions": (re.compile(r"/serving-endpoints/completions"),),
            "responses": (re.compile(r"/serving-endpoints/responses"),),
            "embeddings": (re.compile(r"/serving-endpoints/embeddings"),),
        },
        400,
        extras="refused",
        invalid_json="BAD_REQUEST",
        unknown_path="ENDPOINT_NOT_FOUND",
    ),
    "azure": Dialect(
        "azure",
        {"chat": (re.compile(r"/chat/completions"),), "embeddings": (re.compile(r"/embeddings"),)},
        422,
        keys={"api-key": "", "Authorization": "Bearer "},
        versioned=True,
        extras="by header",
        info={"/info": {"model_name": MODEL, "model_type": "chat-completion", "model_provider_name": "dragoman"}},
    ),
    "mindie": Dialect(
        "mindie",
        {"chat": (_CHAT,)},
        422,
        malformed=422,
        keys={},
        info={"/v1/models": _models("MindIE Server")},
        write_not_found=lambda _dialect, _problem: Reply(404, {}, (b"",)),
    ),
}
