"""What a shell completes after the arguments and options that take names of dragoman's own.

Each function takes what is already typed and returns the values that begin with it. The files that an option can name
are completed by the shell itself. Commands and options need nothing of this.
"""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.adapters.registry import NAMES

__all__ = [
    "complete_behaviour",
    "complete_client_format",
    "complete_dialect",
    "complete_format",
    "complete_payload_type",
    "complete_schema",
]


def complete_dialect(incomplete: str) -> list[str]:
    """`azure` after `az`."""
    return _begin_with(incomplete, NAMES)


def complete_format(incomplete: str) -> list[str]:
    """DIALECT/PROTOCOL, served or called: `azure/chat` after `az`."""
    from dragoman.adapters.registry import dialects

    known = {f"{name}/{protocol}" for name, one in dialects.items() for protocol in (*one.served, *one.called)}
    return _begin_with(incomplete, sorted(known))


def complete_client_format(incomplete: str) -> list[str]:
    """DIALECT/PROTOCOL of those that clients can speak."""
    from dragoman.adapters.registry import dialects

    return _begin_with(
        incomplete, sorted(f"{name}/{protocol}" for name, one in dialects.items() for protocol in one.served)
    )


def complete_payload_type(incomplete: str) -> list[str]:
    """DIALECT/PROTOCOL/SIDE, as `dragoman validate` takes it: `mindie/chat/request` after `mindie`."""
    from dragoman.schemas import names

    sides = {name.replace(".", "/") for name in names()}
    streams = {side.replace("/event", "/stream") for side in sides if side.endswith("/event")}
    return _begin_with(incomplete, sorted(sides | streams))


def complete_schema(incomplete: str) -> list[str]:
    """The names that `dragoman schema --list` prints."""
    from dragoman.schemas import model_files, names

    return _begin_with(incomplete, ("config", "models", *model_files(), *names()))


def complete_behaviour(incomplete: str) -> list[str]:
    """The names of what a fake can do, without their parameters."""
    from dragoman.contract.fakes import list_behaviours

    return _begin_with(
        incomplete, (line.split("(")[0].split()[0] for line in list_behaviours().splitlines() if line.strip())
    )


def _begin_with(incomplete: str, values: Iterable[str]) -> list[str]:
    return [value for value in values if value.startswith(incomplete)]
