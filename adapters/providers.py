"""Data about the providers of a dialect: forms of their addresses, environment variables, LiteLLM's vendors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from .rate_headers import RateHeaders

__all__ = ["AddressForm", "BaseAddress", "EnvironmentProvider", "Vendor"]


@dataclass(frozen=True, slots=True)
class BaseAddress:
    """The path that calls append to a provider's base address, and the usual mistakes in such an address.

    `appended` is the path that a chat call (or one of the dialect's only protocol) appends. `overlap` matches the end
    of an address that already has a part of that path. `version` is the path that most servers expect in the base
    address: an address without any path probably lacks it. `host_paths` maps the end of a host's name to the path that
    base addresses have on that host.
    """

    appended: str
    overlap: re.Pattern[str]
    version: str = ""
    host_paths: Mapping[str, str] = field(default_factory=dict)

    def shorten(self, url: str) -> str | None:
        """Return the address without the part that calls append; None if it has no such part."""
        bare = url.rstrip("/")
        shorter = self.overlap.sub("", bare)
        return None if shorter == bare else shorter

    def lacks_version(self, url: str) -> bool:
        """Whether the address has no path although most servers of the dialect need one."""
        return bool(self.version) and url.startswith("http") and "/" not in url.partition("//")[2].strip("/")

    def complete(self, url: str) -> str:
        """Return the address with the path that base addresses have on its host."""
        return next((url + path for host, path in self.host_paths.items() if url.endswith(host)), url)


@dataclass(frozen=True, slots=True)
class AddressForm:
    """A form of address that a provider may use instead of the dialect's usual one, by its setting `address`.

    `title` is its name for people. `auth` is its default way to present a key. `settings` maps the keys that it
    requires in the provider's configuration to a hint for a user who left one out. `paths` maps protocols to the
    patterns of paths that its clients use. `own` matches the end of a base address that only this form can have.
    `rate_headers` replace those of the dialect for its clients.
    """

    title: str
    base_address: BaseAddress
    auth: str
    settings: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    own: re.Pattern[str] | None = None
    rate_headers: RateHeaders | None = None


@dataclass(frozen=True, slots=True)
class EnvironmentProvider:
    """A provider that exists without a configuration file if all its `variables` are set; the last one holds the key.

    `base_url` may refer to variables, as in a configuration; with `bare_host`, the first variable may hold only
    the name of a host. `patterns` match names of models that only this provider has. `settings` are further keys of the
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
    """A vendor in LiteLLM's configuration whose servers speak a dialect.

    `base_url` is the address if LiteLLM's configuration has none; if it is empty, that configuration must have one.
    `key` is the environment variable from which LiteLLM takes the key. `appended` is the path that base addresses have
    here and LiteLLM's do not. `settings` are further keys of the provider's configuration, which those of LiteLLM's
    replace.
    """

    base_url: str = ""
    protocols: tuple[str, ...] = ("chat", "embeddings")
    key: str = ""
    appended: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
