"""How providers of a dialect are configured, as data: their addresses, and where other tools keep theirs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["AddressForm", "BaseAddress", "EnvironmentProvider", "Vendor"]


@dataclass(frozen=True, slots=True)
class BaseAddress:
    """What calls append to a provider's base address, and the usual slips in such an address.

    `appended` is what a call of chat (or of the dialect's only protocol) appends. `overlap` matches the end of an
    address that already has a part of it. `version` is the path that most servers expect before it: an address without
    any path probably lacks it. `host_paths` maps the end of a host's name to the path that base addresses have there.
    """

    appended: str
    overlap: re.Pattern[str]
    version: str = ""
    host_paths: Mapping[str, str] = field(default_factory=dict)

    def shorten(self, url: str) -> str | None:
        """The address without the part that calls append; None if it has none."""
        bare = url.rstrip("/")
        shorter = self.overlap.sub("", bare)
        return None if shorter == bare else shorter

    def lacks_version(self, url: str) -> bool:
        """True if the address has no path, and most servers want one."""
        return bool(self.version) and url.startswith("http") and "/" not in url.partition("//")[2].strip("/")

    def complete(self, url: str) -> str:
        """The address with the path that base addresses at its host have."""
        return next((url + path for host, path in self.host_paths.items() if url.endswith(host)), url)


@dataclass(frozen=True, slots=True)
class AddressForm:
    """A form of address that providers may have instead of the dialect's usual one: a value of `address`.

    `title` is what its clients call it. `auth` is its default way to present a key. `settings` are the keys of the
    provider's configuration that the form needs: key -> a hint for who left it out. `paths` are those at which its
    clients ask: protocol -> patterns.
    """

    title: str
    base_address: BaseAddress
    auth: str
    settings: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EnvironmentProvider:
    """A provider that exists without a configuration file if all of its `variables` are set; the last holds the key.

    `base_url` may refer to variables, as in a configuration; with `bare_host`, the first variable may hold a host's
    name alone. `patterns` are names of models that are plainly the provider's own. `settings` are further keys of the
    provider's configuration.
    """

    name: str
    variables: tuple[str, ...]
    base_url: str
    protocols: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    bare_host: bool = False


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor of LiteLLM's that speaks a dialect. `base_url` is the address if LiteLLM's configuration names none;
    if it is empty, that configuration has to. `key` is the variable from which LiteLLM takes the key."""

    base_url: str = ""
    protocols: tuple[str, ...] = ("chat", "embeddings")
    key: str = ""
