"""The page that shows the comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from .catalog import SERVERS
from .comparison import POLICIES, Comparison, Outcome, judge
from .questions import QUESTIONS

__all__ = ["Measurement", "read_comparisons", "write_page"]

Measurement = Mapping[str, Any]
"""`version` and `comparisons` of one server, as JSON."""

_HEAD = """\
# Real servers

Servers that nobody here wrote, started on this machine with dragoman-mini's weights, so that they answer, call tools
and write JSON as far as a model of a million parameters can. The official SDK asks each of them the same questions:
directly, and through dragoman under each value of the policy `replies`. This page is written by the command;
[Recordings](#recordings) says where the bytes are.

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

_RECORDINGS = """
## Recordings

`contract/recordings/SERVER/` has the bytes of these conversations: one file for each exchange, with the request, the
head of the reply, and its body in the pieces in which it arrived. Tests feed them to dragoman in all dialects, whole
and cut anywhere. Addresses and paths of the machine are masked. `dragoman fake --replay contract/recordings/vllm`
answers as that server did.

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
        "\n".join([_HEAD, _write_sums(found), *(_write_server(name, one) for name, one in found.items())]) + _RECORDINGS
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
        defects = sum(verdict.isupper() for row in rows for verdict in _judge_row(row).values())
        direct = sum(row.direct.state == "right" for row in rows)
        cells = [
            f"[{SERVERS[name].title}](#{name})",
            measurement["version"],
            f"{direct} of {len(rows)}",
            *through,
            defects,
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def _write_server(name: str, measurement: Measurement) -> str:
    server, rows = SERVERS[name], read_comparisons(measurement)
    head = f'<a id="{name}"></a>\n\n## {server.title} {measurement["version"]}\n'
    lines = [head, f"| | directly | {' | '.join(POLICIES)} |", "|---|---|" + "---|" * len(POLICIES)]
    for row in rows:
        verdicts = [_SHOWN.get(verdict, verdict) for verdict in _judge_row(row).values()]
        lines.append(f"| {row.question} | {row.direct.state} | {' | '.join(verdicts)} |")
    return "\n".join([*lines, "", *_write_reasons(rows), ""])


def _judge_row(row: Comparison) -> dict[str, str]:
    return {policy: judge(row.direct, row.through[policy], policy, _IGNORED[row.question]) for policy in POLICIES}


def _write_reasons(rows: Sequence[Comparison]) -> list[str]:
    """Write what is not right, with its reason: directly, and through dragoman where it says something else."""
    lines = []
    for row in rows:
        if row.direct.state != "right":
            lines.append(f"- {row.question}, directly: {_shorten(row.direct.text)}")
        said: Counter[str] = Counter()
        for policy, verdict in _judge_row(row).items():
            outcome = row.through[policy]
            reason = "; ".join(outcome.losses) if verdict == "recorded" else outcome.text
            if verdict not in ("same", "repaired", "as direct") or (verdict == "repaired" and outcome.losses):
                said[f"{_SHOWN.get(verdict, verdict)}: {_shorten(reason)}"] += 1
        lines += [f"- {row.question}, {reason}" for reason in said]
    return lines


def _shorten(text: str, most: int = 240) -> str:
    text = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return text if len(text) <= most else f"{text[:most]}…"
