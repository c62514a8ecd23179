"""Requests that are HTTP, nearly HTTP and not HTTP, as bytes: what the proxy answers, and that no request hidden in
another one is reached, directly and behind other reverse proxies."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from .conftest import Pair
from .fronts import FRONTS, find_program, run_front
from .raw_http import BODY, MARKER, POST, Response, Variant, converse, load_corpus, split_responses

CORPUS = load_corpus()


def test_the_corpus_is_of_many_variants() -> None:
    assert len(CORPUS) >= 160
    assert sum(MARKER in variant.data for variant in CORPUS) >= 60


async def play(port: int, variant: Variant) -> list[Response]:
    return split_responses(await converse(port, [variant.sent], half_close=variant.then == "cut"))


def count_markers(pair: Pair) -> int:
    return sum(b"smuggled-marker" in request.raw for request in pair.fake.requests)


async def test_every_variant_gets_its_answer(pair: Pair, subtests: pytest.Subtests) -> None:
    for variant in CORPUS:
        with subtests.test(variant=variant.name):
            answers = await play(pair.proxy.port, variant)
            assert [answer.status for answer in answers] == variant.expected
            assert count_markers(pair) == 0
            for answer in answers:
                if answer.status >= 400:
                    assert b"application/json" in answer.head
                    assert b"smuggled-marker" not in answer.body
            chats = sum(answer.body.startswith(b'{"id"') for answer in answers)
            assert len(pair.fake.requests) == chats, "a request was sent on whose client got no answer of it"
        pair.fake.requests.clear()
    assert pair.tracebacks == []


async def test_variants_in_small_pieces_get_the_same_answers(pair: Pair, subtests: pytest.Subtests) -> None:
    """A network may cut a request anywhere; each byte alone is one write."""
    small = [variant for variant in CORPUS if len(variant.data) < 600 and variant.then == "open"]
    assert len(small) > 50

    async def one(variant: Variant) -> list[int]:
        reader, writer = await asyncio.open_connection("127.0.0.1", pair.proxy.port)
        for place in range(len(variant.sent)):
            writer.write(variant.sent[place : place + 1])
            await asyncio.sleep(0)
        answers = split_responses(await reader.read())
        writer.close()
        return [answer.status for answer in answers]

    for variant in small:
        with subtests.test(variant=variant.name):
            assert await one(variant) == variant.expected


def find_hidden(pair: Pair) -> list[str]:
    """The ids of requests that the front did not see."""
    lines = [json.loads(line) for line in pair.log.getvalue().splitlines()]
    return [line["request_id"] for line in lines if line["event"] == "exchange" and line["request_id"] != "front"]


async def check_next_answer(port: int, pair: Pair, mark: str) -> None:
    """Check that a usual request gets the answer to itself, not to one that was left on a pooled connection."""
    body = BODY.replace(b"hello", mark.encode())
    head = b"%sConnection: close\r\nContent-Length: %d\r\n\r\n" % (POST, len(body))
    (answer,) = split_responses(await converse(port, [head + body]))
    (received,) = [request for request in pair.fake.requests if mark.encode() in request.raw]
    assert answer.status == 200
    assert int(json.loads(answer.body)["id"].removeprefix("chatcmpl-fake")) == received.number


@pytest.mark.parametrize("front", FRONTS)
async def test_no_hidden_request_is_reached_behind_a_front(
    pair: Pair, front: str, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """A front may take for two requests what the proxy would refuse; the proxy never sees more requests than it did."""
    program = FRONTS[front][0]
    if find_program(program) is None:
        pytest.skip(f"{program} is not installed: apt-get install haproxy nginx-light")
    with run_front(front, pair.proxy.port, tmp_path) as port:
        for number, variant in enumerate(CORPUS):
            with subtests.test(variant=variant.name):
                await converse(port, [variant.sent], half_close=True)
                assert find_hidden(pair) == []
                await check_next_answer(port, pair, f"after-{number}")
            pair.fake.requests.clear()
    assert pair.tracebacks == []
