"""The words of the configuration that come from the dialects, as types and in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from dragoman.adapters.registry import dialects

__all__ = ["SETTINGS", "AddressName", "DialectName", "ProfileName", "describe_words", "owners_of"]

SETTINGS = tuple(
    dict.fromkeys(
        key
        for dialect in dialects.values()
        for keys in (dialect.settings, *(form.settings for form in dialect.address_forms.values()))
        for key in keys
    )
)
"""The keys of a provider's configuration that only some dialects, or forms of address, have."""

if TYPE_CHECKING:
    DialectName: TypeAlias = str
    ProfileName: TypeAlias = str
    AddressName: TypeAlias = str
else:
    DialectName = Literal[tuple(dialects)]
    ProfileName = Literal[tuple(dict.fromkeys(name for dialect in dialects.values() for name in dialect.profiles))]
    AddressName = Literal[tuple(form for dialect in dialects.values() for form in dialect.address_forms)]


def owners_of(key: str) -> str:
    """Which dialects and forms of address have that key of a provider: `the dialect azure and the address x`."""
    names = [f"the dialect {name}" for name, dialect in dialects.items() if key in dialect.settings]
    forms = [
        f"the address {form}"
        for dialect in dialects.values()
        for form, data in dialect.address_forms.items()
        if key in data.settings
    ]
    return " and ".join((*names, *forms))


def describe_words() -> Mapping[str, str]:
    """The text of each placeholder in the descriptions of the configuration's fields."""
    return {
        "{appended}": ", ".join(_appended()),
        "{auth}": "; ".join(_ways_to_present_keys()),
        "{called profile}": _usual({name: dialect.called_profile for name, dialect in dialects.items()}),
        "{served profile}": _usual({name: dialect.served_profile for name, dialect in dialects.items()}),
        "{default protocols}": _usual({name: " and ".join(one.default_protocols) for name, one in dialects.items()}),
        "{deployments}": ", ".join(name for name, dialect in dialects.items() if dialect.deployment_header),
        **{f"{{owners of {key}}}": owners_of(key) for key in SETTINGS},
    }


def _appended() -> Iterator[str]:
    for name, dialect in dialects.items():
        base = dialect.base_address
        if base is not None:
            yield f"{name} `{base.appended}`" + (f" (so end it with {base.version})" if base.version else "")


def _ways_to_present_keys() -> Iterator[str]:
    for name, dialect in dialects.items():
        first, *others = dialect.auth
        yield f"{name} {' or '.join((f'{first} (the default)' if others else first, *others))}"
        yield from (f"the address {form} {data.auth} by default" for form, data in dialect.address_forms.items())


def _usual(words: Mapping[str, str]) -> str:
    """The word of most, and the dialects that have another: `actual, for mindie documented`."""
    usual = max(words.values(), key=list(words.values()).count)
    return ", ".join([usual, *(f"for {name} {word}" for name, word in words.items() if word != usual)])
