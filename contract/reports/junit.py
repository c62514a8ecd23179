"""The JUnit report, for continuous integration systems."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from dragoman.contract.json_types import JsonObject

__all__ = ["render_junit"]

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def render_junit(report: JsonObject) -> str:
    """Render a test suite with a test case for each contract case."""
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
        _add_case(suite, case)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, "unicode", xml_declaration=True) + "\n"


def _add_case(suite: ElementTree.Element, case: JsonObject) -> None:
    area, _, name = case["id"].rpartition("/")
    element = ElementTree.SubElement(suite, "testcase", classname=area, name=name, time=str(case["seconds"]))
    kind = {"fail": "failure", "error": "error", "skip": "skipped", "inconclusive": "skipped"}.get(case["verdict"])
    if case.get("expected"):
        kind = "skipped"
    if kind is not None:
        outcome = ElementTree.SubElement(
            element, kind, message=_replace_control_characters(case.get("expected") or case["reason"])
        )
        outcome.text = _replace_control_characters(
            f"{case['level']}: {case['title']}\nsource: {case['source']}\n{case['reason']}\n{_list_curl_commands(case)}"
        )
    elif case["verdict"] == "warn":
        ElementTree.SubElement(element, "system-out").text = _replace_control_characters(f"warning: {case['reason']}")


def _list_curl_commands(case: JsonObject) -> str:
    return "\n".join(step["curl"] for step in case["steps"] if "curl" in step)


def _replace_control_characters(text: str) -> str:
    """Replace the characters that XML does not allow."""
    return _CONTROL.sub("\ufffd", text)
