"""The schemas have every field of the `anthropic` package's types, and so have the requests of real clients."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Required, Union, get_args, get_origin

import pytest
from anthropic.types import message_count_tokens_params, message_create_params
from anthropic.types.beta import message_create_params as beta_params
from typing_extensions import get_type_hints, is_typeddict

from dragoman.adapters.extras import list_inner_extras
from dragoman.adapters.messages.requests import check_request
from dragoman.adapters.messages.versions import list_foreign
from dragoman.adapters.request_properties import HUB_MESSAGES, hub_annotations, load_annotations
from dragoman.adapters.validation import load_validator
from tests.tables import for_each

CLIENTS = sorted((Path(__file__).parent / "fixtures" / "clients").glob("*.json"))
HEADERS = {"betas", "user_profile_id", "workspace_id"}
REFUSED = {"fallbacks"}  # it chooses models behind the proxy, as `x-refused` says
WRAPPERS = (Annotated, Required)
LISTS = (list, Iterable, Sequence, UnionType, Union)
DEEPEST = 8


def list_fields(kind: Any, path: tuple[str, ...] = (), seen: tuple[Any, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every field of a TypedDict and of those in it, without positions."""
    origin = get_origin(kind)
    if is_typeddict(kind) and kind not in seen and len(path) < DEEPEST:
        for name, inner in get_type_hints(kind, include_extras=True).items():
            yield (*path, name)
            yield from list_fields(inner, (*path, name), (*seen, kind))
    elif origin in WRAPPERS:
        yield from list_fields(get_args(kind)[0], path, seen)
    elif origin in LISTS or getattr(origin, "__origin__", origin) is Iterable or _is_sequence(origin):
        for inner in get_args(kind):
            yield from list_fields(inner, path, seen)


def _is_sequence(origin: Any) -> bool:
    return isinstance(origin, type) and hasattr(origin, "__iter__") and origin is not dict


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (message_create_params.MessageCreateParamsNonStreaming, HUB_MESSAGES),
        (message_create_params.MessageCreateParamsStreaming, "anthropic/messages.request"),
        (beta_params.MessageCreateParamsStreaming, HUB_MESSAGES),
        (beta_params.MessageCreateParamsNonStreaming, "anthropic/messages.request"),
        (message_count_tokens_params.MessageCountTokensParams, "anthropic/count_tokens.request"),
    ],
)
def test_every_field_of_the_package_is_in_the_schema(kind: Any, schema: str) -> None:
    known = load_annotations(schema)
    open_objects = {path for path in known if not any(other[: len(path)] == path != other for other in known)}
    fields = set(list_fields(kind))
    assert len(fields) > 100
    missing = {
        path
        for path in fields
        if path not in known and not any(path[: len(one)] == one for one in open_objects) and path[0] not in HEADERS
    }
    assert missing == {(name,) for name in REFUSED if (name,) in fields} | _below(REFUSED, fields)


def _below(names: set[str], fields: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    return {path for path in fields if path[0] in names and len(path) > 1}


@for_each("path", CLIENTS)
@for_each("profile", ["documented", "actual"])
def test_what_real_clients_send_is_valid_in_the_version_that_they_name(path: Path, profile: str) -> None:
    call = json.loads(path.read_text("utf-8"))
    protocol = "count_tokens" if "count_tokens" in call["path"] else "messages"
    validator = load_validator(f"anthropic/{protocol}.request", profile)
    betas = call["headers"].get("anthropic-beta", "").split(",")
    assert not check_request(call["body"], validator, betas)
    assert call["body"].keys() <= validator.known
    assert list(list_inner_extras(call["body"], hub_annotations(HUB_MESSAGES))) == []
    foreign = list_foreign(call["body"], call["headers"]["anthropic-version"], validator)
    assert foreign == ([("temperature",)] if path.stem == "anthropic_py_temperature" else [])
