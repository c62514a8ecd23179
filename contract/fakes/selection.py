"""The selection of a behaviour: the syntax of its name and arguments, and the places where a request may name it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from dragoman.contract.json_types import JsonValue

from .answers import read_prompts, read_text, select_objects
from .behaviours import BEHAVIOURS, Behaviour
from .embeddings import read_inputs

__all__ = [
    "InvalidBehaviourError",
    "SelectedBehaviour",
    "find_requested_behaviour",
    "list_behaviours",
    "parse_behaviour",
]


class InvalidBehaviourError(ValueError):
    """A behaviour does not exist, belongs to another dialect, or has a wrong argument."""


@dataclass(frozen=True, slots=True)
class SelectedBehaviour:
    """A behaviour with its arguments, as in `slow(delay=0.1)`."""

    name: str
    behaviour: Behaviour
    args: Mapping[str, float | str]


_CALL = re.compile(r"([A-Za-z0-9_-]+)(?:\((.*)\))?", re.DOTALL)
_ARGUMENT = re.compile(r"\s*(\w+)=(.*?)\s*(?:,(?=\s*\w+=)|$)", re.DOTALL)


def parse_behaviour(text: str, dialect: str) -> SelectedBehaviour:
    """Parse `name` or `name(argument=value,...)`; `_` and `-` are equal in names.

    Raises InvalidBehaviourError, whose message lists the alternatives.
    """
    matched = _CALL.fullmatch(text.strip())
    name = matched.group(1).replace("_", "-") if matched else text
    behaviour = BEHAVIOURS.get(name)
    if behaviour is None or matched is None:
        near = get_close_matches(name, BEHAVIOURS, 3, 0.5) or ["text"]
        raise InvalidBehaviourError(
            f"no behaviour {name!r}; similar: {', '.join(near)} (`dragoman fake --list` shows all)"
        )
    if behaviour.dialects is not None and dialect not in behaviour.dialects:
        raise InvalidBehaviourError(
            f"behaviour {name!r} belongs to {', '.join(behaviour.dialects)}; this fake is {dialect}"
        )
    return SelectedBehaviour(name, behaviour, _parse_arguments(name, behaviour, matched.group(2) or ""))


def _parse_arguments(name: str, behaviour: Behaviour, text: str) -> Mapping[str, float | str]:
    given = dict(_ARGUMENT.findall(text))
    if text.strip() and not given:
        raise InvalidBehaviourError(f"behaviour {name!r}: write its arguments as name=value, not {text!r}")
    args = dict(behaviour.args)
    for key, value in given.items():
        if key not in args:
            raise InvalidBehaviourError(
                f"behaviour {name!r} has no argument {key!r}; it takes: {', '.join(args) or 'none'}"
            )
        args[key] = value if isinstance(args[key], str) else _parse_number(name, key, value)
    return args


def _parse_number(name: str, key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InvalidBehaviourError(f"behaviour {name!r}: {key} must be a number, not {value!r}") from None


def list_behaviours() -> str:
    """List the behaviours, one on each line."""
    return "\n".join(_describe_behaviour(name, behaviour) for name, behaviour in BEHAVIOURS.items())


def _describe_behaviour(name: str, behaviour: Behaviour) -> str:
    shown = {key: value if isinstance(value, str) else f"{value:g}" for key, value in behaviour.args.items()}
    args = ", ".join(f"{key}={value}" for key, value in shown.items())
    owners = f" [{', '.join(behaviour.dialects)}]" if behaviour.dialects else ""
    return f"{name + (f'({args})' if args else ''):<44} {behaviour.description}{owners}"


_DIRECTIVE = re.compile(r"\bfake:([A-Za-z0-9_-]+(?:\([^)]*\))?)")


def find_requested_behaviour(body: Mapping[str, JsonValue], model: str) -> str | None:
    """Find the behaviour that a request names: `fake:NAME` in the last user message, prompt or input, or the model
    `fake-NAME`. A model `no-such-NAME` does not exist."""
    users = [message for message in select_objects(body.get("messages")) if message.get("role") == "user"]
    given = read_text(users[-1]) if users else " ".join([*read_prompts(body)[-1:], *map(str, read_inputs(body))])
    found = _DIRECTIVE.findall(given)
    if found:
        return str(found[-1])
    if model.startswith("no-such-"):
        return "model-not-found"
    name = model.removeprefix("fake-")
    return name if name != model and name.replace("_", "-") in BEHAVIOURS else None
