"""For every range: the last good value, the first bad one, and the path of the complaint."""

from __future__ import annotations

from dragoman.schemas import Schema, load, names, profiles

from .conftest import Case, Compile, FindErrors, is_patch


def test_values_at_a_boundary_are_accepted_and_beyond_it_refused(cases: list[Case], compiled: Compile) -> None:
    wrong = []
    for schema, profile, field, body, good in cases:
        if compiled(schema, profile).is_valid(body) != good:
            wrong.append(
                f"{schema} {profile}: {field}={str(body[field])[:100]} should be {'taken' if good else 'refused'}"
            )
    assert not wrong, "\n".join(wrong)


def test_every_refusal_points_at_the_field(cases: list[Case], compiled: Compile) -> None:
    for schema, profile, field, body, good in cases:
        if good:
            continue
        places = [list(error.instance_path)[:1] for error in compiled(schema, profile).iter_errors(body)]
        assert places and all(place == [field] for place in places), (schema, profile, field, places)


def test_the_table_covers_every_request_schema_and_profile(cases: list[Case]) -> None:
    """Those that are patches of another vendor's schema have its boundaries."""
    requests = [name for name in names() if name.endswith(".request")]
    wanted = {(name, profile) for name in requests if not is_patch(name) for profile in profiles(name)}
    assert {(schema, profile) for schema, profile, *_ in cases if not is_patch(schema)} == wanted


def test_every_bounded_number_is_in_the_table(cases: list[Case]) -> None:
    bounds = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    refused = {(schema, profile, field) for schema, profile, field, _, good in cases if not good}
    for schema, profile in {(schema, profile) for schema, profile, *_ in cases}:
        for field, rule in load(schema, profile)["properties"].items():
            if any(bound in rule for bound in bounds):
                assert (schema, profile, field) in refused, f"{schema} {profile}: no boundary of {field} is tested"


def test_a_request_has_at_most_10000_messages(errors: FindErrors) -> None:
    for name in (name for name in names() if name.endswith("chat.request")):
        body: Schema = {"model": "m", "messages": [{"role": "user", "content": "x"}] * 10000}
        assert not errors(name, body)
        body["messages"].append({"role": "user", "content": "x"})
        assert [list(error.instance_path) for error in errors(name, body)] == [["messages"]]


def test_a_request_has_at_most_10000_items(errors: FindErrors) -> None:
    for name in (name for name in names() if name.endswith("responses.request")):
        body: Schema = {"model": "m", "input": [{"role": "user", "content": "x"}] * 10000}
        assert not errors(name, body)
        body["input"].append({"role": "user", "content": "x"})
        assert [list(error.instance_path) for error in errors(name, body)] == [["input"]]


def test_an_input_has_at_most_10_mib(errors: FindErrors) -> None:
    body = {"model": "m", "input": "x" * 10485760}
    assert not errors("openai/responses.request", body)
    [error] = errors("openai/responses.request", {**body, "input": body["input"] + "x"})
    assert list(error.instance_path) == ["input"]


def test_logit_bias_has_at_most_1024_tokens(errors: FindErrors) -> None:
    for name in ("openai/chat.request", "hub/chat.request"):
        body: Schema = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
        assert not errors(name, {**body, "logit_bias": {str(token): 1 for token in range(1024)}})
        assert errors(name, {**body, "logit_bias": {str(token): 1 for token in range(1025)}})


def test_numbers_beyond_64_bits_are_refused(errors: FindErrors) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "seed": float(2**64)}
    assert errors("mindie/chat.request", body)
