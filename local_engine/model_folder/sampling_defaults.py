"""Sampling defaults: what a model's authors recommend for the parameters that a request leaves open.

They stand in `generation_config.json` (transformers). Without that file, they are read from `search` in
`genai_config.json` (onnxruntime-genai), which its builder copies from there. `do_sample: false` means temperature 0.
`sampling` in `dragoman.json` overrides single values. They are checked by the rules for chat requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.adapters.validation import load_validator

from .files import FolderError, read_json

__all__ = ["SAMPLING_DEFAULTS", "read_sampling_defaults"]

SAMPLING_DEFAULTS = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
)
"""The parameters that may have a default, by their names in a request."""


def read_sampling_defaults(folder: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Read the defaults of a folder; `settings` is its dragoman.json. Raises FolderError if a value is invalid."""
    overrides = _read_overrides(folder, settings)
    name, recommended = _find_recommended(folder)
    _check_values(folder / name, {key: value for key, value in recommended.items() if key not in overrides})
    _check_values(folder / "dragoman.json", overrides)
    return {key: value for key, value in (recommended | overrides).items() if value is not None}


def _read_overrides(folder: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    given = settings.get("sampling", {})
    if not isinstance(given, dict) or given.keys() - set(SAMPLING_DEFAULTS):
        names = ", ".join(SAMPLING_DEFAULTS)
        raise FolderError(
            f"{folder / 'dragoman.json'}: sampling is {given!r}; it must be an object with keys of {names}"
        )
    return given


def _find_recommended(folder: Path) -> tuple[str, dict[str, Any]]:
    """Return the name of the file that recommends values, and these."""
    name, found = "generation_config.json", read_json(folder, "generation_config.json")
    if not found:
        name = "genai_config.json"
        search = read_json(folder, name).get("search")
        found = search if isinstance(search, dict) else {}
    recommended = {key: found[key] for key in SAMPLING_DEFAULTS if found.get(key) is not None}
    return name, recommended | {"temperature": 0} if found.get("do_sample") is False else recommended


def _check_values(file: Path, values: Mapping[str, Any]) -> None:
    request = {"model": "model", "messages": [{"role": "user", "content": "text"}], **values}
    violation = load_validator("hub/chat.request").first_violation(request)
    if violation is not None:
        raise FolderError(f"{file}: {violation.message}; `sampling` in dragoman.json can override a value")
