"""Embeddings in hub form: encodings and rejected parameters."""

from __future__ import annotations

import base64
from pathlib import Path as FilePath

import numpy as np
import pytest
from encoder_rig import TEXTS

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path
from dragoman.adapters.validation import load_validator
from dragoman.local_engine.embedder import Embedder
from dragoman.local_engine.engine import EngineOptions
from dragoman.local_engine.service import EngineService


async def test_the_reply_has_the_hub_form(encoder: FilePath) -> None:
    (encoder / "dragoman.json").write_text('{"name": "table"}', "utf-8")
    service = await EngineService.load(encoder, EngineOptions(device="cpu"))
    assert (service.operations, service.name) == (("embeddings",), "table")
    found = await service.embeddings({"model": "m", "input": ["one", "x"]})
    load_validator("hub/embeddings.reply").check(found)
    assert found["usage"] == {"prompt_tokens": 4, "total_tokens": 4}
    wanted = Embedder.load(encoder, "cpu").embed([TEXTS[0], TEXTS[2]])
    np.testing.assert_allclose([one["embedding"] for one in found["data"]], wanted, rtol=1e-6)
    packed = await service.embeddings({"model": "m", "input": TEXTS[2], "encoding_format": "base64"})
    np.testing.assert_array_equal(np.frombuffer(base64.b64decode(packed["data"][0]["embedding"]), "<f4"), wanted[1])


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        ({"input": "x" * 31}, ("input", 0)),
        ({"input": [[5], [272]]}, ("input", 1)),
        ({"input": []}, ("input",)),
        ({"dimensions": 4}, ("dimensions",)),
        ({"encoding_format": "int8"}, ("encoding_format",)),
        ({"input_type": "query"}, ("input_type",)),
    ],
)
async def test_an_invalid_request_is_rejected_with_its_path(
    encoder: FilePath, request_: JsonObject, path: Path
) -> None:
    service = await EngineService.load(encoder, EngineOptions(device="cpu"))
    with pytest.raises(Fault) as raised:
        await service.embeddings({"model": "m", "input": "x", **request_})
    assert raised.value.path == path
    with pytest.raises(Fault, match="does not support chat"):
        await anext(aiter(service.chat({"model": "m", "messages": []})))
