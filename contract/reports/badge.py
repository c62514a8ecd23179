"""The badge: JSON in the form that a shields endpoint reads."""

from __future__ import annotations

import json

from dragoman.contract.json_types import JsonObject

__all__ = ["render_badge"]


def render_badge(report: JsonObject) -> str:
    """Render how many of the cases that ran pass, and how many only warn. Known gaps do not pass."""
    counts = report["counts"]
    passed, warned = counts["pass"], counts["warn"]
    ran = len(report["cases"]) - counts["skip"] - counts["inconclusive"]
    color = "red" if passed + warned < ran * 0.9 else "yellow" if passed < ran else "brightgreen"
    badge = {
        "schemaVersion": 1,
        "label": f"{report['target']['dialect']} contract",
        "message": f"{passed}/{ran}{f', {warned} warn' if warned else ''}",
        "color": color if ran else "lightgrey",
    }
    return json.dumps(badge) + "\n"
