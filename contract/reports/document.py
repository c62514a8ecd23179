"""The JSON report: what was tested, and what became of each case, with its wire log. Its schema: `report.json`."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jsonschema import Draft202012Validator

from dragoman.contract.masks import Mask
from dragoman.contract.model import Json
from dragoman.contract.outcome import Received
from dragoman.contract.target import Target
from dragoman.contract.verdicts import VERDICTS, CheckResult, Result, StepResult
from dragoman.contract.wire import Answer, Asked, Exchange

__all__ = ["NotAReport", "curl_of", "document", "dumped", "read_report", "shortened"]

VERSION = 1
_LONGEST = 20_000
_BRIEF, _HEADERS = 300, 4


class NotAReport(ValueError):
    """The file is no report of this suite."""


def document(target: Target, results: Sequence[Result], mask: Mask, *, name: str, suite: str, started: str) -> Json:
    """The report as JSON. `name` is what the target is called in matrices, `suite` the version that ran, `started` a
    time in ISO 8601."""
    counts = Counter(result.verdict for result in results)
    return {
        "report": VERSION,
        "suite": suite,
        "started": started,
        "seconds": round(sum(result.seconds for result in results), 3),
        "target": {
            "name": name,
            "base_url": mask(target.base_url),
            "dialect": target.dialect,
            "profile": target.judged_by,
            "model": target.model,
            "upstream": target.upstream,
        },
        "counts": {verdict: counts[verdict] for verdict in VERDICTS},
        "tokens": sum(result.tokens for result in results),
        "cases": [_case(result, mask) for result in results],
    }


def read_report(file: Path) -> Json:
    """Raises NotAReport."""
    try:
        report = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise NotAReport(f"{file}: {error}") from None
    problem = next(_shape().iter_errors(report), None)
    if problem is not None:
        place = "/".join(str(part) for part in problem.absolute_path)
        raise NotAReport(f"{file} is no report of this suite: {place}: {problem.message[:200]}")
    found: Json = report
    return found


@cache
def _shape() -> Draft202012Validator:
    return Draft202012Validator(
        json.loads(files("dragoman.contract").joinpath("schemas", "report.json").read_text("utf-8"))
    )


def _case(result: Result, mask: Mask) -> Json:
    case = result.case
    return {
        "id": case.id,
        "title": case.title,
        "source": case.source,
        "level": case.level,
        "protocol": case.protocol,
        "verdict": result.verdict,
        "reason": mask(result.reason),
        "seconds": round(result.seconds, 3),
        "attempts": result.attempts,
        "steps": [_step(step, mask) for step in result.steps],
    }


def _step(step: StepResult, mask: Mask) -> Json:
    told: Json = {"checks": [_check(check, mask) for check in step.checks]}
    if step.exchange is not None:
        told |= {"exchange": _exchange(step.exchange, mask), "curl": mask(_lines(step, mask))}
    if step.upstream is not None:
        told["upstream"] = {
            "script": list(step.upstream.script),
            "received": [_received(request, mask) for request in step.upstream.received],
        }
    return told


def _lines(step: StepResult, mask: Mask) -> str:
    """What sends the step's request again, with the fake behind the proxy told to behave as it did."""
    assert step.exchange is not None
    line, behind = curl_of(step.exchange.asked, mask), step.upstream
    if behind is None or not behind.script:
        return line
    *first, last = behind.script
    fake = ["dragoman", "fake", behind.dialect, "--port", behind.origin.rpartition(":")[2], "--behaviour", last]
    lines = [f"# behind the proxy: {shlex.join(fake)}"]
    if first:
        script = ["curl", "-sS", "-X", "PUT", f"{behind.origin}/_fake/script", "--data", json.dumps(first)]
        lines.append(shlex.join(script))
    return "\n".join([*lines, line])


def _received(request: Received, mask: Mask) -> Json:
    query = f"?{urlencode(request.query)}" if request.query else ""
    return {
        "method": request.method,
        "path": mask(request.path + query),
        "headers": mask.headers(request.headers),
        "body": _cut(mask(json.dumps(request.body, ensure_ascii=False))),
    }


def _check(check: CheckResult, mask: Mask) -> Json:
    told: Json = {"name": check.name, "level": check.level, "state": check.state}
    return told | ({"problems": [mask(problem) for problem in check.problems]} if check.problems else {})


def _exchange(exchange: Exchange, mask: Mask) -> Json:
    asked, answer = exchange.asked, exchange.answer
    return {
        "request": {
            "method": asked.method,
            "url": mask(asked.url),
            "headers": mask.headers(asked.headers),
            "body": _cut(mask(asked.body.decode("utf-8", "replace"))),
        },
        "answer": _answer(answer, mask),
        "seconds": round(exchange.seconds, 4),
    }


def _answer(answer: Answer, mask: Mask) -> Json:
    return {
        "status": answer.status,
        "headers": mask.headers(dict(answer.headers)),
        "body": _cut(mask(answer.body.decode("utf-8", "replace"))),
        "chunks": [round(chunk.at, 4) for chunk in answer.chunks[:200]],
        "broken": answer.broken,
    }


def curl_of(asked: Asked, mask: Mask) -> str:
    """A command line that sends the request again, secrets left out."""
    words = ["curl", "-isS", "-N", "-X", asked.method, asked.url]
    for name, value in mask.headers(asked.headers).items():
        words += ["-H", f"{name}: {value}"]
    if asked.body:
        words += ["--data-binary", _cut(asked.body.decode("utf-8", "replace"))]
    if asked.leave:
        words += ["--max-time", "1"]
    return shlex.join(words)


def _cut(text: str, most: int = _LONGEST) -> str:
    return text if len(text) <= most else f"{text[:most]}… (cut, {len(text)} characters)"


def dumped(report: Json) -> str:
    return json.dumps(report, indent=1, ensure_ascii=False)


def shortened(report: Json) -> Json:
    """The report with the requests and replies of cases that failed or got no reply, and of no other. Of these the
    last request of a proxy's is kept, a few headers of each, and the beginning of what is long; what is cut says so.
    The line that asks again stays whole."""
    kept = ("fail", "error")
    cases = (
        case
        | {"reason": _cut(case["reason"], _BRIEF), "steps": _brief(case["steps"]) if case["verdict"] in kept else []}
        for case in report["cases"]
    )
    return report | {"cases": list(cases)}


def _brief(value: Any) -> Any:
    if isinstance(value, str):
        return _cut(value, _BRIEF)
    if isinstance(value, list):
        return [_brief(item) for item in value]
    if not isinstance(value, dict):
        return value
    told = {key: item if key == "curl" else _brief(item) for key, item in value.items()}
    if "headers" in told:
        told["headers"] = _few(told["headers"])
    if "received" in told:
        told |= {"received": told["received"][-1:], "requests": len(told["received"])}
    return told


def _few(headers: Json) -> Json:
    left = len(headers) - _HEADERS
    return headers if left <= 0 else dict(list(headers.items())[:_HEADERS]) | {"…": f"{left} more"}
