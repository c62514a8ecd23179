"""Generated requests: what the client's dialect reads, and what is sent to the provider."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

import orjson

from dragoman.adapters.call import JsonObject, Policy, Target
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import Attempt, Pipeline
from dragoman.adapters.samples import load_sample
from dragoman.adapters.validation import Validator, request_validator

from .laws import Finding, Observer, find_bad_path, find_bad_rendering, take_snapshot
from .mutations import encode_json, list_places, mutate_value, remove_place
from .pairs import Pair, choose_target
from .receipt_holes import find_holes, trim_value
from .schema_values import SchemaValues

__all__ = ["RequestCase", "draw_request", "draw_valid_request", "load_plain_request"]

_FORMS = ("compact", "plain", "ascii", "bom", "cut", "flip", "twice", "utf-16", "latin", "duplicate")
_TRANSLATED = frozenset({"type", "role"})  # of messages, items and parts
_EXEMPT = frozenset({"model", "detail"})  # the model is looked up; the detail of an image is "auto" by default


@dataclass(frozen=True)
class RequestCase:
    """A body, encoded in a form of `encode_json`, from a client to a target. `outcome` says after a check what came of
    it, for the statistics."""

    pair: Pair
    target: Target
    body: Any
    form: str = "compact"
    at: float = 0.0

    def check(self) -> list[Finding]:
        return self.run()[1]

    def run(self) -> tuple[str, list[Finding]]:
        """The outcome, `sent` or `refused`, and the findings."""
        observer = Observer()
        pipeline = self.pair.create_pipeline(observer.report_defect)
        try:
            return self._send(pipeline, observer), observer.findings
        except Exception as error:  # noqa: BLE001 - anything but a Fault is a finding
            observer.add_error("only faults are raised", error)
            return "crashed", observer.findings

    def _send(self, pipeline: Pipeline, observer: Observer) -> str:
        raw = encode_json(self.body, self.form, self.at)
        try:
            pipeline.receive(raw)
        except Fault as fault:
            self._judge_fault(pipeline, fault, observer, _parse(raw))
            return "refused by the client's dialect"
        body = pipeline.call.body
        client, hub = take_snapshot(body), take_snapshot(pipeline.request)
        try:
            attempt = self.pair.prepare(pipeline, self.target)
        except Fault as fault:
            self._judge_fault(pipeline, fault, observer, body)
            return "refused for the target"
        finally:
            if (take_snapshot(body), take_snapshot(pipeline.request)) != (client, hub):
                observer.add("nothing alters the client's request", str(self.pair), take_snapshot(body)[:300])
        self._judge_calls(attempt, body, observer)
        return "sent"

    def _judge_fault(self, pipeline: Pipeline, fault: Fault, observer: Observer, body: Any) -> None:
        if body is not None and (path := find_bad_path(fault, body)) is not None:
            observer.add("paths are the client's", f"{fault.kind} {fault.code}", f"{path}: {fault.message}")
        if (text := find_bad_rendering(self.pair, pipeline, fault)) is not None:
            observer.add("errors fit the client's dialect", f"{self.pair.client} {fault.kind}", text)

    def _judge_calls(self, attempt: Attempt, body: JsonObject, observer: Observer) -> None:
        for planned in attempt.calls:
            orjson.dumps(planned.call.body)
        if len(attempt.calls) > 1:
            return  # each call has a part of the inputs
        receipt, sent = attempt.calls[0].receipt, attempt.calls[0].call.body
        exempt = _EXEMPT if self.pair.spoken == self.pair.called else _EXEMPT | _TRANSLATED
        for hole in find_holes(body, sent, receipt.changes, receipt.unmap, exempt=exempt, by_path=True):
            place = f"{self.pair.spoken}>{self.pair.called} {trim_value(hole)}"
            observer.add("every difference is in the receipt", place, hole)

    def simplify(self) -> Iterator[RequestCase]:
        if self.form != "compact":
            yield replace(self, form="compact")
        if self.target.policy != (plain := Policy(emulate_completions=True)):
            yield replace(self, target=replace(self.target, policy=plain))
        if self.target.lacks or self.target.kind:
            yield replace(self, target=replace(self.target, lacks=frozenset(), kind=None))
        for place in sorted(list_places(self.body), key=len):
            yield replace(self, body=remove_place(self.body, place))

    def describe(self) -> str:
        return f"{self.pair}\n{self.target}\n{encode_json(self.body, self.form, self.at)!r}"


def draw_request(random: Random, pair: Pair) -> RequestCase:
    """A request of a client, valid or not."""
    body = draw_valid_request(random, pair)
    for _ in range(random.choice((0, 0, 0, 1, 1, 2, 4))):
        body = mutate_value(random, body)
    form = random.choice(_FORMS) if random.random() < 0.15 else "compact"
    return RequestCase(pair, choose_target(random, pair), body, form, random.random())


def draw_valid_request(random: Random, pair: Pair) -> JsonObject:
    """A request that the client's schema accepts, in most cases: generated as a whole, or the dialect's sample with
    generated fields."""
    validator = _find_validator(pair)
    values = SchemaValues(random, validator)
    if random.random() < 0.5:
        body = values.draw()
    else:
        body = load_plain_request(pair)
        for name in random.sample(sorted(validator.known), random.randint(0, min(5, len(validator.known)))):
            body[name] = values.draw_property(name)
        body = values.settle(body)
    if not isinstance(body, dict):
        return {}
    if random.random() < 0.9:
        _connect_results(body)
    return body


def load_plain_request(pair: Pair) -> JsonObject:
    """The dialect's sample."""
    body: JsonObject = deepcopy(load_sample(pair.client, pair.spoken)["request"])
    return body


def _connect_results(body: JsonObject) -> None:
    """Give each result of a tool the id of a call before it, and such a call if there is none."""
    messages, items = body.get("messages"), body.get("input")
    if isinstance(messages, list):
        body["messages"] = [made for one in messages for made in _with_call(one, "role", "tool_call_id")]
    if isinstance(items, list):
        body["input"] = [made for one in items for made in _with_call(one, "type", "call_id")]


def _with_call(one: Any, key: str, id_key: str) -> list[Any]:
    kind = one.get(key) if isinstance(one, dict) else None
    if kind == "tool":
        one[id_key] = "call_1"
        function = {"name": "f", "arguments": "{}"}
        calls = [{"id": one[id_key], "type": "function", "function": function}]
        return [{"role": "assistant", "content": "x", "tool_calls": calls}, one]
    if kind in ("function_call_output", "custom_tool_call_output"):
        one[id_key] = "call_1"
        kind, said = (kind.removesuffix("_output"), "arguments" if kind[0] == "f" else "input")
        return [{"type": kind, "call_id": "call_1", "name": "f", said: "{}"}, one]
    return [one]


@cache
def _find_validator(pair: Pair) -> Validator:
    validator = request_validator(pair.client, pair.spoken, pair.profile)
    assert validator is not None
    return validator


def _parse(raw: bytes) -> Any:
    try:
        return orjson.loads(raw.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        return None
