"""The page that shows the comparisons."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dragoman.contract.masks import MASKED

from .catalog import SERVERS
from .comparison import POLICIES, Comparison, Outcome, judge
from .questions import QUESTIONS

__all__ = ["Measurement", "count_defects", "read_comparisons", "write_page"]

Measurement = Mapping[str, Any]
"""`version` and `comparisons` of one server, and `sdk`, the SDK's version, as JSON."""

_HEAD = """\
# Real servers

Servers that nobody here wrote, started on this machine with dragoman-mini's weights, so that they answer, call tools
and write JSON as far as a model of a million parameters can. The official SDK asks each of them the same questions:
directly, and through dragoman under each value of the policy `replies`. This page is written by the command;
[Recordings](#recordings) says where the bytes are.

<!-- not run: installs the servers, and takes hours -->
```console
$ uv run python -m tools.real_servers install     # each into an environment of its own, below your cache folder
$ uv run python -m tools.real_servers compare     # starts each on 127.0.0.1, asks, and writes this page
```

pip installs the servers, and its own configuration applies: set `PIP_EXTRA_INDEX_URL` or `PIP_FIND_LINKS` if you want
CPU builds of torch instead of CUDA's. `list` shows what is installed, `run SERVER` starts one and prints its address.

## What a cell means

| cell | meaning |
|---|---|
| right, wrong, refused, broken | directly: the SDK got what it asked for; something else; an error; failed itself |
| same | it works directly, and through dragoman with the same texts, calls, endings and numbers |
| repaired | it does not work directly, and works through dragoman |
| recorded | the answer is as wrong as directly, and the receipt says so |
| refused | dragoman refuses the answer, and names why. Only `strict` may do so with an answer that works directly |
| wrong | directly it is refused, and dragoman gets an answer from the server, but not what was asked for |
| as direct | the same wrong answer, or the same refusal, as directly |
| **BREAKS**, **DIFFERS** | it works directly, and not, or differently, through dragoman: a defect of dragoman |
"""

_LEFT_OUT = """
## Servers that were left out

- SGLang 0.5.23: its package on PyPI requires CUDA 13. The build for CPUs is made from source, for Xeons with AMX.
- LMDeploy 0.18.0: its package requires CUDA, and it has no CPU platform (InternLM/lmdeploy#2982).
- Xinference 4.1.0: it installs. On a CPU it runs transformers and llama.cpp, which are here without it. Not measured.
- Ollama: PyPI has its client, not its server. Its quirks are in [quirks.md](quirks.md).
"""

_RECORDINGS = """
## Recordings

`contract/recordings/` has the bytes of these conversations, a folder for each server: one file for each exchange,
with the request, the head of the reply, and its body in the pieces in which it arrived. Tests feed them to dragoman
in all dialects, whole and cut anywhere. Addresses and paths of the machine are masked. `dragoman fake --replay
contract/recordings/vllm` answers as that server did.

<!-- not run: needs the installed servers -->
```console
$ uv run python -m tools.real_servers record      # makes them again
```
"""

_SHOWN = {"BREAKS": "**BREAKS**", "DIFFERS": "**DIFFERS**"}
_IGNORED = {question.name: question.ignored for question in QUESTIONS}


def write_page(measurements: Mapping[str, Measurement]) -> str:
    """Write the page for the servers that were measured, in the order of the catalog."""
    found = {name: measurements[name] for name in SERVERS if name in measurements}
    return (
        "\n".join([_HEAD, _write_sums(found), *(_write_server(name, one) for name, one in found.items())])
        + _LEFT_OUT
        + _RECORDINGS
    )


def read_comparisons(measurement: Measurement) -> list[Comparison]:
    return [
        Comparison(
            row["question"],
            Outcome(**row["direct"]),
            {policy: Outcome(**row["through"][policy]) for policy in POLICIES},
        )
        for row in measurement["comparisons"]
    ]


def count_defects(measurement: Measurement) -> int:
    """Count the answers that are right directly, and lost or different through dragoman."""
    return sum(verdict.isupper() for row in read_comparisons(measurement) for verdict in _judge_row(row).values())


def _write_sums(found: Mapping[str, Measurement]) -> str:
    lines = [
        "## Sums",
        "",
        f"| server | version | right directly | {' | '.join(f'right, {one}' for one in POLICIES)} | defects |",
    ]
    lines.append("|---|---|" + "---:|" * (len(POLICIES) + 2))
    for name, measurement in found.items():
        rows = read_comparisons(measurement)
        through = [sum(row.through[policy].state == "right" for row in rows) for policy in POLICIES]
        direct = sum(row.direct.state == "right" for row in rows)
        cells = [
            f"[{SERVERS[name].title}](#{_link(name, measurement)})",
            measurement["version"],
            f"{direct} of {len(rows)}",
            *through,
            count_defects(measurement),
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    sdks = ", ".join(sorted({measurement["sdk"] for measurement in found.values()}))
    return "\n".join([*lines, "", f"Measured with version {sdks} of the package `openai`."]) + "\n"


def _write_server(name: str, measurement: Measurement) -> str:
    rows = read_comparisons(measurement)
    head = f"## {_head(name, measurement)}\n"
    lines = [head, f"| | directly | {' | '.join(POLICIES)} |", "|---|---|" + "---|" * len(POLICIES)]
    for row in rows:
        verdicts = [_SHOWN.get(verdict, verdict) for verdict in _judge_row(row).values()]
        lines.append(f"| {row.question} | {row.direct.state} | {' | '.join(verdicts)} |")
    return "\n".join([*lines, "", *_write_reasons(rows), ""])


def _head(name: str, measurement: Measurement) -> str:
    return f"{SERVERS[name].title} {measurement['version']}"


def _link(name: str, measurement: Measurement) -> str:
    """The anchor of a server's heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", _head(name, measurement).lower()).replace(" ", "-")


def _judge_row(row: Comparison) -> dict[str, str]:
    return {policy: judge(row.direct, row.through[policy], policy, _IGNORED[row.question]) for policy in POLICIES}


def _write_reasons(rows: Sequence[Comparison]) -> list[str]:
    """Write what is not right, each reason once: directly, and through dragoman if it says something else."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for reason in dict.fromkeys(_list_reasons(row)):
            found.setdefault(reason, []).append(row.question)
    return [f"- {'; '.join(questions)} · {reason}" for reason, questions in found.items()]


def _list_reasons(row: Comparison) -> Iterator[str]:
    if row.direct.state != "right":
        yield f"{row.direct.state} directly: {_shorten(row.direct.text)}"
    for policy, verdict in _judge_row(row).items():
        outcome = row.through[policy]
        if verdict == "recorded" or (verdict == "repaired" and outcome.losses):
            yield f"{verdict}: {_shorten('; '.join(outcome.losses))}"
        elif verdict not in ("same", "repaired", "as direct"):
            yield f"{_SHOWN.get(verdict, verdict)}: {_shorten(outcome.text)}"


def _shorten(text: str, most: int = 240) -> str:
    text = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace(MASKED, "…")
    return text if len(text) <= most else f"{text[:most]}…"
