"""A small exchange of each protocol of a dialect, as its servers speak it in the profile in which they are called."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["load_sample"]


@cache
def load_sample(dialect: str, protocol: str) -> dict[str, Any]:
    """`request` and `reply`, the `events` of a stream if the protocol has streams, and an `error` with its status and
    body. Shared: never alter what this returns. Raises FileNotFoundError."""
    text = files(__package__).joinpath(dialect, "samples", f"{protocol}.json").read_text("utf-8")
    sample: dict[str, Any] = json.loads(text)
    return sample
