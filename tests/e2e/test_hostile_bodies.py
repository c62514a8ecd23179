"""Bodies that cost as much as they can, in every dialect and protocol: each is answered in the client's own form, and
in few steps. `bench/hostile_bodies.py` sends more and larger ones, with a clock."""

from __future__ import annotations

from functools import partial
from itertools import islice
from random import Random

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import Pipeline
from dragoman.adapters.routes import RouteTable
from dragoman.adapters.validation import load_validator
from tests.adapters.step_count import count_steps
from tools.hostile_bodies import Hostile, draw_bodies

ROUTES = RouteTable(dialects, {})
VALUES, SIZE = 3_000, 100_000
MOST_STEPS = 150_000


def receive(body: Hostile) -> None:
    """As the proxy does it. A refusal has the form of the client's dialect."""
    route = ROUTES.match(body.path)
    assert route is not None
    pipeline = Pipeline(route, Call("POST", body.path, {}))
    try:
        pipeline.receive(body.data, value_limit=VALUES)
    except Fault as fault:
        reply = pipeline.render_fault(fault)
        assert 400 <= reply.status < 500, body.name
        form = load_validator(f"{body.dialect}/{body.protocol}.error", route.profile)
        assert [one.message for one in form.violations(reply.body)] == [], body.name


@pytest.mark.parametrize("seed", range(6))
def test_hostile_bodies_are_answered_in_bounded_work(seed: int) -> None:
    for body in islice(draw_bodies(Random(seed), VALUES, SIZE, ("m",)), 150):
        receive(body)  # what is loaded on first use is no work of the request
        assert count_steps(partial(receive, body)) < MOST_STEPS, body.name
