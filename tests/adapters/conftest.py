from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pytest

from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.paths import Path, lookup
from dragoman.contract.json_types import JsonObject, JsonValue


class MakeContext(Protocol):
    """Makes a context for one verb. `target` holds fields of the target, among them `policy` as a mapping."""

    def __call__(self, profile: str = "actual", request: JsonObject | None = None, **target: JsonValue) -> Context: ...


class FindDifferences(Protocol):
    """Lists what differs between two bodies without a word of it in the receipt."""

    def __call__(self, before: JsonObject, after: JsonObject, receipt: Receipt) -> list[str]: ...


@pytest.fixture
def context() -> MakeContext:
    """A context for one verb, with a still clock and ids that count."""

    def make(profile: str = "actual", request: JsonObject | None = None, **target: JsonValue) -> Context:
        counter = iter(range(1, 1000))
        policy = Policy(**target.pop("policy", {}))
        return Context(
            profile=profile,
            call=Call("POST", "/v1/chat/completions", request or {}),
            receipt=Receipt(),
            target=Target(target.pop("model", "upstream-model"), profile=profile, policy=policy, **target),
            request=request or {},
            clock=lambda: 1_700_000_000.0,
            new_id=lambda prefix: f"{prefix}-{next(counter)}",
        )

    return make


def leaves(value: JsonValue, path: Path = ()) -> Iterator[tuple[Path, JsonValue]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not items:
        yield path, value
    for key, child in items:
        yield from leaves(child, (*path, key))


def covered(path: Path, places: list[Path]) -> bool:
    """A change speaks of the value itself, or of something it stands in."""
    return any(place and path[: len(place)] == place for place in places)


@pytest.fixture(scope="session")
def differences() -> FindDifferences:
    """What differs between two bodies without the receipt telling of it; `model` is looked up, so it does not count."""

    def find(before: JsonObject, after: JsonObject, receipt: Receipt) -> list[str]:
        before, after = ({key: body[key] for key in body if key != "model"} for body in (before, after))
        arrived = {receipt.unmap(path): value for path, value in leaves(after)}
        told_before = [change.before for change in receipt.changes]
        told_after = [change.after for change in receipt.changes]
        lost = [
            f"{path} was lost in silence"
            for path, value in leaves(before)
            if not (path in arrived and arrived[path] == value) and not covered(path, told_before)
        ]
        appeared = [
            f"{path} appeared in silence"
            for path, value in leaves(after)
            if not covered(path, told_after) and lookup(before, receipt.unmap(path)) != value
        ]
        return lost + appeared

    return find
