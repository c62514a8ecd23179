"""What the page shows of the configuration: the file, every value in effect, and the line of each. Secrets are
masked."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.paths import Path
from dragoman.proxy.config.document import ConfigText
from dragoman.proxy.config.masks import is_secret
from dragoman.proxy.config.models import Config
from dragoman.proxy.config.rules import SecretText
from dragoman.proxy.telemetry.content_mask import ContentMask

__all__ = ["describe_configuration"]

_STARS = "***"


def describe_configuration(config: Config, text: ConfigText | None, mask: ContentMask) -> JsonObject:
    """The configuration as JSON. Without a file there are no lines and no places."""
    return {
        "file": None if text is None else text.file,
        "lines": [] if text is None else [mask.mask_text(line) for line in text.lines],
        "values": _mask_values((), asdict(config), mask),
        "places": {} if text is None else {**text.places},
    }


def _mask_values(path: Path, value: Any, mask: ContentMask) -> Any:
    if isinstance(value, dict):
        return {name: _mask_values((*path, name), child, mask) for name, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [_mask_values((*path, place), child, mask) for place, child in enumerate(value)]
    if isinstance(value, SecretText) or (path and path[-1] == "key_hash"):
        return _STARS if value else None
    if isinstance(value, str):
        is_hidden = path[0] != "keys" and is_secret(path, value)
        return _STARS if is_hidden else mask.mask_text(value)
    return value if value is None or isinstance(value, (int, float)) else str(value)
