"""The parts of the configuration that the dialects define: types of values, keys, and texts for descriptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from dragoman.adapters.dialect import COMPANIONS
from dragoman.adapters.registry import dialects

__all__ = [
    "SETTINGS",
    "AddressName",
    "DialectName",
    "ProfileName",
    "ProtocolName",
    "describe_owners",
    "describe_placeholders",
]

SETTINGS = tuple(
    dict.fromkeys(
        key
        for dialect in dialects.values()
        for keys in (dialect.settings, *(form.settings for form in dialect.address_forms.values()))
        for key in keys
    )
)
"""The keys of a provider's configuration that only some dialects or forms of address have."""

if TYPE_CHECKING:
    DialectName: TypeAlias = str
    ProfileName: TypeAlias = str
    AddressName: TypeAlias = str
    ProtocolName: TypeAlias = str
else:
    # `typing` caches unions and considers Literals in another order equal, so `DialectName | None` could be another
    # module's union, in that module's order. The second argument makes these types unequal to all others.
    DialectName = Annotated[Literal[tuple(dialects)], __name__]
    ProfileName = Annotated[
        Literal[tuple(dict.fromkeys(name for dialect in dialects.values() for name in dialect.profiles))], __name__
    ]
    AddressName = Annotated[
        Literal[tuple(form for dialect in dialects.values() for form in dialect.address_forms)], __name__
    ]
    ProtocolName = Annotated[
        Literal[
            tuple(
                dict.fromkeys(
                    name for dialect in dialects.values() for name in dialect.called if name not in COMPANIONS
                )
            )
        ],
        __name__,
    ]


def describe_owners(key: str) -> str:
    """The dialects and forms of address that have a key, as in `the dialect azure and the address azure-openai`."""
    names = [f"the dialect {name}" for name, dialect in dialects.items() if key in dialect.settings]
    forms = [
        f"the address {form}"
        for dialect in dialects.values()
        for form, data in dialect.address_forms.items()
        if key in data.settings
    ]
    return " and ".join((*names, *forms))


def describe_placeholders() -> Mapping[str, str]:
    """The text for each placeholder in the descriptions of the configuration's fields."""
    return {
        "{appended}": ", ".join(_describe_appended()),
        "{auth}": "; ".join(_describe_auth()),
        "{called profile}": _describe_defaults({name: dialect.called_profile for name, dialect in dialects.items()}),
        "{served profile}": _describe_defaults({name: dialect.served_profile for name, dialect in dialects.items()}),
        "{default protocols}": _describe_defaults(
            {name: _join_words(one.default_protocols) for name, one in dialects.items()}
        ),
        "{deployments}": ", ".join(name for name, dialect in dialects.items() if dialect.deployment_header),
        **{f"{{owners of {key}}}": describe_owners(key) for key in SETTINGS},
    }


def _describe_appended() -> Iterator[str]:
    for name, dialect in dialects.items():
        base = dialect.base_address
        if base is not None:
            yield f"{name} `{base.appended}`" + (f" (so end it with {base.version})" if base.version else "")


def _describe_auth() -> Iterator[str]:
    for name, dialect in dialects.items():
        first, *others = dialect.auth
        yield f"{name} {' or '.join((f'{first} (the default)' if others else first, *others))}"
        yield from (f"the address {form} {data.auth} by default" for form, data in dialect.address_forms.items())


def _join_words(words: Sequence[str]) -> str:
    """Join words as in `chat, completions and embeddings`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _describe_defaults(defaults: Mapping[str, str]) -> str:
    """The most common default, and the dialects with another, as in `actual; for mindie documented`."""
    common = max(defaults.values(), key=list(defaults.values()).count)
    return "; ".join([common, *(f"for {name} {value}" for name, value in defaults.items() if value != common)])
