"""Recorded conversations of real servers, fed to the pipeline for clients of all dialects: nothing is lost, no failure
becomes a success, and it does not matter how the bytes are cut."""

from __future__ import annotations

import base64
import json
import random
from array import array
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Policy, Target
from dragoman.adapters.pipeline import Pipeline, plan_target
from dragoman.adapters.routes import Route
from dragoman.adapters.sse import Framer
from dragoman.contract.recordings import read_take
from dragoman.contract.reply_content import ReplyContent, read_reply_content
from tests.tables import for_each

FOLDER = Path(__file__).parents[3] / "contract" / "recordings"
RECORDINGS = sorted(FOLDER.glob("*/*.json"))
PROTOCOLS = {
    "/chat/completions": "chat",
    "/completions": "completions",
    "/embeddings": "embeddings",
    "/responses": "responses",
}
CLIENTS = {
    "chat": ["openai/chat", "databricks/chat", "azure/chat", "mindie/chat", "openai/responses", "databricks/responses"],
    "completions": ["openai/completions", "databricks/completions"],
    "embeddings": ["openai/embeddings", "databricks/embeddings", "azure/embeddings"],
    "responses": ["openai/responses", "databricks/responses", "openai/chat"],
}
POLICIES = ["off", "report", "repair", "strict"]


class Recording(NamedTuple):
    protocol: str
    request: dict[str, Any]
    status: int
    headers: dict[str, str]
    body: bytes
    broken: bool


class Result(NamedTuple):
    state: str
    status: int
    data: bytes


@cache
def read_recording(file: Path) -> Recording:
    asked, reply = json.loads(file.read_text("utf-8"))["request"], read_take(file)
    return Recording(
        PROTOCOLS[asked["path"]],
        json.loads(asked["body"]),
        reply.status,
        dict(reply.headers),
        reply.body,
        reply.broken is not None,
    )


def find_objects(raw: bytes) -> tuple[list[dict[str, Any]], bool]:
    """The JSON objects of a reply, and whether it is a stream."""
    if raw.lstrip().startswith(b"{"):
        return [json.loads(raw)], False
    framer = Framer()
    events = [getattr(item, "data", b"") for item in (*framer.feed(raw), *framer.close())]
    return [json.loads(data) for data in events if data.startswith(b"{") and data.rstrip().endswith(b"}")], True


def read_content(protocol: str, raw: bytes) -> ReplyContent:
    objects, stream = find_objects(raw)
    return read_reply_content(protocol, objects, stream=stream)


def is_complete(recording: Recording) -> bool:
    """Whether the SDK would take the reply for a complete one."""
    if recording.status != 200 or recording.broken:
        return False
    objects, _ = find_objects(recording.body)
    if any(body.get("error") for body in objects):
        return False
    if recording.protocol == "embeddings":
        return True
    finishes = read_reply_content(recording.protocol, objects, stream=len(objects) > 1).finishes
    return bool(finishes) and all(finish in ENDS for finish in finishes)


ENDS = {"stop", "length", "tool_calls", "completed", "max_output_tokens"}


def feed(recording: Recording, client: str, pieces: list[bytes], policy: str = "repair") -> Result:
    name, protocol = client.split("/")
    counter = iter(range(100_000))
    route = Route(dialects[name], protocol, dialects[name].served[protocol], "actual")
    pipeline = Pipeline(
        route,
        Call("POST", "/", recording.request),
        clock=lambda: 1.0,
        new_id=lambda prefix: f"{prefix}-{next(counter)}",
    )
    target = Target("m", policy=Policy(replies=policy))  # type: ignore[arg-type]
    request = recording.request | {"messages": recording.request.get("messages", []), "input": "x", "prompt": "x"}
    request["input"] = recording.request.get("input", "x")
    attempt = pipeline.expect_reply(plan_target("real", dialects["openai"], [recording.protocol], target), request)
    outputs = [attempt.start_reply(0, recording.status, recording.headers)]
    outputs += [attempt.feed(0, piece) for piece in pieces if attempt.is_reading(0)]
    if attempt.is_reading(0):
        outputs.append(attempt.close(0))
    data = b"".join(output.data for output in outputs)
    if attempt.outcome.fault is not None and not attempt.answer.has_begun:
        reply = pipeline.render_fault(attempt.outcome.fault)
        return Result(attempt.outcome.state, reply.status, orjson.dumps(reply.body))
    return Result(attempt.outcome.state, attempt.answer.status, data)


def list_clients(file: Path) -> list[str]:
    """The clients that can have asked for the reply: only those of the same protocol ask for several choices."""
    asked = json.loads(file.read_text("utf-8"))["request"]
    protocol = PROTOCOLS[asked["path"]]
    same = '"n":2' in asked["body"]
    return [client for client in CLIENTS[protocol] if client.endswith(f"/{protocol}") or not same]


CASES = [(file, client) for file in RECORDINGS for client in list_clients(file)]


@for_each(("file", "client"), CASES)
def test_nothing_is_lost_and_no_failure_becomes_a_success(file: Path, client: str) -> None:
    recording = read_recording(file)
    for policy in POLICIES:
        found = feed(recording, client, [recording.body], policy)
        if is_complete(recording):
            assert found.state == "complete" or (policy == "strict" and b"error" in found.data), policy
        else:
            assert found.state == "failed", policy
        if found.state == "complete":
            assert summarize(client.split("/")[1], found.data) == summarize(recording.protocol, recording.body), policy


def summarize(protocol: str, raw: bytes) -> list[tuple[str, list[Any]]]:
    """The text and the calls of each choice; of embeddings the vectors."""
    if protocol == "embeddings":
        return [("", read_vector(one["embedding"])) for one in json.loads(raw)["data"]]
    choices = sorted(read_content(protocol, raw).choices.items())
    return [(one.text, [(call.name, json.loads(call.arguments)) for call in one.calls.values()]) for _, one in choices]


def read_vector(vector: list[float] | str) -> list[float]:
    """The vector in single precision, whether it is numbers or base64."""
    numbers = array("f", base64.b64decode(vector) if isinstance(vector, str) else vector)
    return numbers.tolist()


@pytest.mark.parametrize("file", [file for file in RECORDINGS if "responses-tools-streamed" in file.name], ids=str)
def test_items_of_a_response_have_positions_of_their_own(file: Path) -> None:
    """transformers gives a call and the message after it the same position, leaves the first one out, and sorts the
    items of the last event otherwise."""
    recording = read_recording(file)
    events, _ = find_objects(feed(recording, "openai/responses", [recording.body]).data)
    added = [event for event in events if event["type"] == "response.output_item.added"]
    assert [event["output_index"] for event in added] == list(range(len(added)))
    final = [item["id"] for item in events[-1]["response"]["output"]]
    assert final == [event["item"]["id"] for event in added]
    assert {event["item_id"]: event["output_index"] for event in events if "item_id" in event} == {
        item_id: position for position, item_id in enumerate(final)
    }


@for_each(("file", "client"), CASES)
def test_however_the_bytes_are_cut(file: Path, client: str) -> None:
    recording = read_recording(file)
    whole = feed(recording, client, [recording.body])
    source = random.Random(file.name)
    for count in (5, len(recording.body)):
        places = sorted(source.randrange(len(recording.body) + 1) for _ in range(count))
        pieces = [recording.body[a:b] for a, b in zip([0, *places], [*places, None], strict=True)]
        assert feed(recording, client, pieces) == whole
