"""How many inputs an endpoint embeds in one call. It is asked at the bound of the schema; its error names its own."""

from __future__ import annotations

import re

from dragoman.schemas import load

from .asking import Asker
from .findings import Findings
from .probe_answer import Answer
from .probes import ProtocolProbe

__all__ = ["find_batch_maximum", "learn_batch_limit"]

_NUMBER = re.compile(r"(?<![\w.])\d{1,5}(?![\w.]*\w)")


def find_batch_maximum(dialect: str, profile: str) -> int:
    """The most inputs of one call that the dialect documents, 0 if it documents none."""
    rule = load(f"{dialect}/embeddings.request", profile)["properties"]["input"]
    return int(rule.get("x-batch") or rule.get("maxItems") or 0)


async def learn_batch_limit(asker: Asker, findings: Findings, probe: ProtocolProbe) -> None:
    """Learn `limits.inputs`, if it is below the bound of the schema. A number in the error counts only if that many
    inputs are accepted and one more is not. Raises KeyRefusedError, EndpointLostError."""
    bound = find_batch_maximum(findings.dialect, asker.target.schema_profile)
    if not bound:
        findings.give_up("limits.inputs", "the dialect documents no bound to ask at")
        return
    most = await _ask(asker, probe, bound)
    if most.is_accepted:
        findings.learn("inputs_accepted", bound, most.describe(f"{bound} inputs are accepted"))
        return
    if not most.is_rejected:
        findings.give_up("limits.inputs", most.why)
        return
    for number in sorted({int(text) for text in _NUMBER.findall(most.message)}, reverse=True):
        if 0 < number < bound and (await _ask(asker, probe, number)).is_accepted:
            beyond = most if number + 1 == bound else await _ask(asker, probe, number + 1)
            if beyond.is_rejected:
                findings.learn("limits.inputs", number, most.describe())
                return
    findings.give_up("limits.inputs", f"{bound} inputs are refused, and the error names no number that is right")


async def _ask(asker: Asker, probe: ProtocolProbe, count: int) -> Answer:
    answer = await asker.ask(probe, {"input": ["a"] * count})
    return Answer(answer.state, answer.why, answer.outcome, answer.request, {"input": f"{count} inputs"})
