"""The JSON report: the target, and the result of each case with its wire log. Its schema is `report.json`."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlencode

from jsonschema import Draft202012Validator

from dragoman.contract.causes import find_cause
from dragoman.contract.exchange import Exchange, Request, Response
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.contract.masks import Mask
from dragoman.contract.outcome import UpstreamRequest
from dragoman.contract.profiles import count_failures_by_profile, suggest_profile
from dragoman.contract.target import Target
from dragoman.contract.verdicts import VERDICTS, CaseResult, CheckResult, StepResult, UpstreamLog

__all__ = [
    "InvalidReportError",
    "build_curl_command",
    "build_report",
    "read_report",
    "serialize_report",
    "shorten_report",
]

VERSION = 1
_MOST_CHARACTERS = 20_000
_BRIEF_CHARACTERS, _BRIEF_HEADERS = 300, 4


class InvalidReportError(ValueError):
    """The file is not a report of this suite."""


def build_report(
    target: Target, results: Sequence[CaseResult], mask: Mask, *, name: str, suite: str, started: str
) -> JsonObject:
    """Build the report. `name` is the name of the target in matrices, `suite` the version of the suite, `started` a
    time in ISO 8601."""
    counts = Counter(result.verdict for result in results)
    failures = count_failures_by_profile(results, target)
    return {
        "report": VERSION,
        "suite": suite,
        "started": started,
        "seconds": round(sum(result.seconds for result in results), 3),
        "target": {
            "name": name,
            "base_url": mask(target.base_url),
            "dialect": target.dialect,
            "profile": target.schema_profile,
            "model": target.model,
            "upstream": target.upstream,
        },
        "counts": {verdict: counts[verdict] for verdict in VERDICTS},
        "profiles": failures,
        "advice": suggest_profile(failures, target.schema_profile),
        "tokens": sum(result.tokens for result in results),
        "cases": [_serialize_case(result, mask) for result in results],
    }


def read_report(file: Path) -> JsonObject:
    """Read a JSON report. Raises InvalidReportError."""
    try:
        report = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidReportError(f"{file}: {error}") from None
    problem = next(_report_validator().iter_errors(report), None)
    if problem is not None:
        path = "/".join(str(part) for part in problem.absolute_path)
        raise InvalidReportError(f"{file} is not a report of this suite: {path}: {problem.message[:200]}")
    found: JsonObject = report
    return found


@cache
def _report_validator() -> Draft202012Validator:
    return Draft202012Validator(
        json.loads(files("dragoman.contract").joinpath("schemas", "report.json").read_text("utf-8"))
    )


def _serialize_case(result: CaseResult, mask: Mask) -> JsonObject:
    case = result.case
    return {
        "id": case.id,
        "title": case.title,
        "source": case.source,
        "level": case.level,
        "protocol": case.protocol,
        "verdict": result.verdict,
        "reason": mask(result.reason),
        "cause": mask(find_cause(result.verdict, result.reason)),
        "seconds": round(result.seconds, 3),
        "attempts": result.attempts,
        "steps": [_serialize_step(step, mask) for step in result.steps],
    }


def _serialize_step(step: StepResult, mask: Mask) -> JsonObject:
    fields: JsonObject = {"checks": [_serialize_check(check, mask) for check in step.checks]}
    if step.exchange is not None:
        fields |= {
            "exchange": _serialize_exchange(step.exchange, mask),
            "curl": mask(_build_shell_lines(step.exchange, step.upstream, mask)),
        }
    if step.upstream is not None:
        fields["upstream"] = {
            "script": list(step.upstream.script),
            "received": [_serialize_upstream_request(request, mask) for request in step.upstream.received],
        }
    return fields


def _build_shell_lines(exchange: Exchange, upstream: UpstreamLog | None, mask: Mask) -> str:
    """Build the lines that send the request again, with the same script for the fake provider behind the proxy."""
    line = build_curl_command(exchange.request, mask)
    if upstream is None or not upstream.script:
        return line
    *first, last = upstream.script
    fake = ["dragoman", "fake", upstream.dialect, "--port", upstream.origin.rpartition(":")[2], "--behaviour", last]
    lines = [f"# behind the proxy: {shlex.join(fake)}"]
    if first:
        script = ["curl", "-sS", "-X", "PUT", f"{upstream.origin}/_fake/script", "--data", json.dumps(first)]
        lines.append(shlex.join(script))
    return "\n".join([*lines, line])


def _serialize_upstream_request(request: UpstreamRequest, mask: Mask) -> JsonObject:
    query = f"?{urlencode(request.query)}" if request.query else ""
    return {
        "method": request.method,
        "path": mask(request.path + query),
        "headers": mask.mask_headers(request.headers),
        "body": _cut(mask(json.dumps(request.body, ensure_ascii=False))),
    }


def _serialize_check(check: CheckResult, mask: Mask) -> JsonObject:
    fields: JsonObject = {"name": check.name, "level": check.level, "state": check.state}
    return fields | ({"problems": [mask(problem) for problem in check.problems]} if check.problems else {})


def _serialize_exchange(exchange: Exchange, mask: Mask) -> JsonObject:
    request = exchange.request
    return {
        "request": {
            "method": request.method,
            "url": mask(request.url),
            "headers": mask.mask_headers(request.headers),
            "body": _cut(mask(request.body.decode("utf-8", "replace"))),
        },
        "answer": _serialize_response(exchange.response, mask),
        "seconds": round(exchange.seconds, 4),
    }


def _serialize_response(response: Response, mask: Mask) -> JsonObject:
    return {
        "status": response.status,
        "headers": mask.mask_headers(dict(response.headers)),
        "body": _cut(mask(response.body.decode("utf-8", "replace"))),
        "chunks": [round(chunk.at, 4) for chunk in response.chunks[:200]],
        "broken": response.broken,
    }


def build_curl_command(request: Request, mask: Mask) -> str:
    """Build a command line that sends the request again; secrets are masked."""
    words = ["curl", "-isS", "-N", "-X", request.method, request.url]
    for name, value in mask.mask_headers(request.headers).items():
        words += ["-H", f"{name}: {value}"]
    if request.body:
        words += ["--data-binary", _cut(request.body.decode("utf-8", "replace"))]
    if request.leave:
        words += ["--max-time", "1"]
    return shlex.join(words)


def _cut(text: str, most: int = _MOST_CHARACTERS) -> str:
    return text if len(text) <= most else f"{text[:most]}… (cut, {len(text)} characters)"


def serialize_report(report: JsonObject) -> str:
    return json.dumps(report, indent=1, ensure_ascii=False)


def shorten_report(report: JsonObject) -> JsonObject:
    """Shorten the report: only failed cases keep their steps, with the last request that a proxy sent upstream, a few
    headers, and the beginning of long texts. A cut text says so. The `curl` lines stay complete."""
    kept = ("fail", "error")
    cases = (
        case
        | {
            "reason": _cut(case["reason"], _BRIEF_CHARACTERS),
            "steps": _shorten(case["steps"]) if case["verdict"] in kept else [],
        }
        for case in report["cases"]
    )
    return report | {"cases": list(cases)}


def _shorten(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return _cut(value, _BRIEF_CHARACTERS)
    if isinstance(value, list):
        return [_shorten(item) for item in value]
    if not isinstance(value, dict):
        return value
    short = {key: item if key == "curl" else _shorten(item) for key, item in value.items()}
    if "headers" in short:
        short["headers"] = _shorten_headers(short["headers"])
    if "received" in short:
        short |= {"received": short["received"][-1:], "requests": len(short["received"])}
    return short


def _shorten_headers(headers: JsonObject) -> JsonObject:
    left = len(headers) - _BRIEF_HEADERS
    return headers if left <= 0 else dict(list(headers.items())[:_BRIEF_HEADERS]) | {"…": f"{left} more"}
