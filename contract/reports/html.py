"""The HTML report: one self-contained file, with the reports as JSON; `page.js` renders them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files

from dragoman.contract.json_types import JsonObject

__all__ = ["render_page"]

_RULE_KEYS = ("id", "title", "source", "level")
_RESULT_KEYS = ("verdict", "reason", "cause", "expected", "steps")
_ESCAPED = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def render_page(reports: Sequence[JsonObject]) -> str:
    """Render the matrix of the reports, with a column for each. The page loads nothing else."""
    text = _read_asset("page.html")
    parts = {
        "/*STYLE*/": _read_asset("page.css"),
        "/*SCRIPT*/": _read_asset("page.js"),
        "/*REPORTS*/": json.dumps(_pack(reports), ensure_ascii=False, separators=(",", ":")).translate(_ESCAPED),
    }
    for placeholder, part in parts.items():
        text = text.replace(placeholder, part, 1)
    return text


def _pack(reports: Sequence[JsonObject]) -> JsonObject:
    """Pack the reports: the id, title, source and level of a case are written once, in `rules`, and `rule` is the index
    there. Empty values are left out."""
    indexes: dict[tuple[str, ...], int] = {}
    packed = []
    for report in reports:
        cases = []
        for case in report["cases"]:
            rule = tuple(case[key] for key in _RULE_KEYS)
            found = {key: case[key] for key in _RESULT_KEYS if case.get(key)}
            cases.append({**found, "rule": indexes.setdefault(rule, len(indexes))})
        packed.append(report | {"cases": cases})
    return {"rules": [dict(zip(_RULE_KEYS, rule, strict=True)) for rule in indexes], "reports": packed}


def _read_asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")
