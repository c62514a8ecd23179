"""What the hub emits is accepted by OpenAI's published schema, which the llm-comply package ships."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

import jsonschema
import pytest

from .conftest import Compile, FindErrors, SpoilBody

ITEM = {"object": "embedding", "index": 0, "embedding": [0.5, -1, 2e-9]}
REPLY = {"object": "list", "data": [ITEM], "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
GOOD = [REPLY, {**REPLY, "id": "e"}, {**REPLY, "data": [ITEM, {**ITEM, "index": 1}]}]
BAD = [
    {**REPLY, "object": "embeddings"},
    {**REPLY, "data": []},
    {**REPLY, "data": [{**ITEM, "embedding": []}]},
    {**REPLY, "data": [{**ITEM, "embedding": [None]}]},
    {**REPLY, "data": [{**ITEM, "index": -1}]},
    {**REPLY, "usage": {"prompt_tokens": 1}},
    {key: value for key, value in REPLY.items() if key != "usage"},
]
REQUESTS = [
    {"model": "m", "input": given, **more}
    for given in ("x", ["x"], ["x", "y"], [1, 2], [[1], [2, 3]])
    for more in ({}, {"encoding_format": "base64"}, {"dimensions": 1, "user": "u"})
]


@cache
def published(component: str) -> jsonschema.Draft202012Validator:
    spec = json.loads(files("llm_comply.specs").joinpath("openai_chat.json").read_text("utf-8"))
    return jsonschema.Draft202012Validator(
        {"$ref": f"#/components/schemas/{component}", "components": spec["components"]}
    )


def test_valid_replies_are_valid_in_the_published_schema(errors: FindErrors) -> None:
    for body in GOOD:
        assert not errors("hub/embeddings.reply", body)
        assert published("CreateEmbeddingResponse").is_valid(body)


def test_base64_is_valid_in_the_hub(errors: FindErrors) -> None:
    assert not errors("hub/embeddings.reply", {**REPLY, "data": [{**ITEM, "embedding": "AAAAPw=="}]})


@pytest.mark.parametrize("body", BAD)
def test_invalid_replies_are_refused(body: object, compiled: Compile) -> None:
    assert not compiled("hub/embeddings.reply", "documented").is_valid(body)


def test_the_hub_is_never_laxer_than_the_published_schema(compiled: Compile, spoils: SpoilBody) -> None:
    """Every value of every good object is spoilt in turn, apart from vectors, which may be base64 here."""
    taken = 0
    for body in GOOD:
        for path, spoilt in spoils(body):
            if path[-1] != "embedding" and compiled("hub/embeddings.reply", "documented").is_valid(spoilt):
                taken += 1
                assert published("CreateEmbeddingResponse").is_valid(spoilt), spoilt
    assert taken > 10


def test_requests(errors: FindErrors, spoils: SpoilBody, compiled: Compile) -> None:
    """What we take from OpenAI's clients OpenAI takes, but for nulls, which count as absent, and extra parameters."""
    for body in REQUESTS:
        assert not errors("openai/embeddings.request", body)
        assert published("CreateEmbeddingRequest").is_valid(body), body
        for path, spoilt in spoils(body):
            null = len(path) == 1 and spoilt.get(path[0], 0) is None
            if not null and compiled("openai/embeddings.request", "documented").is_valid(spoilt):
                assert published("CreateEmbeddingRequest").is_valid(spoilt), spoilt
