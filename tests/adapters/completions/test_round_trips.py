"""What a dialect's client says reaches a provider of the same dialect as it was, but for what the receipt names; and so
does what that provider answers."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Reply, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.adapters.conftest import FindDifferences
from tests.dialects import served

PAIRS = [(dialect, profile) for dialect in served("completions") for profile in ("documented", "actual")]
TEXTS = ["hello", "", "é ü 漢字 👋🏽", 'quote " and \\']
BOOLEANS = [None, True, False]
PENALTIES = [None, 0, -2, 1.5, 2]

# field: values
SHARED: dict[str, list[JsonValue]] = {
    "max_tokens": [None, 1, 4096],
    "temperature": [None, 0, 0.5, 2],
    "top_p": [None, 0.001, 1],
    "stop": [None, "END", ["END"], ["a", "b", "c", "d"]],
    "suffix": [None, "", "the end"],
    "echo": BOOLEANS,
}
OPENAI: dict[str, list[JsonValue]] = {
    **SHARED,
    "n": [None, 1, 3, 128],
    "logprobs": [None, 0, 5],
    "presence_penalty": PENALTIES,
    "frequency_penalty": PENALTIES,
    "logit_bias": [None, {}, {"50256": -100}],
    "seed": [None, -(2**63), 2**63 - 1],
    "user": [None, "u"],
    "top_k": [1, 40],
    "made_up": [1, {"deep": [1, None]}],
}
DATABRICKS: dict[str, list[JsonValue]] = {
    **SHARED,
    "n": [None, 1, 2, 5],
    "top_k": [None, 1, 40],
    "use_raw_prompt": BOOLEANS,
    "error_behavior": [None, "error"],
    "made_up": [1, {"deep": [1, None]}],
}
STREAMS: list[JsonObject] = [{}, {"stream": None}, {"stream": False}, {"stream": True}]
PROMPTS: dict[str, list[JsonValue]] = {
    "openai": [*TEXTS, TEXTS[:1], TEXTS, [1, 2], [[1], [2, 3]], None],
    "databricks": [*TEXTS, TEXTS[:1], TEXTS],
}


def requests(dialect: str) -> st.SearchStrategy[JsonObject]:
    fields = OPENAI if dialect == "openai" else DATABRICKS
    streams = [*STREAMS, {"stream": True, "stream_options": {"include_usage": True}}][: 5 if dialect == "openai" else 4]
    optional = {name: st.sampled_from(values) for name, values in fields.items()}
    made = st.fixed_dictionaries({"prompt": st.sampled_from(PROMPTS[dialect])}, optional=optional)
    return st.tuples(made, st.sampled_from(streams)).map(lambda two: {"model": "m", **two[0], **two[1]})


def call_of(dialect: str, body: JsonObject) -> Call:
    path = "/v1/completions" if dialect == "openai" else "/serving-endpoints/completions"
    return Call("POST", path, body)


@pytest.mark.parametrize(("dialect", "profile"), PAIRS)
def test_requests(dialect: str, profile: str, differences: FindDifferences) -> None:
    served, called = (getattr(dialects[dialect], side)["completions"] for side in ("served", "called"))

    def law(body: JsonObject) -> None:
        before = copy.deepcopy(body)
        ctx = Context(profile, call_of(dialect, body), Receipt())
        hub = served.read_request(ctx.call, ctx)
        target = Target("m", profile, kind="provisioned-throughput")
        onward = Context(profile, ctx.call, ctx.receipt.fork(), target, hub)
        written = called.write_request(hub, onward)
        assert body == before, "the client's request was altered"
        assert load_validator(f"{dialect}/completions.request", profile).accepts(written.body)
        assert differences(before, written.body, onward.receipt) == []

    given(requests(dialect))(law)()


LOGPROBS = {"tokens": ["a"], "token_logprobs": [None], "top_logprobs": [None], "text_offset": [0]}
USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
DETAILS = {"openai": {"completion_tokens_details": {"reasoning_tokens": 2}}, "databricks": {"reasoning_tokens": 2}}


def replies(dialect: str, profile: str, prompts: int, wanted: int) -> st.SearchStrategy[JsonObject]:
    finish = ["stop", "length", "content_filter"]
    if profile == "actual" or dialect == "databricks":
        finish += ["end_turn", "made up"]
    choice = {"text": st.sampled_from(TEXTS), "finish_reason": st.sampled_from(finish)}
    more = {"logprobs": st.sampled_from([None, LOGPROBS] if dialect == "openai" else [None])}
    one = st.fixed_dictionaries(choice | (more if dialect == "openai" else {}))
    head = {"id": "cmpl-1", "object": "text_completion", "created": 7}
    if dialect == "openai":
        head["model"] = "m"

    def whole(made: tuple[list[JsonObject], JsonObject]) -> JsonObject:
        numbers = range(prompts * wanted)
        indexes = [number // wanted if dialect == "databricks" else number for number in numbers]
        choices = [{"index": index, **said} for index, said in zip(indexes, made[0], strict=True)]
        return {**head, "choices": choices, "usage": made[1]}

    count = prompts * wanted
    usages = st.sampled_from([USAGE, USAGE | DETAILS[dialect]])
    return st.tuples(st.lists(one, min_size=count, max_size=count), usages).map(whole)


@pytest.mark.parametrize(("prompts", "wanted"), [(1, 1), (2, 1), (1, 3), (2, 2)])
@pytest.mark.parametrize(("dialect", "profile"), PAIRS)
def test_replies(dialect: str, profile: str, prompts: int, wanted: int, differences: FindDifferences) -> None:
    served, called = (getattr(dialects[dialect], side)["completions"] for side in ("served", "called"))
    rules = load_validator(f"{dialect}/completions.reply", profile)
    request = {"model": "m", "prompt": ["x"] * prompts, "n": wanted}

    def law(body: JsonObject) -> None:
        assert rules.accepts(body), list(rules.violations(body))
        ctx = Context(profile, call_of(dialect, request), Receipt(), Target("m", profile), request)
        hub = called.read_reply(Reply(200, json.loads(json.dumps(body))), ctx)
        assert [one["index"] for one in hub["choices"]] == list(range(prompts * wanted))
        assert load_validator("hub/completions.reply").accepts(hub)
        before = copy.deepcopy(hub)
        written = served.write_reply(hub, ctx)
        assert hub == before, "the hub reply was altered"
        assert (written.status, list(rules.violations(written.body))) == (200, [])
        if wanted > 1:
            assert [one["index"] for one in written.body["choices"]] == [one["index"] for one in body["choices"]]
        for one, original in zip(written.body["choices"], body["choices"], strict=True):
            assert one.pop("native_finish_reason", None) in (None, original["finish_reason"])
        assert differences(body, written.body, ctx.receipt) == []

    given(replies(dialect, profile, prompts, wanted))(law)()
