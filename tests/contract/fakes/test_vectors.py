"""Embeddings of the fakes: a vector tells its input, in whatever format, and mischief does what its line says."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import aiohttp
import pytest

from dragoman.adapters.validation import load_validator
from dragoman.contract.fakes import BEHAVIOURS, FakeProvider
from dragoman.contract.fakes.vectors import EDITS, vector_of

PATHS = {
    "openai": "/v1/embeddings",
    "databricks": "/serving-endpoints/m/invocations",
    "azure": "/embeddings?api-version=2024-05-01-preview",
}


async def ask(fake: FakeProvider, given: Any, **more: Any) -> tuple[int, bytes]:
    body = {"input": given, **more} | ({} if fake.dialect == "databricks" else {"model": "m"})
    async with (
        aiohttp.ClientSession() as session,
        session.post(fake.origin + PATHS[fake.dialect], json=body) as response,
    ):
        return response.status, await response.read()


@pytest.mark.parametrize("profile", ["documented", "actual"])
@pytest.mark.parametrize("dialect", PATHS)
async def test_replies_are_in_the_dialects_form(dialect: str, profile: str) -> None:
    async with FakeProvider(dialect, profile=profile) as fake:
        status, raw = await ask(fake, ["one", "two words"])
        body = json.loads(raw)
        assert status == 200, raw
        assert [v.message for v in load_validator(f"{dialect}/embeddings.reply").violations(body)] == []
        assert [item["embedding"] for item in body["data"]] == [vector_of("one"), vector_of("two words")]
        assert body["usage"] == {"prompt_tokens": 3, "total_tokens": 3}


async def test_formats_and_dimensions() -> None:
    async with FakeProvider("openai") as fake:
        _, raw = await ask(fake, "one", encoding_format="base64", dimensions=3)
        packed = base64.b64decode(json.loads(raw)["data"][0]["embedding"])
        assert list(struct.unpack("<3f", packed)) == vector_of("one", 3)


async def test_what_the_services_refuse() -> None:
    async with FakeProvider("databricks") as fake:
        status, raw = await ask(fake, ["x"] * 151)
        assert (status, json.loads(raw)["error_code"]) == (400, "BAD_REQUEST")
        assert b"exceeding 150 limit" in raw
        assert (await ask(fake, ["x"] * 150))[0] == 200
        assert (await ask(fake, "x", encoding_format="base64"))[0] == 400
        assert (await ask(fake, [1]))[0] == 400
    async with FakeProvider("azure") as fake:
        assert (await ask(fake, "x"))[0] == 422
        assert (await ask(fake, ["x"], user="me"))[0] == 400


async def test_an_input_chooses_the_behaviour() -> None:
    async with FakeProvider("openai") as fake:
        assert (await ask(fake, ["a", "fake:status-503"]))[0] == 503
        assert (await ask(fake, "fake:rate-limit"))[0] == 429


CHANGES = {
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


async def test_mischief() -> None:
    assert CHANGES.keys() == EDITS.keys() <= BEHAVIOURS.keys()
    async with FakeProvider("openai") as fake:
        for name, changed in CHANGES.items():
            _, raw = await ask(fake, ["a", "b", f"fake:{name}"])
            body = json.loads(raw)
            assert changed(body["data"]), name
            assert ("usage" in body) == (name != "vectors-without-usage")
