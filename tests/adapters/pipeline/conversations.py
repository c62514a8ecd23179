"""Conversations that go on: what providers answer, how SDKs assemble it, and the next request with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import orjson

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Target
from dragoman.adapters.pipeline import Attempt, Pipeline, TargetPlan, plan_target
from dragoman.adapters.routes import Route
from dragoman.adapters.samples import load_sample
from dragoman.adapters.sse import Event, Framer
from dragoman.contract.fakes.answers import ModelRequest
from dragoman.contract.fakes.behaviours import BEHAVIOURS
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.contract.quirk_files import load_quirks
from dragoman.contract.recordings import read_take

__all__ = ["Answer", "Party", "continue_conversation", "get_turns", "list_answers", "list_parties", "write_request"]

RECORDINGS = Path(__file__).parents[3] / "contract" / "recordings"
TOOL = {"type": "function", "function": {"name": "f", "description": "", "parameters": {"type": "object"}}}
QUESTION: JsonObject = {"role": "user", "content": "x"}
SAYINGS = ("text", "tools", "parallel-tools", "reasoning", "length", "refusal", "json", "list-content", "empty-choices")


class Party(NamedTuple):
    """A client or a provider."""

    dialect: str
    profile: str
    protocol: str

    def __str__(self) -> str:
        return "-".join(self)


class Answer(NamedTuple):
    """What a provider answers, whole or streamed."""

    name: str
    provider: Party
    body: bytes


def list_parties(side: str) -> list[Party]:
    """All clients (`served`) or all providers (`called`) of conversations."""
    return [
        Party(name, profile, protocol)
        for name, dialect in dialects.items()
        for protocol in ("chat", "responses")
        if protocol in getattr(dialect, side)
        for profile in dialect.profiles
    ]


@cache
def list_answers() -> list[Answer]:
    """Complete answers of fakes, quirks, recordings and samples; the names of streams end with `streamed`."""
    return [*_list_samples(), *_list_fakes(), *_list_quirks(), *_list_recordings()]


def _list_samples() -> Iterator[Answer]:
    for party in list_parties("called"):
        sample = load_sample(party.dialect, party.protocol)
        yield Answer(f"sample {party}", party, orjson.dumps(sample["reply"]))
        yield Answer(f"sample {party} streamed", party, encode_events(sample["events"]))


def _list_fakes() -> Iterator[Answer]:
    for party in list_parties("called"):
        for name in SAYINGS:
            for streamed in (False, True):
                yield Answer(f"fake {party} {name}{' streamed' * streamed}", party, _ask_fake(party, name, streamed))


def _ask_fake(party: Party, behaviour: str, streamed: bool, args: dict[str, str] | None = None) -> bytes:
    found = BEHAVIOURS[behaviour]
    body: JsonObject = {"messages": [QUESTION], "tools": [TOOL], "stream": streamed}
    given = {**found.args, **(args or {})}
    request = ModelRequest(
        party.dialect,
        party.profile,
        body,
        "m",
        1,
        streamed,
        "",
        given,
        party.protocol,
        {"input": "x", "stream": streamed},
    )
    return b"".join(step for step in found.build_reply(request).steps if isinstance(step, bytes))


def _list_quirks() -> Iterator[Answer]:
    for quirk in load_quirks().values():
        if quirk.protocol in ("chat", "responses") and not quirk.is_error and quirk.status == 200:
            party = Party(quirk.upstream, "actual", quirk.protocol)
            for form in quirk.forms:
                name = f"quirk {quirk.name}{' streamed' * (form == 'streamed')}"
                yield Answer(name, party, _ask_fake(party, "quirk", form == "streamed", {"name": quirk.name}))


def _list_recordings() -> Iterator[Answer]:
    for file in sorted(RECORDINGS.glob("*/*.json")):
        asked, take = json.loads(file.read_text("utf-8"))["request"], read_take(file)
        protocol = {"/chat/completions": "chat", "/responses": "responses"}.get(asked["path"])
        if protocol and take.status == 200 and take.broken is None and '"n":2' not in asked["body"]:
            streamed = " streamed" * (not take.body.lstrip().startswith(b"{"))
            yield Answer(
                f"recording {file.parent.name}/{file.name}{streamed}", Party("openai", "actual", protocol), take.body
            )


def encode_events(events: list[JsonObject]) -> bytes:
    return b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in events) + b"data: [DONE]\n\n"


def _open(client: Party, headers: dict[str, str] | None = None) -> Pipeline:
    dialect = dialects[client.dialect]
    route = Route(dialect, client.protocol, dialect.served[client.protocol], client.profile)
    numbers = iter(range(100_000))
    path = dialect.paths[client.protocol][0].replace("{name}", "m")
    call = Call("POST", path, {}, dict(dialect.query), headers or {})
    return Pipeline(route, call, clock=lambda: 1.0, new_id=lambda prefix: f"{prefix}_{next(numbers)}")


def _plan(provider: Party) -> TargetPlan:
    return plan_target("p", dialects[provider.dialect], [provider.protocol], Target("m", provider.profile))


def get_turns(client: Party, answer: Answer) -> list[JsonObject] | None:
    """The messages or items that the client's SDK appends to its conversation; None if the answer is a failure."""
    streamed = answer.name.endswith("streamed")
    pipeline = _open(client)
    asked: JsonObject = {"messages": [QUESTION]} if client.protocol == "chat" else {"input": "x"}
    if client.protocol == answer.provider.protocol == "chat":
        asked["tools"] = [TOOL]
    attempt = pipeline.expect_reply(_plan(answer.provider), {"model": "m", **asked, "stream": streamed})
    kind = "text/event-stream" if streamed else "application/json"
    outputs = [attempt.start_reply(0, 200, {"content-type": kind}), attempt.feed(0, answer.body)]
    if attempt.is_reading(0):
        outputs.append(attempt.close(0))
    if attempt.outcome.state != "complete":
        return None
    data = b"".join(output.data for output in outputs)
    read = _read_stream if data.startswith((b"data:", b"event:")) else _read_whole
    return read(data, client.protocol)


def _read_whole(data: bytes, protocol: str) -> list[JsonObject]:
    body = orjson.loads(data)
    return list(body["output"]) if protocol == "responses" else [body["choices"][0]["message"]]


def _read_stream(data: bytes, protocol: str) -> list[JsonObject]:
    framer = Framer()
    items = [item.data for item in (*framer.feed(data), *framer.close()) if isinstance(item, Event)]
    events = [orjson.loads(item) for item in items if item != b"[DONE]"]
    if protocol == "responses":
        return list(events[-1]["response"]["output"])
    made: JsonObject = {}
    for event in events:
        for choice in event["choices"]:
            if choice.get("index", 0) == 0:
                _accumulate(made, choice["delta"])
    return [made]


def _accumulate(made: JsonObject, delta: JsonObject) -> None:
    """Add a delta as the OpenAI SDK does: texts and lists grow, items with an index meet."""
    for key, value in delta.items():
        before = made.get(key)
        if before is None or key in ("index", "type", "role", "id"):
            made[key] = [] if isinstance(value, list) else value
            if isinstance(value, list):
                _extend(made[key], value)
        elif isinstance(before, dict) and isinstance(value, dict):
            made[key] = dict(before)
            _accumulate(made[key], value)
        elif isinstance(before, list) or isinstance(value, list):
            made[key] = _as_blocks(before)
            _extend(made[key], _as_blocks(value))
        elif isinstance(before, str) and isinstance(value, str):
            made[key] = before + value
        elif value is not None:
            made[key] = value


def _as_blocks(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, list):
        return value
    return [{"type": "text", "text": value}] if value else []


def _extend(made: list[JsonValue], items: list[JsonValue]) -> None:
    for item in items:
        index = item.get("index") if isinstance(item, dict) else None
        same = next(
            (one for one in made if index is not None and isinstance(one, dict) and one.get("index") == index), None
        )
        if same is None:
            made.append(dict(item) if isinstance(item, dict) else item)
        else:
            _accumulate(same, item)


def continue_conversation(client: Party, turns: list[JsonObject]) -> JsonObject:
    """The next request: a question, the turns, the results of their calls, and another question."""
    if client.protocol == "responses":
        kinds = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
        calls = [item for item in turns if item.get("type") in kinds]
        results = [{"type": kinds[item["type"]], "call_id": item["call_id"], "output": "ok"} for item in calls]
        return {"model": "m", "input": [QUESTION, *turns, *results, QUESTION]}
    calls = [call for turn in turns for call in turn.get("tool_calls") or ()]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
    return {"model": "m", "messages": [QUESTION, *turns, *results, QUESTION]}


def write_request(client: Party, body: JsonObject, provider: Party, headers: dict[str, str] | None = None) -> Attempt:
    """The client's request as it goes to the provider. Raises Fault."""
    pipeline = _open(client, headers)
    pipeline.receive(orjson.dumps(body))
    if pipeline.start_conversation() is not None:
        pipeline.supply(None, [])
    return pipeline.prepare(_plan(provider))
