"""The bounds that jinja2's own sandbox lacks: a template that passes there is refused here."""

from __future__ import annotations

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment

from dragoman.local_engine.sandbox import Bounds, Budget, Environment, OverBudget, spending

DOUBLING = '{% set n = namespace(a="x") %}{% for i in range(TIMES) %}{% set n.a = n.a ~ n.a %}{% endfor %}{{ n.a }}'
NESTED = "{% for i in range(300) %}{% for j in range(300) %}{% endfor %}{% endfor %}"
REPEATED = "{{ 'x' * 1000000 }}"


def render(text: str, bounds: Bounds) -> str:
    token = spending.set(Budget(bounds))
    try:
        return Environment().from_string(text).render()
    finally:
        spending.reset(token)


@pytest.mark.parametrize("theirs", [SandboxedEnvironment, ImmutableSandboxedEnvironment])
@pytest.mark.parametrize(
    ("text", "size", "bounds"),
    [
        (DOUBLING.replace("TIMES", "20"), 1 << 20, Bounds(chars=100_000)),
        (NESTED, 0, Bounds(steps=50_000)),
        (NESTED, 0, Bounds(seconds=0)),
        (REPEATED, 1_000_000, Bounds(chars=100_000)),
    ],
    ids=["size of a value", "steps", "time", "output"],
)
def test_what_jinja2s_own_sandbox_renders_is_refused_here(
    theirs: type[SandboxedEnvironment], text: str, size: int, bounds: Bounds
) -> None:
    assert len(theirs().from_string(text).render()) == size
    with pytest.raises(OverBudget):
        render(text, bounds)


def test_within_its_bounds_a_template_renders() -> None:
    assert render(DOUBLING.replace("TIMES", "3"), Bounds()) == "x" * 8
