"""The embeddings of the fakes: a vector depends on its input, and each edit has its effect."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable

import aiohttp
import pytest

from dragoman.adapters.validation import load_validator
from dragoman.contract.fakes import BEHAVIOURS, FakeProvider
from dragoman.contract.fakes.embeddings import EMBEDDING_EDITS, make_vector
from dragoman.contract.json_types import JsonValue

PATHS = {
    "openai": "/v1/embeddings",
    "databricks": "/serving-endpoints/m/invocations",
    "azure": "/embeddings?api-version=2024-05-01-preview",
}


async def embed(fake: FakeProvider, given: JsonValue, **fields: JsonValue) -> tuple[int, bytes]:
    """Send an input. Return the status and the body."""
    body = {"input": given, **fields} | ({} if fake.dialect == "databricks" else {"model": "m"})
    async with (
        aiohttp.ClientSession() as session,
        session.post(fake.origin + PATHS[fake.dialect], json=body) as response,
    ):
        return response.status, await response.read()


@pytest.mark.parametrize("profile", ["documented", "actual"])
@pytest.mark.parametrize("dialect", PATHS)
async def test_reply_has_the_dialects_form(dialect: str, profile: str) -> None:
    async with FakeProvider(dialect, profile=profile) as fake:
        status, raw = await embed(fake, ["one", "two words"])
        body = json.loads(raw)
        assert status == 200, raw
        assert [v.message for v in load_validator(f"{dialect}/embeddings.reply").violations(body)] == []
        assert [item["embedding"] for item in body["data"]] == [make_vector("one"), make_vector("two words")]
        assert body["usage"] == {"prompt_tokens": 3, "total_tokens": 3}


async def test_request_sets_encoding_and_dimensions() -> None:
    async with FakeProvider("openai") as fake:
        _, raw = await embed(fake, "one", encoding_format="base64", dimensions=3)
        packed = base64.b64decode(json.loads(raw)["data"][0]["embedding"])
        assert list(struct.unpack("<3f", packed)) == make_vector("one", 3)


async def test_fake_refuses_what_its_service_refuses() -> None:
    async with FakeProvider("databricks") as fake:
        status, raw = await embed(fake, ["x"] * 151)
        assert (status, json.loads(raw)["error_code"]) == (400, "BAD_REQUEST")
        assert b"exceeding 150 limit" in raw
        assert (await embed(fake, ["x"] * 150))[0] == 200
        assert (await embed(fake, "x", encoding_format="base64"))[0] == 400
        assert (await embed(fake, [1]))[0] == 400
    async with FakeProvider("azure") as fake:
        assert (await embed(fake, "x"))[0] == 422
        assert (await embed(fake, ["x"], user="me"))[0] == 400


async def test_input_selects_a_behaviour() -> None:
    async with FakeProvider("openai") as fake:
        assert (await embed(fake, ["a", "fake:status-503"]))[0] == 503
        assert (await embed(fake, "fake:rate-limit"))[0] == 429


EFFECTS: dict[str, Callable[[JsonValue], bool]] = {
    "vectors-shuffled": lambda data: [item["index"] for item in data] == [2, 1, 0],
    "vectors-missing": lambda data: len(data) == 2,
    "vectors-too-many": lambda data: [item["index"] for item in data] == [0, 1, 2, 3],
    "vectors-doubled-index": lambda data: [item["index"] for item in data] == [0, 1, 0],
    "vectors-without-index": lambda data: not any("index" in item for item in data),
    "vectors-short": lambda data: len(data[2]["embedding"]) == len(data[1]["embedding"]) - 1,
    "vectors-empty": lambda data: data[2]["embedding"] == [],
    "vectors-null": lambda data: data[2]["embedding"][-1] is None,
    "vectors-nan": lambda data: data[2]["embedding"][-1] != data[2]["embedding"][-1],
    "vectors-as-floats": lambda data: isinstance(data[0]["embedding"], list),
    "vectors-as-base64": lambda data: isinstance(data[0]["embedding"], str),
    "vectors-not-base64": lambda data: data[0]["embedding"] == "no base64!",
    "vectors-single": lambda data: data["index"] == 0,
    "vectors-without-usage": lambda data: len(data) == 3,
}


async def test_edit_has_its_effect() -> None:
    assert EFFECTS.keys() == EMBEDDING_EDITS.keys() <= BEHAVIOURS.keys()
    async with FakeProvider("openai") as fake:
        for name, has_effect in EFFECTS.items():
            _, raw = await embed(fake, ["a", "b", f"fake:{name}"])
            body = json.loads(raw)
            assert has_effect(body["data"]), name
            assert ("usage" in body) == (name != "vectors-without-usage")
