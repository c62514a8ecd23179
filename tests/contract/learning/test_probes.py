"""The probes are good requests: each dialect that has a field accepts the way in which it is asked for."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from dragoman.contract.dialects import DIALECTS, load_dialect
from dragoman.contract.json_types import JsonObject
from dragoman.contract.learning.probes import count_tokens, load_probes
from dragoman.schemas import load, merge_patch

PROBES = load_probes()
PATHS = {dialect: load_dialect(dialect).paths for dialect in DIALECTS}
PROTOCOLS = [(dialect, name) for dialect, paths in PATHS.items() for name in PROBES.protocols if name in paths]
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


@pytest.mark.parametrize(("dialect", "protocol"), PROTOCOLS)
def test_every_probe_is_a_good_request(dialect: str, protocol: str) -> None:
    schema = load(f"{dialect}/{protocol}.request", "actual")
    validator, probe = Draft202012Validator(schema), PROBES.protocols[protocol]
    for field in PROBES.fields.get(protocol, ()):
        if field.field in schema["properties"]:
            for change in field.send:
                body = {"model": "m", **merge_patch(probe.body, change)}
                assert list(validator.iter_errors(body)) == [], field.field


@pytest.mark.parametrize("protocol", PROBES.protocols)
def test_no_probe_lets_the_model_write_much(protocol: str) -> None:
    body = PROBES.protocols[protocol].body
    changes = [change for one in PROBES.fields.get(protocol, ()) for change in one.send]
    bodies: list[JsonObject] = [body, *(merge_patch(body, change) for change in changes)]
    assert all(count_tokens(one) < 400 for one in bodies)
    assert max(one.get(name) or 0 for one in bodies for name in LIMITS) <= 48
