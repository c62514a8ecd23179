"""What aiohttp does not document is used in eight modules, whose tests name it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAY_USE_INTERNALS = {
    "proxy/upstreams/aiohttp_client.py",
    "proxy/upstreams/aiohttp_protocol.py",
    "proxy/http/aiohttp_server.py",
    "proxy/http/aiohttp_connection.py",
    "proxy/http/aiohttp_bodies.py",
    "proxy/http/aiohttp_request.py",
    "proxy/http/aiohttp_responses.py",
    "proxy/http/known_heads.py",
    "proxy/http/parser_errors.py",
}
PUBLIC = {"aiohttp", "aiohttp.web", "aiohttp.abc", "aiohttp.web_request", "aiohttp.web_response"}
"""The last two define what `aiohttp.web` exports, and load less."""

UNDOCUMENTED = {"output_size", "writer", "set_response_params", "connection_key"}
"""Attributes of aiohttp's objects that an import does not show."""


def uses_of_internals(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.split(".")[0] == "aiohttp":
            yield from (f"{node.module}.{alias.name}" for alias in node.names if alias.name.startswith("_"))
            if node.module not in PUBLIC:
                yield node.module
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names if alias.name.startswith("aiohttp.")]
            yield from (module for module in modules if module not in PUBLIC)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            is_private = node.attr.startswith("_") and not node.attr.startswith("__")
            if (node.value.id in {"aiohttp", "web"} and is_private) or (
                node.value.id == "request" and (is_private or node.attr in UNDOCUMENTED)
            ):
                yield f"{node.value.id}.{node.attr}"


FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("adapters", "contract", "local_engine", "proxy")
    for path in (ROOT / folder).rglob("*.py")
)


def test_no_other_module_uses_internals_of_aiohttp() -> None:
    found = {name: [*uses_of_internals((ROOT / name).read_text())] for name in FILES}
    assert {name for name, uses in found.items() if uses} == MAY_USE_INTERNALS, found


@pytest.mark.parametrize(
    "source",
    [
        "from aiohttp.web_protocol import RequestHandler",
        "from aiohttp.web_request import _Name",
        "import aiohttp.connector",
        "request.writer.output_size = 0",
        "request._task",
    ],
)
def test_a_use_would_be_seen(source: str) -> None:
    assert [*uses_of_internals(source)]
