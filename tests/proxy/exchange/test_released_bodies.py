"""A refused body is freed with its exchange. A reference cycle would keep it until the next collection of garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from dragoman.adapters.faults import Fault
from tests.proxy.conftest import StartProxy

CASES = (("m", "7"), ("unknown", "[]"), ("m", "[]"))


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def list_faults() -> list[Fault]:
    return [one for one in gc.get_objects() if isinstance(one, Fault)]


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("body", ["{", *(f'{{"model": "{model}", "messages": {value}}}' for model, value in CASES)])
async def test_no_fault_outlives_its_exchange(proxy: StartProxy, body: str) -> None:
    p = await proxy()
    constants = list_faults()
    async with p.session.post(p.url, data=body, headers={"Content-Type": "application/json"}) as response:
        assert response.status >= 400
    await p.exchanges()
    assert [one for one in list_faults() if one not in constants] == []
