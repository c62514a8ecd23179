"""The badge: JSON in the form that shields endpoints read."""

from __future__ import annotations

import json

from dragoman.contract.model import Json

__all__ = ["badge"]


def badge(report: Json) -> str:
    """How many of the cases that were asked pass; warnings count as passed, known gaps do not."""
    counts = report["counts"]
    good, asked = counts["pass"] + counts["warn"], len(report["cases"]) - counts["skip"] - counts["inconclusive"]
    color = "red" if good < asked * 0.9 else "yellow" if good < asked else "brightgreen"
    told = {
        "schemaVersion": 1,
        "label": f"{report['target']['dialect']} contract",
        "message": f"{good}/{asked}",
        "color": color if asked else "lightgrey",
    }
    return json.dumps(told) + "\n"
