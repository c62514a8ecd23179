"""How families of models write tool calls: one table. The chat template shows which family it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["FORMS", "Form", "find_form"]


@dataclass(frozen=True, slots=True)
class Form:
    """`open` and `close` stand around a payload; a reply that begins with `bare` is one without them.

    Payloads: `objects` are JSON objects with a name and `arguments`, `named` is `name[ARGS]{...}`, `python` is a list
    of calls in Python's syntax. `around` may stand before, between and after objects, `joint` is written between two.
    `lead` and `tail` are written inside the markers. A template with all strings of one of `signs` is of this form.
    """

    name: str
    payload: Literal["objects", "named", "python"]
    signs: tuple[tuple[str, ...], ...]
    open: str = ""
    close: str = ""
    bare: str = ""
    around: str = ""
    joint: str = ""
    lead: str = ""
    tail: str = ""
    arguments: str = "arguments"
    id_length: int = 0

    @property
    def markers(self) -> tuple[str, ...]:
        return tuple(marker for marker in (self.open, self.close) if marker)


MISTRAL_ID = 9
FORMS: tuple[Form, ...] = (
    Form("mistral-args", "named", (("[TOOL_CALLS]", "[ARGS]"),), open="[TOOL_CALLS]", id_length=MISTRAL_ID),
    Form(
        "mistral",
        "objects",
        (("[TOOL_CALLS]",),),
        open="[TOOL_CALLS]",
        around="[,]",
        joint=", ",
        lead="[",
        tail="]",
        id_length=MISTRAL_ID,
    ),
    Form("hermes", "objects", (("<tool_call>",),), open="<tool_call>", close="</tool_call>", lead="\n", tail="\n"),
    Form("pythonic", "python", (("<|python_start|>",),), open="<|python_start|>", close="<|python_end|>", bare="["),
    Form(
        "llama3",
        "objects",
        (("<|python_tag|>",), ('"parameters"', "tools"), ("dictionary of argument name and its value", "tools")),
        open="<|python_tag|>",
        bare="{",
        around=";",
        joint="; ",
        arguments="parameters",
    ),
    Form("pythonic", "python", (("[func_name1(",), ("pythonic", "tools")), bare="["),
)


def find_form(template: str, settings: Mapping[str, Any]) -> Form | None:
    """The form that `tools` of dragoman.json names, else the template's; None where no call is known.

    Raises ValueError for an unknown name.
    """
    given = settings.get("tools")
    if given is False:
        return None
    if given is not None:
        found = next((form for form in FORMS if form.name == given), None)
        if found is None:
            known = ", ".join(dict.fromkeys(form.name for form in FORMS))
            raise ValueError(f"tools is {given!r}; known are {known}, and false for none")
        return found
    return next((form for form in FORMS for signs in form.signs if all(sign in template for sign in signs)), None)
