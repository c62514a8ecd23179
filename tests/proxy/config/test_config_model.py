"""The parts of the configuration: what reading them needs, what they keep on their way between processes, and what they
hide."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, asdict, dataclass, field, replace
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from dragoman.proxy.config.config_model import ConfigModel
from dragoman.proxy.config.models import Config, Drain, Key, Provider
from dragoman.proxy.config.rules import SecretText

FULL = {
    "server": {"admin_key": "secret-a", "profiles": {"azure": "documented"}, "allowed_hosts": ["a.example"]},
    "keys": [{"name": "k", "key": "secret-b", "metadata": {"team": "x"}, "budget": {"tokens_per_day": 5}}],
    "providers": {
        "p": {"dialect": "openai", "base_url": "https://a.example/v1", "headers": {"x-a": "b"}},
        "l": {"engine": "litellm", "vendor": "bedrock", "parameters": {"aws_region_name": "secret-c"}},
    },
    "models": {
        "m": {"targets": [{"provider": "p", "price": {"input": 1, "output": 2}}], "fallbacks_for": {}},
        "n": {"targets": [{"provider": "l", "emulate": {"n": False}}], "policy": {"preset": "strict"}},
    },
}  # fmt: skip

IMPORTS = "import sys; import dragoman.proxy.config.models; print('pydantic' in sys.modules)"


def test_no_part_needs_pydantic_before_it_is_read() -> None:
    run = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


def test_a_configuration_is_the_same_in_another_process() -> None:
    config = Config.from_values(FULL)
    again = pickle.loads(pickle.dumps(config))
    assert again == config
    assert again != replace(config, keys=[])
    assert again.keys[0].key.get_secret_value() == "secret-b"


def test_no_way_of_writing_a_configuration_shows_a_secret() -> None:
    config = Config.from_values(FULL)
    written = orjson.dumps(config, default=str).decode()
    for text in (repr(config), str(config.keys[0].key), written, json.dumps(asdict(config), default=str)):
        assert "***" in text
        assert "secret" not in text.replace("client_secret", "")


def test_secrets_are_equal_if_their_texts_are() -> None:
    assert SecretText("a") == SecretText("a") != SecretText("b")
    assert SecretText("a") != "a"
    assert len({SecretText("a"), SecretText("a")}) == 1
    assert not SecretText("")


def test_lists_and_mappings_that_are_not_set_belong_to_one_part_alone() -> None:
    assert Provider().headers == Provider().headers == {}
    assert Provider().headers is not Provider().headers
    assert Key(name="a", key=SecretText("b")).models == ["*"]


DRAIN = Drain()


class Part(ConfigModel):
    first: int
    second: list[str] = field(default_factory=list)
    third: Drain = DRAIN


@dataclass(frozen=True, kw_only=True)
class Plain:
    first: int
    second: list[str] = field(default_factory=list)
    third: Drain = DRAIN


GIVEN: list[dict[str, Any]] = [{"first": 1}, {"first": 1, "second": ["a"]}, {"first": 2, "third": Drain(delay=1)}]
WRONG: list[dict[str, Any]] = [{}, {"first": 1, "fourth": 1}, {"second": []}]


def test_a_part_is_what_a_frozen_dataclass_is() -> None:
    parts, plain = [Part(**values) for values in GIVEN], [Plain(**values) for values in GIVEN]
    assert [repr(part) for part in parts] == [repr(one).replace("Plain", "Part") for one in plain]
    assert [asdict(part) for part in parts] == [asdict(one) for one in plain]
    equal = [[one == other for other in (*plain, 1)] for one in plain]
    assert [[one == other for other in (*parts, 1)] for one in parts] == equal
    assert replace(parts[0], first=2) == Part(first=2)
    assert {Drain(): 1}[Drain()] == 1


@pytest.mark.parametrize("kind", [Part, Plain])
def test_a_part_refuses_what_a_frozen_dataclass_refuses(kind: type[Any]) -> None:
    for values in WRONG:
        with pytest.raises(TypeError):
            kind(**values)
    with pytest.raises(TypeError):
        kind(1)
    with pytest.raises(TypeError):
        hash(kind(first=1))
    with pytest.raises(FrozenInstanceError):
        kind(first=1).first = 2
    with pytest.raises(FrozenInstanceError):
        del kind(first=1).first


@pytest.mark.parametrize("values", [{"sever": {}}, {"server": {"port": True}}, {"server": {"drain": {"delay": 0}}}])
def test_values_are_checked_at_every_depth(values: object) -> None:
    with pytest.raises(ValidationError):
        Config.from_values(values)


def test_checked_parts_can_be_checked_again() -> None:
    config = Config.from_values(FULL)
    assert Config.from_values(asdict(config)) == config
