"""Extra parameters: keys that no schema has, at the top of a request or inside its values. One rule serves both.

The policy `extra_parameters` decides, or the client's header `extra-parameters`. An assistant's message is a reply that
comes back with every key that the client got: none of them is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator
from typing import Any, Literal, TypeAlias

from .call import Context, Headers, JsonObject
from .edits import Edits, remove
from .faults import Fault
from .paths import Path, format_path, lookup
from .request_properties import HUB_CHAT, hub_annotations, list_siblings
from .suggestions import did_you_mean

__all__ = [
    "EXTRA_PARAMETERS",
    "ExtraParameters",
    "Extras",
    "decide_extra",
    "drop_inner_extras",
    "is_from_reply",
    "list_inner_extras",
    "read_extra_parameters",
    "resolve_extra",
]

EXTRA_PARAMETERS = "extra-parameters"

ExtraParameters: TypeAlias = Literal["error", "drop", "pass-through"]

Extras: TypeAlias = Literal["keep", "drop", "keep-extensions", "keep-all"]
"""What a dialect does with extra parameters, if the policy passes them through.

`keep` keeps them. `drop` drops them, because its servers refuse unknown keys. `keep-extensions` also keeps the hub's
own extensions, because many different servers speak the dialect. `keep-all` keeps every key that the dialect's API does
not define, because the client asked for that.
"""

_WORDS: dict[str, ExtraParameters] = {
    "error": "error",
    "drop": "drop",
    "ignore": "drop",
    "pass-through": "pass-through",
    "allow": "pass-through",
}


def read_extra_parameters(headers: Headers) -> ExtraParameters | None:
    """Return the client's choice, None without the header.

    `ignore`, the reference's word, means `drop`; the older `allow` means `pass-through`. Raises Fault `invalid_request`
    for another word.
    """
    given = headers.get(EXTRA_PARAMETERS)
    if given is None:
        return None
    word = _WORDS.get(given.strip().lower())
    if word is None:
        text = (
            f"Unexpected EXTRA_PARAMETERS option {given[:40]}, expected options are ['error', 'drop', 'pass-through']"
        )
        raise Fault("invalid_request", text, (EXTRA_PARAMETERS,), given, code="invalid_value")
    return word


def resolve_extra(body: JsonObject, path: Path, ctx: Context, extras: Extras = "drop", hub: str = HUB_CHAT) -> None:
    """Drop or keep a key that no schema has, by policy and dialect. Raises Fault if the policy refuses it."""
    if not decide_extra(body, path, ctx, extras, hub):
        remove(body, path)


def decide_extra(body: JsonObject, path: Path, ctx: Context, extras: Extras, hub: str) -> bool:
    """Whether an extra parameter is kept. Records it if it is to be dropped. Raises Fault if the policy refuses it."""
    choice = ctx.target.policy.extra_parameters
    if lookup(body, path) is None:
        ctx.receipt.record_drop(path, "it is null and not a known parameter", "form")
    elif choice == "error" and not is_from_reply(body, path):
        meant = did_you_mean(str(path[-1]), list_siblings(path, hub_annotations(hub)))
        text = f"{format_path(ctx.receipt.unmap(path))} is not a known parameter{meant}"
        raise Fault("extra_parameter", text, path, lookup(body, path), code="unknown_parameter")
    elif choice != "pass-through" or extras == "drop":
        ctx.receipt.record_drop(path, "not a known parameter", policy="extra_parameters")
    else:
        return True
    return False


def drop_inner_extras(body: JsonObject, ctx: Context, hub: str, others: Container[Path] = ()) -> None:
    """Drop the extra parameters inside the body's values, unless the policy passes them through.

    `others` are properties that the hub lacks and the target has. Nested values are copied, never altered. Raises Fault
    if the policy refuses one.
    """
    if ctx.target.policy.extra_parameters == "pass-through":
        return
    edits = Edits(body)
    for path in list(list_inner_extras(body, hub_annotations(hub), others)):
        decide_extra(body, path, ctx, "drop", hub)
        edits.remove_parameter(path)


def list_inner_extras(body: JsonObject, known: Collection[Path], others: Container[Path] = ()) -> Iterator[Path]:
    """Yield the paths of the keys inside the body's values that are neither among the `known` nor among the `others`.

    Objects without known properties may have any key: they are not searched.
    """
    parents = {path[:-1] for path in known}

    def walk(value: Any, place: Path, path: Path) -> Iterator[Path]:
        if isinstance(value, list):
            for i, one in enumerate(value):
                yield from walk(one, place, (*path, i))
        elif isinstance(value, dict) and place in parents:
            for name, one in value.items():
                inner = (*place, name)
                if path and inner not in known and inner not in others:
                    yield (*path, name)
                else:
                    yield from walk(one, inner, (*path, name))

    return walk(body, (), ())


def is_from_reply(body: JsonObject, path: Path) -> bool:
    """Whether a key is inside an assistant's message, or inside an item of Responses without a role."""
    holder = lookup(body, path[:2]) if len(path) > 2 else None
    default = "assistant" if path[0] == "input" else None
    return isinstance(holder, dict) and holder.get("role", default) == "assistant"
