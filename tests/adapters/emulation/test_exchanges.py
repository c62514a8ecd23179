"""A provider without a capability gives the same answer as one that has it, whole and streamed."""

from __future__ import annotations

from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, JsonObject, Policy, Target
from dragoman.adapters.emulation.registry import EMULATIONS
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import Attempt, Pipeline, plan_target
from dragoman.adapters.routes import Route
from dragoman.adapters.sse import Event, Framer

from .model import PROMPT_TOKENS, Model, read_choices

LACKS = ("n", "stop", "parallel_tool_calls")
EVERYTHING = frozenset(EMULATIONS)
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("f", "g")]


def prepare(protocol: str, request: JsonObject, **target: Any) -> Attempt:
    route = Route(dialects["openai"], protocol, dialects["openai"].served[protocol], "actual")
    pipeline = Pipeline(route, Call("POST", "/", {}), clock=lambda: 1.0)
    pipeline.receive(orjson.dumps(request))
    options = {"emulates": EVERYTHING, **target}
    return pipeline.prepare(plan_target("p", dialects["openai"], [protocol], Target("up", **options)))


def exchange(attempt: Attempt, model: Model, random: Random, cut: int | None = None) -> bytes:
    """Answer all calls, their bytes in any order and in pieces; the call `cut` breaks off in the middle."""
    replies = {call.number: model.answer(call.call) for call in attempt.calls}
    if cut is not None:
        replies[cut] = replies[cut][: len(replies[cut]) // 2]
    data = b""
    for call in attempt.calls:
        kind = "text/event-stream" if call.stream else "application/json"
        data += attempt.start_reply(call.number, 200, {"content-type": kind}).data
    while any(map(attempt.is_reading, replies)):
        number = random.choice([number for number in replies if attempt.is_reading(number)])
        size = random.randint(1, 400)
        piece, replies[number] = replies[number][:size], replies[number][size:]
        broken = Fault("upstream_invalid_response", "cut") if number == cut else None
        data += attempt.feed(number, piece).data if piece else attempt.close(number, broken).data
    return data


def read(data: bytes, *, stream: bool) -> list[JsonObject]:
    if not stream:
        return [orjson.loads(data)]
    framer = Framer()
    events = [one.data for one in [*framer.feed(data), *framer.close()] if isinstance(one, Event)]
    assert events.pop() == b"[DONE]"
    return [orjson.loads(one) for one in events]


REQUESTS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 20),
        "stream": st.booleans(),
        "n": st.integers(1, 5),
        "stop": st.none() | st.lists(st.sampled_from(["E", "ab", "b.a", "bE"]), min_size=1, max_size=3),
    }
)
TEXTS = st.lists(st.text("abE.", max_size=20), min_size=6, max_size=6)
CALLS = st.lists(st.lists(st.sampled_from("fg"), max_size=3), min_size=6, max_size=6)


@given(
    request=REQUESTS,
    texts=TEXTS,
    calls=CALLS,
    lacks=st.sampled_from([{"n"}, {"stop"}, {"parallel_tool_calls"}, {"n", "stop"}, set(LACKS)]),
    chat=st.booleans(),
    one_call=st.booleans(),
    prompts=st.integers(1, 3),
    cuts=st.integers(1, 4),
    random=st.randoms(use_true_random=False),
)
def test_the_answer_is_that_of_a_provider_with_the_capability(
    request: JsonObject,
    texts: list[str],
    calls: list[list[str]],
    lacks: set[str],
    chat: bool,
    one_call: bool,
    prompts: int,
    cuts: int,
    random: Random,
) -> None:
    protocol = "chat" if chat else "completions"
    asked: JsonObject = {"model": "m", **request}
    if chat:
        asked |= {"messages": [{"role": "user", "content": "x"}]}
        asked |= {"tools": TOOLS, "parallel_tool_calls": False} if one_call else {}
    else:
        asked |= {"prompt": ["x"] * prompts}
    if request["stream"]:
        asked["stream_options"] = {"include_usage": True}
    able, unable = Model(texts, calls, cuts=cuts), Model(texts, calls, frozenset(lacks), cuts)
    wanted = read(exchange(prepare(protocol, asked), able, random), stream=request["stream"])
    attempt = prepare(protocol, asked, lacks=frozenset(lacks))
    given = read(exchange(attempt, unable, random), stream=request["stream"])

    assert read_choices(given) == read_choices(wanted)
    assert attempt.outcome.state == "complete"
    assert [*read_choices(given)] == sorted(read_choices(given)) or request["stream"]
    calls_made = request["n"] if "n" in lacks else 1
    assert len(unable.asked) == calls_made
    usage, whole = given[-1]["usage"], wanted[-1]["usage"]
    if "stop" not in lacks or not request["stop"]:
        assert usage["completion_tokens"] == whole["completion_tokens"]
        assert usage["prompt_tokens"] == calls_made * PROMPT_TOKENS
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    told = {change.before[0] for change in attempt.receipt.changes if change.action == "emulated"}
    assert ("n" in told) == (calls_made > 1)


@given(n=st.integers(2, 5), stream=st.booleans(), cut=st.integers(0, 4), random=st.randoms(use_true_random=False))
def test_a_cut_reply_of_one_call_fails_the_whole(n: int, stream: bool, cut: int, random: Random) -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "x"}], "n": n, "stream": stream}
    attempt = prepare("chat", asked, lacks=frozenset({"n"}))
    data = exchange(attempt, Model(["one two three"] * 6, [[]]), random, cut % n)
    assert attempt.outcome.state == "failed"
    assert b"[DONE]" not in data


# Which emulations are needed


def ask(**more: Any) -> JsonObject:
    return {"model": "m", "messages": [{"role": "user", "content": "x"}], **more}


def test_what_the_target_takes_is_not_emulated() -> None:
    attempt = prepare("chat", ask(n=3, stop="#"))
    assert len(attempt.calls) == 1
    assert attempt.receipt.changes == []


@pytest.mark.parametrize("policy", [Policy(), Policy(unsupported="drop"), Policy(out_of_range="clamp")])
def test_what_can_be_emulated_is_neither_refused_nor_dropped_nor_clamped(policy: Policy) -> None:
    for more in ({"lacks": frozenset({"n"})}, {"limits": {"n": 2}}):
        attempt = prepare("chat", ask(n=3), policy=policy, **more)
        assert len(attempt.calls) == 3
        assert attempt.receipt.losses == []


def test_what_is_not_emulated_follows_the_policy() -> None:
    lacks, no_n = frozenset({"n"}), EVERYTHING - {"n"}
    with pytest.raises(Fault, match="n cannot be served"):
        prepare("chat", ask(n=3), lacks=lacks, emulates=no_n)
    dropped = prepare("chat", ask(n=3), lacks=lacks, emulates=no_n, policy=Policy(unsupported="drop"))
    assert len(dropped.calls) == 1
    assert dropped.receipt.is_lost(("n",))


def test_more_choices_than_several_calls_make_follow_the_policy() -> None:
    lacks = frozenset({"n"})
    with pytest.raises(Fault, match="at most 8 choices"):
        prepare("chat", ask(n=9), lacks=lacks)
    dropped = prepare("chat", ask(n=9), lacks=lacks, policy=Policy(unsupported="drop"))
    assert len(dropped.calls) == 1
    assert dropped.receipt.is_lost(("n",))


def test_strictly_only_what_is_exact_is_emulated() -> None:
    exactly = Policy(unsupported="refuse-exactly")
    tools = {"tools": TOOLS, "parallel_tool_calls": False}
    lacks = frozenset({"n", "parallel_tool_calls"})
    assert len(prepare("chat", ask(n=3), lacks=lacks, policy=exactly).calls) == 3
    assert prepare("chat", ask(**tools, tool_choice="none"), lacks=lacks, policy=exactly).calls
    with pytest.raises(Fault, match="not exactly") as caught:
        prepare("chat", ask(n=3, **tools), lacks=lacks, policy=exactly)
    assert caught.value.param == "parallel_tool_calls"
    assert prepare("chat", ask(n=3, **tools), lacks=lacks).calls


def test_other_reasons_are_given_without_what_can_be_emulated() -> None:
    with pytest.raises(Fault) as caught:
        prepare("chat", ask(n=2, seed=1, logprobs=True), lacks=frozenset({"n", "seed", "logprobs"}))
    assert sorted(str(one.param) for one in caught.value.reasons) == ["logprobs", "seed"]


def test_a_usage_that_comes_unasked_is_given_to_the_client_who_asked() -> None:
    asked = ask(stream=True, stream_options={"include_usage": True})
    attempt = prepare("chat", asked, lacks=frozenset({"stream_options"}))
    (call,) = attempt.calls
    assert "stream_options" not in call.call.body
    told = Call("POST", "/", {**call.call.body, "stream_options": asked["stream_options"]})
    attempt.start_reply(0, 200, {"content-type": "text/event-stream"})
    data = attempt.feed(0, Model(["one"], [[]]).answer(told)).data
    assert read(data, stream=True)[-1]["usage"]["total_tokens"] == PROMPT_TOKENS + 3


def test_the_header_names_the_emulation_and_its_cost() -> None:
    attempt = prepare("chat", ask(n=2), lacks=frozenset({"n"}))
    assert attempt.headers["x-dragoman-changes"].startswith('emulated;path="n";reason="2 calls')


def test_a_failed_call_fails_the_attempt_with_its_receipt() -> None:
    attempt = prepare("chat", ask(n=2), lacks=frozenset({"n"}))
    attempt.start_reply(1, 429, {})
    attempt.feed(1, b'{"error": {"message": "slow down"}}')
    attempt.close(1)
    assert attempt.outcome.fault is not None
    assert attempt.outcome.fault.answered == 429
    assert not any(map(attempt.is_reading, (0, 1)))
