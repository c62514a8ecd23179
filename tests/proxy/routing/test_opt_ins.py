"""What is emulated only if the configuration says how, and on which level it says so."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from dragoman.adapters import dialects
from dragoman.adapters.call import Target
from dragoman.adapters.opt_ins import OptIns
from dragoman.contract.json_types import JsonObject
from dragoman.proxy.config.models import Config
from dragoman.proxy.routing.keys import ANYONE
from dragoman.proxy.routing.state import RouterState
from tests.proxy.no_upstream import NoUpstream


def find_target(file: JsonObject, provider: JsonObject, model: JsonObject, target: JsonObject) -> Target:
    config = Config.from_values(
        {
            "emulate": file,
            "providers": {"p": {"dialect": "openai", "base_url": "http://127.0.0.1/v1", "emulate": provider}},
            "models": {"m": {"targets": [{"provider": "p", "emulate": target}], "emulate": model}},
        }
    )
    state = RouterState(config, dialects, create_upstream=NoUpstream)
    return next(state.list_candidates("m", ANYONE, None)).target


async def test_nothing_is_by_default() -> None:
    target = find_target({}, {}, {}, {})
    assert target.opt_ins == OptIns(None, None, None, hold_streams=True)
    assert not target.opt_ins.places


async def test_the_narrowest_level_wins() -> None:
    wide: JsonObject = {"response_format": "instruct", "tools": "instruct", "hold_streams": False}
    target = find_target(wide, {"usage": "count"}, {"response_format": "tool"}, {"tools": False, "hold_streams": True})
    assert target.opt_ins == OptIns("tool", None, "count", hold_streams=True)
    assert ("response_format",) in target.opt_ins.places
    assert ("tools",) not in target.opt_ins.places
    assert "n" in target.emulates


@pytest.mark.parametrize(
    "wrong",
    [{"response_format": True}, {"response_format": "json"}, {"tools": "tool"}, {"usage": "tokens"}, {"tokens": True}],
)
async def test_other_values_are_mistakes(wrong: JsonObject) -> None:
    with pytest.raises(ValidationError):
        find_target(wrong, {}, {}, {})
