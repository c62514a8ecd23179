"""The JUnit report: what continuous integration systems read."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from dragoman.contract.model import Json

__all__ = ["junit"]

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def junit(report: Json) -> str:
    counts, target = report["counts"], report["target"]
    suite = ElementTree.Element(
        "testsuite",
        name=f"dragoman contract: {target['name']} ({target['dialect']})",
        tests=str(len(report["cases"])),
        failures=str(counts["fail"]),
        errors=str(counts["error"]),
        skipped=str(counts["skip"] + counts["inconclusive"]),
        time=str(report["seconds"]),
        timestamp=report["started"],
    )
    for case in report["cases"]:
        _case(suite, case)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, "unicode", xml_declaration=True) + "\n"


def _case(suite: ElementTree.Element, case: Json) -> None:
    area, _, name = case["id"].rpartition("/")
    element = ElementTree.SubElement(suite, "testcase", classname=area, name=name, time=str(case["seconds"]))
    kind = {"fail": "failure", "error": "error", "skip": "skipped", "inconclusive": "skipped"}.get(case["verdict"])
    if case.get("expected"):
        kind = "skipped"
    if kind is not None:
        told = ElementTree.SubElement(element, kind, message=_clean(case.get("expected") or case["reason"]))
        told.text = _clean(
            f"{case['level']}: {case['title']}\nsource: {case['source']}\n{case['reason']}\n{_curls(case)}"
        )
    elif case["verdict"] == "warn":
        ElementTree.SubElement(element, "system-out").text = _clean(f"warning: {case['reason']}")


def _curls(case: Json) -> str:
    return "\n".join(step["curl"] for step in case["steps"] if "curl" in step)


def _clean(text: str) -> str:
    """XML has no way to write these characters."""
    return _CONTROL.sub("\ufffd", text)
