"""Defects that were known before the measurement, and the cases that find them again.

They were found by hand in LiteLLM 1.109 and llm-rosetta 0.13, or reported by users in the named issues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from _matrix_page import MARKS, escape_cell

__all__ = ["DEFECTS", "write_defects"]

Json = dict[str, Any]


@dataclass(frozen=True)
class Defect:
    """A known defect of a gateway. `cases` are the (target, case) pairs that test it; `note` explains the result, or
    why no case tests it."""

    gateway: str
    description: str
    cases: Sequence[tuple[str, str]] = ()
    note: str = ""


_DROP = "LiteLLM, drop_params"
DEFECTS = (
    Defect(
        "LiteLLM",
        "The path (`loc`) of Azure's 422 appears only as text in the message; `param` is null",
        [("LiteLLM > azure", "chat/proxy-errors/azure-param/azure-422-a")],
    ),
    Defect(
        "LiteLLM",
        "An unknown field that Azure refuses is dropped silently and the request is sent again, although the client "
        "sent `extra-parameters: error`",
        [("LiteLLM > azure", "chat/proxy-sent/extra-refused")],
    ),
    Defect(
        "LiteLLM",
        "A string as `temperature` is sent to the provider",
        [("LiteLLM > openai", "chat/proxy-sent/nothing-for-nonsense/temperature")],
    ),
    Defect(
        "LiteLLM",
        "A string as `messages` gets the text of a Python exception",
        [("LiteLLM > openai", "chat/refuse/message-text")],
    ),
    Defect(
        "LiteLLM",
        "A failed generation of MindIE (`stop_sequence`, `err_msg`) becomes an empty success",
        [
            ("LiteLLM > mindie", "chat/proxy-replies/failed-generation"),
            ("LiteLLM > mindie", "responses/proxy-replies/failed-generation"),
        ],
    ),
    Defect(
        "LiteLLM",
        "The message of MindIE's 422 is lost",
        [
            ("LiteLLM > mindie", "chat/proxy-errors/mindie-mindie-422"),
            (f"{_DROP} > mindie", "chat/proxy-errors/mindie-mindie-422"),
        ],
    ),
    Defect(
        "LiteLLM",
        "A stream that breaks off ends with an error event, then `[DONE]`",
        [("LiteLLM > openai", "chat/proxy-streams/broken/ended-early")],
        "OpenAI's SDKs raise at the error event; a client that skips it, as Azure's SDK does, sees a complete stream",
    ),
    Defect(
        "LiteLLM",
        "Databricks gets `store` and refuses it, even with `drop_params`",
        [
            ("LiteLLM > databricks", "responses/proxy-sent/store-false"),
            (f"{_DROP} > databricks", "responses/proxy-sent/store-false"),
        ],
        "Not found again: the test by hand used Databricks' own Responses; here LiteLLM calls it with chat, without "
        "`store`. The case fails because LiteLLM itself refuses `prompt_cache_key`, and because of the reply's usage",
    ),
    Defect(
        "LiteLLM",
        "Databricks gets `service_tier` and refuses it",
        [("LiteLLM > databricks", "chat/text/advice"), (f"{_DROP} > databricks", "chat/text/advice")],
        "Without `drop_params`, LiteLLM refuses other fields first",
    ),
    Defect("LiteLLM", "`input: 42` gets 500", [("LiteLLM > openai", "responses/refuse/input-number")]),
    Defect(
        "LiteLLM",
        "An unknown `previous_response_id` is accepted",
        [("LiteLLM > openai", "responses/state/unknown-previous")],
    ),
    Defect(
        "LiteLLM",
        "Most events of its Responses streams violate OpenAI's types: text, calls and reasoning",
        [
            ("LiteLLM > openai", "responses/proxy-streams/text"),
            ("LiteLLM > openai", "responses/proxy-streams/call"),
            ("LiteLLM > openai", "responses/proxy-streams/reasoning"),
        ],
    ),
    Defect(
        "LiteLLM",
        "Good: `eos_token` becomes `stop`; Databricks' reasoning blocks are separate from the text",
        [
            ("LiteLLM > mindie", "chat/proxy-replies/eos-token"),
            ("LiteLLM > databricks", "chat/proxy-replies/reasoning"),
        ],
    ),
    Defect(
        "llm-rosetta",
        "An unknown field is dropped silently",
        [("llm-rosetta > openai", "chat/proxy-sent/extra-passed")],
    ),
    Defect(
        "llm-rosetta",
        "A string as `temperature` is refused, but `param` is missing",
        [
            ("llm-rosetta > openai", "chat/refuse/temperature-text"),
            ("llm-rosetta > openai", "chat/refuse/error-four-keys"),
        ],
    ),
    Defect(
        "llm-rosetta",
        "A stream of calls that the provider ends with `stop` also ends with `stop` for the client",
        [("llm-rosetta > openai", "chat/proxy-streams/calls/stop")],
    ),
    Defect(
        "llm-rosetta",
        "`input: 42` gets 500, after the provider was called",
        [
            ("llm-rosetta > openai", "responses/refuse/input-number"),
            ("llm-rosetta > openai", "responses/proxy-sent/nothing-for-nonsense"),
        ],
        "The provider is still called, without messages. This provider refuses that; its 400 names `messages`, which "
        "the client did not send",
    ),
    Defect(
        "llm-rosetta",
        "An unknown `previous_response_id` is accepted",
        [("llm-rosetta > openai", "responses/state/unknown-previous")],
    ),
    Defect(
        "llm-rosetta",
        "A stream with reasoning has an event with a name that OpenAI does not have",
        [("llm-rosetta > openai", "responses/proxy-streams/reasoning")],
    ),
    Defect(
        "llm-rosetta",
        "The client gets Azure's 422 in Azure's form",
        note="Not tested: llm-rosetta has no provider for Azure AI inference",
    ),
    Defect(
        "llm-rosetta", "Good: `eos_token` becomes `stop`", [("llm-rosetta > mindie", "chat/proxy-replies/eos-token")]
    ),
    Defect(
        "LiteLLM",
        "Good: it cancels the provider's call if the client leaves a stream",
        [
            ("LiteLLM > openai", "chat/proxy-sent/leaving/stream"),
            ("LiteLLM > openai", "responses/proxy-sent/leaving/stream"),
        ],
    ),
    Defect(
        "llm-rosetta",
        "Good: it cancels the provider's call if the client leaves a Responses stream",
        [("llm-rosetta > openai", "responses/proxy-sent/leaving/stream")],
    ),
    Defect(
        "LiteLLM",
        "It does not cancel the call if a client leaves before a whole reply, or before a stream begins "
        "(BerriAI/litellm#37140, #31499)",
        [
            ("LiteLLM > openai", "chat/proxy-sent/leaving/whole"),
            ("LiteLLM > openai", "chat/proxy-sent/leaving/before-stream"),
        ],
    ),
    Defect(
        "LiteLLM",
        "A reasoning effort with a summary is sent to Databricks as an object, and refused (BerriAI/litellm#42347)",
        [("LiteLLM > databricks", "responses/proxy-sent/effort-kept")],
    ),
    Defect(
        "LiteLLM",
        "Reasoning in the conversation is sent to Databricks as `thinking_blocks`, and refused (BerriAI/litellm#36931)",
        [("LiteLLM > databricks", "chat/proxy-sent/reasoning-sent-back")],
    ),
    Defect(
        "LiteLLM",
        "It counts tokens itself if a stream's usage comes in a chunk with a choice (ARahim3/mlx-dspark#37)",
        [("LiteLLM > openai", "chat/proxy-streams/usage-kept")],
    ),
    Defect(
        "LiteLLM",
        "Load balancers cut silent streams, because comments are off by default (BerriAI/litellm#34423)",
        note="Not tested, because the provider timeout is 15 seconds here: `responses/proxy-streams/silence`",
    ),
    Defect(
        "LiteLLM",
        "Its memory grows until it is killed (BerriAI/litellm#12685, #27954, #38193)",
        note="No case: a client cannot see a server's memory",
    ),
    Defect(
        "LiteLLM",
        "Under load, its latency grows and its throughput collapses (BerriAI/litellm#13546, #21046, #9491)",
        note="No case: the suite does not measure speed",
    ),
    Defect(
        "LiteLLM",
        "A change of its configuration file needs a restart (BerriAI/litellm#20409, #30772)",
        note="No case: the suite cannot change the gateway's files",
    ),
)


def write_defects(reports: Sequence[Json]) -> str:
    """Write a table with a row for each defect, and what its cases found in these reports."""
    known = {(report["target"]["name"], case["id"]): case for report in reports for case in report["cases"]}
    lines = ["| gateway | known before | the suite says |", "|---|---|---|"]
    lines += [f"| {defect.gateway} | {defect.description} | {_describe_results(defect, known)} |" for defect in DEFECTS]
    return "\n".join(lines) + "\n"


def _describe_results(defect: Defect, known: Mapping[tuple[str, str], Json]) -> str:
    """Describe the results of a defect's cases. Raises KeyError if the reports lack one of them."""
    parts = []
    for target, id_ in defect.cases:
        case = known[target, id_]
        reason = f": {escape_cell(case['reason'], 160)}" if case["reason"] else ""
        parts.append(f"{MARKS[case['verdict']]} {target}: `{id_}`{reason}")
    return "<br>".join([*parts, defect.note] if defect.note else parts)
