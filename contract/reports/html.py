"""The HTML report: one self-contained file. What it shows stands in it as JSON; `page.js` draws it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files

from dragoman.contract.model import Json

__all__ = ["page"]

_RULE = ("id", "title", "source", "level")
_FOUND = ("verdict", "reason", "expected", "steps")
_ESCAPED = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def page(reports: Sequence[Json]) -> str:
    """The matrix of those reports, a column for each. It needs nothing from anywhere else."""
    text = _asset("page.html")
    parts = {
        "/*STYLE*/": _asset("page.css"),
        "/*SCRIPT*/": _asset("page.js"),
        "/*REPORTS*/": json.dumps(_packed(reports), ensure_ascii=False, separators=(",", ":")).translate(_ESCAPED),
    }
    for hole, part in parts.items():
        text = text.replace(hole, part, 1)
    return text


def _packed(reports: Sequence[Json]) -> Json:
    """The reports with what a case says in each of them written once: `rule` is its place in `rules`. What is empty is
    left out."""
    places: dict[tuple[str, ...], int] = {}
    told = []
    for report in reports:
        cases = []
        for case in report["cases"]:
            rule = tuple(case[key] for key in _RULE)
            found = {key: case[key] for key in _FOUND if case.get(key)}
            cases.append({**found, "rule": places.setdefault(rule, len(places))})
        told.append(report | {"cases": cases})
    return {"rules": [dict(zip(_RULE, rule, strict=True)) for rule in places], "reports": told}


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")
