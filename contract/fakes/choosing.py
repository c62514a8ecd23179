"""Which behaviour: its name, its arguments, and where a request may name it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from .answers import objects, prompts_of, text_of
from .behaviours import BEHAVIOURS, Behaviour
from .vectors import inputs_of

__all__ = ["Chosen", "Misuse", "listing", "named", "parse"]


class Misuse(ValueError):
    """A behaviour that does not exist, is not this dialect's, or was given a wrong argument."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A behaviour with its arguments, as in `slow(delay=0.1)`."""

    name: str
    behaviour: Behaviour
    args: Mapping[str, float | str]


_CALL = re.compile(r"([A-Za-z0-9_-]+)(?:\((.*)\))?", re.DOTALL)
_ARGUMENT = re.compile(r"\s*(\w+)=(.*?)\s*(?:,(?=\s*\w+=)|$)", re.DOTALL)


def parse(text: str, dialect: str) -> Chosen:
    """The behaviour that `name` or `name(argument=value,...)` asks for; `_` and `-` are the same in names.

    Raises Misuse, whose text says what there is.
    """
    matched = _CALL.fullmatch(text.strip())
    name = matched.group(1).replace("_", "-") if matched else text
    behaviour = BEHAVIOURS.get(name)
    if behaviour is None or matched is None:
        near = get_close_matches(name, BEHAVIOURS, 3, 0.5) or ["text"]
        raise Misuse(f"no behaviour {name!r}; close to it: {', '.join(near)} (`dragoman fake --list` shows all)")
    if behaviour.only is not None and dialect not in behaviour.only:
        raise Misuse(f"behaviour {name!r} belongs to {', '.join(behaviour.only)}; this fake is {dialect}")
    return Chosen(name, behaviour, _arguments(name, behaviour, matched.group(2) or ""))


def _arguments(name: str, behaviour: Behaviour, text: str) -> Mapping[str, float | str]:
    given = dict(_ARGUMENT.findall(text))
    if text.strip() and not given:
        raise Misuse(f"behaviour {name!r}: write its arguments as name=value, not {text!r}")
    args = dict(behaviour.args)
    for key, value in given.items():
        if key not in args:
            raise Misuse(f"behaviour {name!r} has no argument {key!r}; it takes: {', '.join(args) or 'none'}")
        args[key] = value if isinstance(args[key], str) else _number(name, key, value)
    return args


def _number(name: str, key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise Misuse(f"behaviour {name!r}: {key} must be a number, not {value!r}") from None


def listing() -> str:
    """Every behaviour on a line of its own, for the command line."""
    return "\n".join(_line(name, behaviour) for name, behaviour in BEHAVIOURS.items())


def _line(name: str, behaviour: Behaviour) -> str:
    shown = {key: value if isinstance(value, str) else f"{value:g}" for key, value in behaviour.args.items()}
    args = ", ".join(f"{key}={value}" for key, value in shown.items())
    owners = f" [{', '.join(behaviour.only)}]" if behaviour.only else ""
    return f"{name + (f'({args})' if args else ''):<44} {behaviour.about}{owners}"


_DIRECTIVE = re.compile(r"\bfake:([A-Za-z0-9_-]+(?:\([^)]*\))?)")


def named(body: Mapping[str, Any], model: str) -> str | None:
    """What the request asks for: `fake:NAME` in the last user message, prompt or input, or the model `fake-NAME`; a
    model `no-such-NAME` does not exist."""
    users = [message for message in objects(body.get("messages")) if message.get("role") == "user"]
    given = text_of(users[-1]) if users else " ".join([*prompts_of(body)[-1:], *map(str, inputs_of(body))])
    found = _DIRECTIVE.findall(given)
    if found:
        return str(found[-1])
    if model.startswith("no-such-"):
        return "model-not-found"
    name = model.removeprefix("fake-")
    return name if name != model and name.replace("_", "-") in BEHAVIOURS else None
