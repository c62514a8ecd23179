"""Samples: for each protocol of a dialect a small exchange with one of its servers, in the dialect's called profile."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["load_sample"]


@cache
def load_sample(dialect: str, protocol: str) -> dict[str, Any]:
    """Load the sample of a dialect's protocol, a JSON object. It is cached and shared, so never alter it.

    It has a `request`, a `reply`, the `events` of a stream if the protocol has streams, and an `error` with `status`
    and `body`. Raises FileNotFoundError if the dialect does not have the protocol.
    """
    text = Path(__file__).parent.joinpath(dialect, "samples", f"{protocol}.json").read_text("utf-8")
    sample: dict[str, Any] = json.loads(text)
    return sample
