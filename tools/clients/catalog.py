"""The clients of clients.yaml, and the causes of reasons.yaml for what does not pass."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from .routes import FACES, ROUTES

__all__ = [
    "CHECKS",
    "CLIENTS",
    "LANGUAGES",
    "OWNERS",
    "REASONS",
    "SCRIPTS",
    "Client",
    "Reason",
    "find_reason",
    "load_clients",
    "load_reasons",
]

_FOLDER = Path(__file__).parent
SCRIPTS = _FOLDER / "scripts"

CHECKS = (
    *("chat", "turn after reasoning", "stream", "usage in streams", "tools", "streamed tools", "one call at a time"),
    *("structured output", "agent", "errors", "errors in streams", "embeddings", "completions"),
    *("responses", "streamed responses", "responses with tools"),
    *("token count", "models"),
)
"""What a script may check, in the order of the page. An agent is a program that works until its task is done."""

LANGUAGES: Mapping[str, str] = {"python": "py", "node": "mjs"}
"""Maps a language to the suffix of its scripts."""

OWNERS: Mapping[str, str] = {
    "client": "the client's own",
    "provider": "the provider's API lacks it",
    "gateway": "the gateway's own",
    "fake": "the fake provider's: a real one does better",
}
"""Who has caused what does not pass."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client. `packages` are installed together; the first one's version is the client's. `face` is the address that
    its users set (routes.py). In `variables`, `{origin}`, `{base_url}`, `{key}`, `{model}`, `{folder}` (a new one for
    each run), `{cache}` and `{tables}` (tiktoken's) are replaced."""

    name: str
    title: str
    packages: tuple[str, ...]
    language: str = "python"
    face: str = "openai"
    routes: tuple[str, ...] = tuple(ROUTES)
    variables: Mapping[str, str] = field(default_factory=dict)
    recipe: bool = False
    fence: str = ""
    """The language of the recipe, if it is not the script's."""
    timeout: float = 120.0
    """Seconds that one run may take."""
    note: str = ""
    """Why it cannot be installed or run, or what is special about it."""

    @property
    def script(self) -> Path:
        return SCRIPTS / f"{self.name}.{LANGUAGES[self.language]}"


@dataclass(frozen=True, slots=True)
class Reason:
    """A known cause. Empty fields match everything; `text` is a regular expression that the check's reason contains."""

    owner: str
    because: str
    clients: tuple[str, ...] = ()
    gateways: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    text: str = ""

    def matches(self, client: str, gateway: str, route: str, check: str, reason: str) -> bool:
        pairs = ((self.clients, client), (self.gateways, gateway), (self.routes, route), (self.checks, check))
        return all(not wanted or value in wanted for wanted, value in pairs) and bool(re.search(self.text, reason))


def load_clients(file: Path = _FOLDER / "clients.yaml") -> dict[str, Client]:
    """Load the clients by name. Raises ValueError for a row that is not understood."""
    return {name: _read_client(name, row) for name, row in _load(file).items()}


def _read_client(name: str, row: Mapping[str, Any]) -> Client:
    client = Client(name, **{key: _freeze(value) for key, value in row.items()})
    wrong = [
        *({client.language} - set(LANGUAGES)),
        *({client.face} - set(FACES)),
        *(set(client.routes) - set(ROUTES)),
    ]
    if wrong or not client.packages:
        raise ValueError(f"{name}: {', '.join(wrong) or 'no packages'}")
    return client


def load_reasons(file: Path = _FOLDER / "reasons.yaml") -> tuple[Reason, ...]:
    """Load the known causes; the first that matches counts. Raises ValueError for a row that is not understood."""
    reasons = tuple(Reason(**{key: _freeze(value) for key, value in row.items()}) for row in _load(file))
    for reason in reasons:
        wrong = [
            *({reason.owner} - set(OWNERS)),
            *(set(reason.routes) - set(ROUTES)),
            *(set(reason.checks) - set(CHECKS) - {"script"}),
        ]
        if wrong:
            raise ValueError(f"{reason.because}: {', '.join(wrong)}")
    return reasons


def find_reason(
    reasons: Sequence[Reason], client: str, gateway: str, route: str, check: str, reason: str
) -> Reason | None:
    """Find the first cause that matches a check that did not pass."""
    return next((one for one in reasons if one.matches(client, gateway, route, check, reason)), None)


def _load(file: Path) -> Any:
    return YAML(typ="safe").load(file.read_text("utf-8"))


def _freeze(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


CLIENTS = load_clients()
REASONS = load_reasons()
