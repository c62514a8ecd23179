"""docs/clients.md: the text of head.md, the recipes out of the scripts, and the outcomes of the latest runs."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from .catalog import CHECKS, OWNERS, Client, Reason
from .judgement import Failure, group_by_cause, list_failures, shorten_reason, write_count
from .outcomes import Outcome
from .routes import DRAGOMAN, FACES, GATEWAYS, ROUTES

__all__ = ["read_recipe", "write_page"]

_FOLDER = Path(__file__).parent
_HEAD = _FOLDER / "head.md"
_INSTALLED = frozenset(
    re.findall(r"^([\w-]+)==", (_FOLDER.parents[1] / "constraints.txt").read_text("utf-8"), re.MULTILINE)
)
"""The packages of the development environment."""

_RECIPE = re.compile(r"^ *(?:#|//) recipe\n(.*?)^ *(?:#|//) end of recipe$", re.MULTILINE | re.DOTALL)
_FENCES = {"python": "python", "node": "js"}
_ORIGIN = "http://127.0.0.1:8080"

_MEASURED = """\
## Compatibility

Each package is installed as it comes, in an environment of its own, and runs a script of what its users write over
each route: the gateway with its default configuration, in front of the [fake provider](fakes.md) of a dialect that
checks requests as the real one documents it. `Responses only` is an OpenAI provider with `protocols: [responses,
embeddings]`. dragoman is installed with the extra `tokens`. A number says how many checks pass; `11 of 12` that one
does not. The column for LiteLLM is its proxy in front of the same fakes, in the same run.

<!-- not run: installs every client -->
```console
$ uv run python -m tools.clients run --all     # installs, runs and writes this page; a release step, not part of CI
```
"""


def write_page(clients: Mapping[str, Client], reasons: Sequence[Reason], outcomes: Mapping[str, Outcome]) -> str:
    """Write the page for all clients, in the order of the catalog."""
    measured = {name: outcome for name, outcome in outcomes.items() if name in clients and outcome.verdicts}
    failures = [one for name, outcome in measured.items() for one in list_failures(reasons, name, outcome)]
    return "\n".join(
        [
            _HEAD.read_text("utf-8").replace("{recipes}", _write_recipes(clients)),
            _MEASURED,
            _write_table(clients, measured),
            *_write_missing(clients, outcomes),
            *_write_notes(clients, measured),
            *(_write_failures(gateway, failures, clients) for gateway in GATEWAYS),
        ]
    )


def read_recipe(client: Client) -> str:
    """Read the lines between the marks of a client's script, as a user writes them."""
    parts = [textwrap.dedent(part) for part in _RECIPE.findall(client.script.read_text("utf-8"))]
    values = {"BASE_URL": _ORIGIN + FACES[client.face], "ORIGIN": _ORIGIN, "API_KEY": "any", "MODEL": "fast"}
    text = re.sub(r"\buser\((\".*?\")\)", r'[{"role": "user", "content": \1}]', "".join(parts))
    text = re.sub(r"\b(?:BASE_URL|ORIGIN|API_KEY|MODEL)\b", lambda found: f'"{values[found[0]]}"', text)
    return "\n".join(filter(None, text.replace('" + "', "").splitlines())) + "\n" if parts else ""


def _write_recipes(clients: Mapping[str, Client]) -> str:
    recipes = [client for client in clients.values() if client.recipe]
    return "\n".join(
        f"### {client.title}\n\n{_write_remark(client, client is recipes[0])}"
        f"```{client.fence or _FENCES[client.language]}\n{read_recipe(client)}```\n"
        for client in recipes
    )


def _write_remark(client: Client, is_first: bool) -> str:
    """Write what tests/docs has to know of a recipe: what runs before the first one, or why nothing runs this one."""
    if client.fence == "sh" or (client.language == "python" and client.packages[0] in _INSTALLED):
        return "<!-- running: a proxy with the model fast -->\n" if is_first else ""
    script = client.script.relative_to(_FOLDER.parents[1])
    return f"<!-- not run: part of {script}, which runs in an environment of its own -->\n"


def _write_table(clients: Mapping[str, Client], measured: Mapping[str, Outcome]) -> str:
    heads = [route.title for route in ROUTES.values()]
    columns = [*heads, *(GATEWAYS[name] for name in GATEWAYS if name != "dragoman")]
    lines = [f"| client | version | {' | '.join(columns)} |", "|---|---|" + "---:|" * len(columns)]
    for name, outcome in measured.items():
        own = outcome.verdicts.get("dragoman", {})
        cells = [write_count(own.get(route, [])) for route in ROUTES]
        cells += [
            write_count([verdict for _, verdict in outcome.list_verdicts(gateway)])
            for gateway in GATEWAYS
            if gateway != "dragoman"
        ]
        lines.append(f"| {clients[name].title} (`{name}`) | {outcome.version} | {' | '.join(cells)} |")
    said = " and ".join(_find_versions(measured))
    return "\n".join([*lines, "", f"The last two columns count all routes together. Measured with {said}.", ""])


def _find_versions(measured: Mapping[str, Outcome]) -> list[str]:
    """Find the versions of dragoman and LiteLLM that were measured, as in `LiteLLM 1.2`."""
    found = {
        f"{'dragoman' if name in DRAGOMAN else GATEWAYS[name]} {version}"
        for outcome in measured.values()
        for name, version in outcome.gateways.items()
    }
    return sorted(found, reverse=True)


def _write_missing(clients: Mapping[str, Client], outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    """Write a line for each client that was not run, with the reason."""
    missing = [name for name in clients if name not in outcomes or not outcomes[name].verdicts]
    for name in missing:
        failure = shorten_reason(outcomes[name].failure) if name in outcomes else ""
        yield f"- {clients[name].title} was not run: {clients[name].note or _escape(failure) or 'not installed'}"
    if missing:
        yield ""


def _write_notes(clients: Mapping[str, Client], measured: Mapping[str, Outcome]) -> Iterator[str]:
    """Write what is special about clients that were run."""
    noted = [name for name in measured if clients[name].note]
    yield from (f"- `{name}`: {clients[name].note}." for name in noted)
    if noted:
        yield ""


def _write_failures(gateway: str, failures: Sequence[Failure], clients: Mapping[str, Client]) -> str:
    own = [failure for failure in failures if failure.gateway == gateway]
    lines = [f"### What does not pass: {GATEWAYS[gateway]}", ""]
    for cause, found in group_by_cause(own).items():
        lines.append(f"- {_write_cause(cause, found)}: {_write_places(found, clients)}.")
    return "\n".join([*lines, *(() if own else ("Everything passes.",)), ""])


def _write_cause(cause: Reason | str, found: Sequence[Failure]) -> str:
    if isinstance(cause, Reason):
        return f"{cause.because} ({OWNERS[cause.owner]})"
    reason = _escape(cause)
    return f"**unexplained**: {reason}" if found[0].gateway in DRAGOMAN else reason


def _write_places(found: Sequence[Failure], clients: Mapping[str, Client]) -> str:
    """Write checks with their routes and clients, as in `stream over Azure AI, MindIE (llm, aider)`."""
    routes: dict[tuple[str, str], list[str]] = {}
    for failure in found:
        routes.setdefault((failure.client, failure.verdict.check), []).append(failure.route)
    places: dict[tuple[str, str], list[str]] = {}
    for (client, check), names in routes.items():
        places.setdefault((check, _write_routes(names)), []).append(client)
    order = [*CHECKS, "script"]
    shown = sorted(places.items(), key=lambda place: order.index(place[0][0]))
    return "; ".join(f"{check} {over} ({_write_clients(names, clients)})" for (check, over), names in shown)


def _write_clients(names: Sequence[str], clients: Mapping[str, Client]) -> str:
    return ", ".join(name for name in clients if name in names)


def _write_routes(names: Sequence[str]) -> str:
    if set(names) == set(ROUTES):
        return "over every route"
    return f"over {', '.join(route.title for name, route in ROUTES.items() if name in names)}"


def _escape(text: str) -> str:
    """Escape a reason's characters that Markdown would read."""
    text = text.replace("|", "\\|").replace("<", "&lt;").replace("`", "'").replace("*", "\\*")
    return re.sub(r"\[([^]]*)\]\(", r"[\1] (", text)
