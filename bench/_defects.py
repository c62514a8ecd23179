"""What was known before: what probing LiteLLM 1.109 and llm-rosetta 0.13 by hand had found, and what users had told of
them in the issues that are named. And where the suite finds it again.

`contract_matrix.py` fills in what the cases say now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from _matrix_page import cell

__all__ = ["DEFECTS", "defects"]

Json = dict[str, Any]
_MARKS = {"pass": "✅", "warn": "⚠️", "fail": "❌", "inconclusive": "❔", "skip": "–", "error": "💥"}


@dataclass(frozen=True)
class Defect:
    """`found` is what was known of that gateway; `where` are targets and cases that look at it. `why` says why no case
    does, or what else is to be known."""

    gateway: str
    found: str
    where: Sequence[tuple[str, str]] = ()
    why: str = ""


_DROP = "LiteLLM, drop_params"
DEFECTS = (
    Defect(
        "LiteLLM",
        "The place (`loc`) of Azure's 422 ends as text inside the message; `param` is null",
        [("LiteLLM > azure", "chat/proxy-errors/azure-param/azure-422-a")],
    ),
    Defect(
        "LiteLLM",
        "An unknown field that Azure refuses is taken out in silence and the request sent again, although the client "
        "said `extra-parameters: error`",
        [("LiteLLM > azure", "chat/proxy-sent/extra-refused")],
    ),
    Defect(
        "LiteLLM",
        "A text as temperature goes to the provider",
        [("LiteLLM > openai", "chat/proxy-sent/nothing-for-nonsense/temperature")],
    ),
    Defect(
        "LiteLLM",
        "A text as messages is answered with an error of Python's",
        [("LiteLLM > openai", "chat/refuse/message-text")],
    ),
    Defect(
        "LiteLLM",
        "A generation that failed, as MindIE says it (`stop_sequence`, `err_msg`), is an empty success",
        [
            ("LiteLLM > mindie", "chat/proxy-replies/failed-generation"),
            ("LiteLLM > mindie", "responses/proxy-replies/failed-generation"),
        ],
    ),
    Defect(
        "LiteLLM",
        "The sentence of MindIE's 422 is lost",
        [
            ("LiteLLM > mindie", "chat/proxy-errors/mindie-mindie-422"),
            (f"{_DROP} > mindie", "chat/proxy-errors/mindie-mindie-422"),
        ],
    ),
    Defect(
        "LiteLLM",
        "A stream that breaks off gets an error event, and `[DONE]` after it",
        [("LiteLLM > openai", "chat/proxy-streams/broken/ended-early")],
        "Probing had called the error event good; that `[DONE]` follows makes clients take the stream for whole",
    ),
    Defect(
        "LiteLLM",
        "Databricks gets `store` and refuses, with `drop_params` too",
        [
            ("LiteLLM > databricks", "responses/proxy-sent/store-false"),
            (f"{_DROP} > databricks", "responses/proxy-sent/store-false"),
        ],
        "Not found again: probing asked for Databricks' own Responses, here LiteLLM asks it for chat, and `store` "
        "stays behind. What fails is that LiteLLM itself refuses `prompt_cache_key`, and its reply's usage",
    ),
    Defect(
        "LiteLLM",
        "Databricks gets `service_tier` and refuses",
        [("LiteLLM > databricks", "chat/text/advice"), (f"{_DROP} > databricks", "chat/text/advice")],
        "Without `drop_params` LiteLLM refuses other fields before",
    ),
    Defect("LiteLLM", "`input: 42` is a 500", [("LiteLLM > openai", "responses/refuse/input-number")]),
    Defect(
        "LiteLLM",
        "A `previous_response_id` that nobody gave is taken",
        [("LiteLLM > openai", "responses/state/unknown-previous")],
    ),
    Defect(
        "LiteLLM",
        "Most events of its Responses break OpenAI's types, for text, calls and reasoning alike",
        [
            ("LiteLLM > openai", "responses/proxy-streams/text"),
            ("LiteLLM > openai", "responses/proxy-streams/call"),
            ("LiteLLM > openai", "responses/proxy-streams/reasoning"),
        ],
    ),
    Defect(
        "LiteLLM",
        "Good: `eos_token` reads `stop`; reasoning blocks of Databricks stand beside the text",
        [
            ("LiteLLM > mindie", "chat/proxy-replies/eos-token"),
            ("LiteLLM > databricks", "chat/proxy-replies/reasoning"),
        ],
    ),
    Defect(
        "llm-rosetta",
        "An unknown field is taken out in silence",
        [("llm-rosetta > openai", "chat/proxy-sent/extra-passed")],
    ),
    Defect(
        "llm-rosetta",
        "A text as temperature is refused, and `param` is missing",
        [
            ("llm-rosetta > openai", "chat/refuse/temperature-text"),
            ("llm-rosetta > openai", "chat/refuse/error-four-keys"),
        ],
    ),
    Defect(
        "llm-rosetta",
        "A stream of calls that the provider ended with `stop` ends with `stop`",
        [("llm-rosetta > openai", "chat/proxy-streams/calls/stop")],
    ),
    Defect(
        "llm-rosetta",
        "`input: 42` is a 500, after the provider was asked",
        [
            ("llm-rosetta > openai", "responses/refuse/input-number"),
            ("llm-rosetta > openai", "responses/proxy-sent/nothing-for-nonsense"),
        ],
        "The provider is asked as before, with no messages. This one refuses that, and its 400 blames `messages`, "
        "which the client did not write",
    ),
    Defect(
        "llm-rosetta",
        "A `previous_response_id` that nobody gave is taken",
        [("llm-rosetta > openai", "responses/state/unknown-previous")],
    ),
    Defect(
        "llm-rosetta",
        "A stream of reasoning has an event of a name that OpenAI does not have",
        [("llm-rosetta > openai", "responses/proxy-streams/reasoning")],
    ),
    Defect(
        "llm-rosetta",
        "Azure's 422 reaches the client as Azure wrote it",
        why="Not asked: llm-rosetta has no provider for Azure AI inference",
    ),
    Defect("llm-rosetta", "Good: `eos_token` reads `stop`", [("llm-rosetta > mindie", "chat/proxy-replies/eos-token")]),
    Defect(
        "LiteLLM",
        "Good: it stops asking the provider when the client of a stream leaves",
        [
            ("LiteLLM > openai", "chat/proxy-sent/leaving/stream"),
            ("LiteLLM > openai", "responses/proxy-sent/leaving/stream"),
        ],
    ),
    Defect(
        "llm-rosetta",
        "Good: it stops asking the provider when the client of a Responses stream leaves",
        [("llm-rosetta > openai", "responses/proxy-sent/leaving/stream")],
    ),
    Defect(
        "LiteLLM",
        "It asks on when a client leaves that waits for a whole reply, or for a stream to begin "
        "(BerriAI/litellm#37140, #31499)",
        [
            ("LiteLLM > openai", "chat/proxy-sent/leaving/whole"),
            ("LiteLLM > openai", "chat/proxy-sent/leaving/before-stream"),
        ],
    ),
    Defect(
        "LiteLLM",
        "A wish for reasoning with a summary reaches Databricks as an object, and is refused (BerriAI/litellm#42347)",
        [("LiteLLM > databricks", "responses/proxy-sent/effort-kept")],
    ),
    Defect(
        "LiteLLM",
        "Reasoning that is sent back reaches Databricks as `thinking_blocks`, and is refused (BerriAI/litellm#36931)",
        [("LiteLLM > databricks", "chat/proxy-sent/reasoning-sent-back")],
    ),
    Defect(
        "LiteLLM",
        "It counts tokens itself where a stream's usage stands beside a choice (ARahim3/mlx-dspark#37)",
        [("LiteLLM > openai", "chat/proxy-streams/usage-kept")],
    ),
    Defect(
        "LiteLLM",
        "Load balancers cut streams that are silent: comments are off by default (BerriAI/litellm#34423)",
        why="Not asked here, where a provider may be silent for 15 seconds at most: `responses/proxy-streams/silence`",
    ),
    Defect(
        "LiteLLM",
        "Its memory grows until it is killed (BerriAI/litellm#12685, #27954, #38193)",
        why="No case: a client cannot see a server's memory",
    ),
    Defect(
        "LiteLLM",
        "Under load its latency soars and its rate collapses (BerriAI/litellm#13546, #21046, #9491)",
        why="No case: the suite judges what is said, not how fast",
    ),
    Defect(
        "LiteLLM",
        "A change of its configuration file wants a restart (BerriAI/litellm#20409, #30772)",
        why="No case: the suite has an address, and no hold on the gateway's files",
    ),
)


def defects(reports: Sequence[Json]) -> str:
    """A row for each defect, with what its cases found in these reports."""
    known = {(report["target"]["name"], case["id"]): case for report in reports for case in report["cases"]}
    lines = ["| gateway | known before | the suite says |", "|---|---|---|"]
    lines += [f"| {defect.gateway} | {defect.found} | {_told(defect, known)} |" for defect in DEFECTS]
    return "\n".join(lines) + "\n"


def _told(defect: Defect, known: Mapping[tuple[str, str], Json]) -> str:
    """Raises KeyError where the reports have no such case."""
    parts = []
    for target, id_ in defect.where:
        case = known[target, id_]
        reason = f": {cell(case['reason'], 160)}" if case["reason"] else ""
        parts.append(f"{_MARKS[case['verdict']]} {target}: `{id_}`{reason}")
    return "<br>".join([*parts, defect.why] if defect.why else parts)
