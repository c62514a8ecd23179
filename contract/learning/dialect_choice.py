"""Which dialect an endpoint speaks, and at which base address: the one whose paths, errors and list of models fit best.

Nothing here costs tokens: for each dialect its list of models is requested, and a request without messages is posted to
its first address, or to the others if that is not served. The answers are compared with the forms in the dialect's
`fake.json`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from dragoman.contract.dialects import DIALECTS, build_path, load_dialect
from dragoman.contract.exchange import Request, Response, UnreachableError
from dragoman.contract.json_path import ABSENT, find_value
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.contract.model import Case, Expectation, Step
from dragoman.contract.routes import MODEL
from dragoman.contract.served import is_not_served
from dragoman.contract.target import Target, build_request

from .asking import describe_exchange
from .findings import Evidence

__all__ = ["Choice", "choose_dialect", "count_choice_requests", "list_bases", "list_models"]

Send = Callable[[Request], Awaitable[Response]]

_SERVED, _CERTAIN = 0.5, 0.9
_NOT_TRIED = ("models", "count_tokens")
_INCOMPLETE = {"max_tokens": 1}
"""No request of any protocol; a server that answers it all the same writes little."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A dialect at a base address. `score` says how well the answers fit: 0.5 for an address that exists, up to 1 for
    errors and up to 1 for the list of models. `models` are the names in that list, None if there is no list."""

    dialect: str
    base_url: str
    score: float
    evidence: Evidence | None
    models: list[str] | None
    models_evidence: Evidence | None


async def choose_dialect(url: str, target: Target, send: Send, only: str = "") -> Choice | None:
    """Choose the dialect that fits best, the first of several; None if none does. `target` has the key, headers and the
    model if one is known; with `only`, only its base address is chosen. Raises UnreachableError if nothing answers."""
    found: list[Choice] = []
    failures: list[UnreachableError] = []
    for name in [only] if only else DIALECTS:
        for base in list_bases(url, name):
            try:
                found.append(await _try_dialect(name, base, target, send, thoroughly=bool(only)))
            except UnreachableError as error:
                failures.append(error)
    if failures and not found:
        raise failures[0]
    best = max(found, key=lambda choice: round(choice.score, 1), default=None)
    return best if best is not None and best.score > 0 else None


def count_choice_requests(url: str, only: str = "") -> int:
    """The most requests that the choice sends."""
    return sum(len(load_dialect(name).paths) * len(list_bases(url, name)) for name in ([only] if only else DIALECTS))


def list_bases(url: str, dialect: str) -> list[str]:
    """List the base addresses that a dialect's clients may take for a URL: without the part of a path that they append
    themselves, and with the usual root of the dialect if the URL has none."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    path, data = parts.path.rstrip("/"), load_dialect(dialect)
    rests = sorted({_cut_overlap(path, f"{data.root}{one}") for some in data.paths.values() for one in some}, key=len)
    shortest = rests[0]
    paths = [shortest + data.root] + ([path] if shortest == path and data.root and path else [])
    return [urlunsplit((parts.scheme, parts.netloc, one, "", "")) for one in dict.fromkeys(paths)]


def _cut_overlap(path: str, appended: str) -> str:
    """Return the path without the longest end of it that is a beginning of `appended`, in whole segments."""
    segments, ending = appended.split("/")[1:], path.split("/")[1:]
    for count in range(min(len(segments), len(ending)), 0, -1):
        if all(one in (other, "{model}") for one, other in zip(segments, ending[-count:], strict=False)):
            return "".join(f"/{one}" for one in ending[:-count])
    return path


async def _try_dialect(name: str, base: str, target: Target, send: Send, *, thoroughly: bool) -> Choice:
    """Try the dialect's first address, and with `thoroughly`, or if there is a list of models, the others too until one
    is served. Raises UnreachableError."""
    mine = Target(base, name, target.model or "learn", target.key, headers=target.headers)
    listed, models, shown = await _try_models(mine, send)
    protocols = [protocol for protocol in load_dialect(name).paths if protocol not in _NOT_TRIED]
    for protocol in protocols if thoroughly or models is not None else protocols[:1]:
        request = _build(mine, protocol, {"body": _INCOMPLETE, "model": False})
        response = await send(request)
        similar = _compare_error(name, response)
        if not is_not_served(response) or (similar >= _CERTAIN and "{model}" in load_dialect(name).paths[protocol][0]):
            evidence = describe_exchange(request, response)
            return Choice(name, base, _SERVED + similar + listed, evidence, models, shown)
    return Choice(name, base, 0.0, None, None, None)


async def _try_models(target: Target, send: Send) -> tuple[float, list[str] | None, Evidence | None]:
    """How well the list of models fits, the names in it, and what shows them. Raises UnreachableError."""
    data = load_dialect(target.dialect)
    if "models" not in data.paths:
        return 0.0, None, None
    request = _build(target, "models", {"method": "GET"})
    response = await send(request)
    body = _read_json(response)
    listed = _compare(data.models, body) if response.status == 200 else 0.0
    if listed < _SERVED:
        return listed, None, None
    return listed, list_models(target.dialect, body), describe_exchange(request, response)


def _compare_error(dialect: str, response: Response) -> float:
    """How well an error fits the forms that the dialect has for its status."""
    status = response.status
    forms = [form for form in load_dialect(dialect).errors.forms if status >= 400]
    bodies = [form["body"] for form in forms if status in form.get("status", (status,))]
    return max((_compare(form, _read_json(response)) for form in bodies), default=0.0)


def _build(target: Target, protocol: str, text: JsonObject) -> Request:
    path = build_path(target.dialect, protocol, target.model)
    case = Case("learn", "", "", "MUST", protocol, target.dialect, ())
    return build_request(Step({"path": path, **text}, Expectation(())), case, target, {})[0]


def _read_json(response: Response) -> JsonValue:
    try:
        return json.loads(response.body)
    except (ValueError, RecursionError):
        return None


def _compare(form: JsonValue, body: JsonValue) -> float:
    """Which part of the form's keys the body has, from 0 to 1. Many servers add keys of their own."""
    wanted, found = set(_list_keys(form)), set(_list_keys(body))
    return len(wanted & found) / len(wanted) if wanted else 0.0


def _list_keys(value: JsonValue, path: str = "") -> Iterator[str]:
    """The paths of all keys. The items of a list are one."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{path}.{key}"
            yield from _list_keys(item, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from _list_keys(item, f"{path}[]")


def list_models(dialect: str, body: JsonValue) -> list[str]:
    """List the names of a list of models: what is where the dialect's own list has its model."""
    place = _find_place(load_dialect(dialect).models, "")
    found = find_value(body, place) if place is not None else ABSENT
    names = found if isinstance(found, list) else [found]
    return [name for name in names if isinstance(name, str) and name]


def _find_place(form: JsonValue, path: str) -> str | None:
    """Find the path of the fake's model in its list, as `data[*].id`."""
    if form == MODEL:
        return path
    items: list[tuple[str, JsonValue]] = []
    if isinstance(form, dict):
        items = [(f"{path}.{key}".lstrip("."), item) for key, item in form.items()]
    elif isinstance(form, list):
        items = [(f"{path}[*]", item) for item in form]
    places = (_find_place(item, place) for place, item in items)
    return next((place for place in places if place is not None), None)
