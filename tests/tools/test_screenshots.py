"""The requests of the pictures in docs/images."""

from __future__ import annotations

import json
import re

from dragoman.contract.fakes.selection import parse_behaviour
from tools import screenshots


def test_requests_name_behaviours_that_fakes_have() -> None:
    named = re.findall(r"\bfake:([^\"]+)", json.dumps(screenshots._REQUESTS))
    assert named
    for text in named:
        parse_behaviour(text, "openai")
