"""The law of the short way: what `SingleCall` answers is what an `Attempt` answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import orjson

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, JsonObject, Target
from dragoman.adapters.jsontext import read_object
from dragoman.adapters.pipeline import Attempt, Pipeline, SingleReply, begin_call, has_plain_head, plan_target
from dragoman.adapters.responses.stored import StoredResponse

from .laws import Observer

if TYPE_CHECKING:
    from .pairs import Pair

__all__ = ["compare_short_way"]

_MOST = 1024 * 1024


def compare_short_way(
    pair: Pair,
    target: Target,
    request: JsonObject,
    reply: tuple[int, Mapping[str, str], bytes],
    pipeline: Pipeline,
    attempt: Attempt,
    data: bytes,
    record: StoredResponse | None,
    observer: Observer,
    *,
    has_store: bool = False,
) -> bool:
    """Answer the same reply in the short way, and compare that with what the client got, and with the record that was
    saved. Returns whether there was an answer."""
    status, headers, body = reply
    plan = plan_target("provider", dialects[pair.provider], [pair.called], target)
    route, given, numbers = pipeline.route, pipeline.call, count()
    client = Call(given.method, given.path, read_object(orjson.dumps(request)), given.query, given.headers)
    single = begin_call(
        route,
        client,
        plan,
        "",
        lambda: 1_700_000_000.0,
        lambda prefix: f"{prefix}_{next(numbers):032x}",
        has_store=has_store,
    )
    if single is None or not has_plain_head(status, headers, _MOST):
        return False
    made = single.take_reply(headers, body)
    if made is None:
        return False
    kept = "" if single.call == attempt.calls[0].call else f"called {single.call}, not {attempt.calls[0].call}; "
    known = SingleReply(attempt.answer.status, attempt.headers, data, attempt.answer.usage, record)
    differences = [
        f"{name}: {short!r} != {long!r}"
        for name, short, long in zip(SingleReply._fields, _unify_id(made), _unify_id(known), strict=True)
        if short != long
    ]
    if single.receipt.changes != attempt.receipt.changes:
        differences.append(f"receipt: {single.receipt.changes!r} != {attempt.receipt.changes!r}")
    if single.receipt.violations != attempt.receipt.violations:
        differences.append("violations")
    if kept or differences or attempt.outcome.state != "complete":
        text = kept + "; ".join(differences) + attempt.outcome.state
        observer.add("the short way answers the same", str(pair), text)
    return True


def _unify_id(reply: SingleReply) -> SingleReply:
    """The reply with another id for the response that is kept: each way draws its own."""
    record = reply.record
    if record is None:
        return reply
    response = {**record.response, "id": "resp_kept"}
    data = reply.data.replace(record.id.encode(), b"resp_kept")
    return reply._replace(data=data, record=replace(record, id="resp_kept", response=response))
