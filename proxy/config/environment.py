"""The configuration without a file: providers from the environment variables of their own tools, and the small model
that comes with dragoman.

If there is one provider, it gets every model's name unchanged. If there are several, `openai/gpt-5` names the provider;
names that only one vendor has (`gpt-*`, `databricks-*`, ...) work without the prefix.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from dragoman.adapters.providers import EnvironmentProvider
from dragoman.adapters.registry import dialects
from dragoman.local_engine.embedded import NAME, SETTINGS

from .load import check_text
from .models import Config

__all__ = [
    "FILE",
    "describe_provider",
    "describe_variables",
    "find_incomplete_variables",
    "find_providers",
    "list_providers",
    "load_from_environment",
]

FILE = "(environment)"
"""The name of the file in problems."""

_EMBEDDED_PROVIDER = f"  embedded: {json.dumps(SETTINGS)}"
_EMBEDDED_MODEL = f"  {NAME}: {{targets: [{{provider: embedded}}]}}"


def load_from_environment(env: Mapping[str, str], *, insecure: bool = False, embedded: bool = False) -> Config | None:
    """The configuration that the variables describe; None if they describe no provider. `embedded` adds the model that
    comes with dragoman. Raises ConfigErrors."""
    found = find_providers(env)
    if not found and not embedded:
        return None
    providers = [_write_provider(provider, env) for provider in found] + [_EMBEDDED_PROVIDER] * embedded
    models = _write_models(found) + [_EMBEDDED_MODEL] * embedded
    lines = ["providers:", *providers, "models:", *models]
    return check_text("\n".join(lines), FILE, env, insecure=insecure).config


def find_incomplete_variables(env: Mapping[str, str]) -> list[str]:
    """A sentence about each provider of which only some variables are set."""
    hints = []
    for provider in list_providers():
        missing = [name for name in provider.variables if not env.get(name)]
        if 0 < len(missing) < len(provider.variables):
            found = ", ".join(name for name in provider.variables if name not in missing)
            hints.append(f"{found} is set, but {', '.join(missing)} is not")
    return hints


def describe_variables() -> str:
    """The variables of each provider, as in `A, or B and C`."""
    return ", or ".join(" and ".join(provider.variables) for provider in list_providers())


def list_providers() -> list[EnvironmentProvider]:
    """The providers that variables can describe."""
    return [provider for dialect in dialects.values() for provider in dialect.environment]


def find_providers(env: Mapping[str, str]) -> list[EnvironmentProvider]:
    """The providers whose variables are all set."""
    return [provider for provider in list_providers() if all(env.get(name) for name in provider.variables)]


def describe_provider(provider: EnvironmentProvider, env: Mapping[str, str]) -> dict[str, str]:
    """The settings of a provider as the configuration has them, with variables by name."""
    [dialect] = [name for name, one in dialects.items() if provider in one.environment]
    has_bare_host = provider.bare_host and "://" not in env[provider.variables[0]]
    return {
        "dialect": dialect,
        "base_url": f"https://{provider.base_url}" if has_bare_host else provider.base_url,
        "api_key": f"${{{provider.variables[-1]}}}",
        **provider.settings,
    }


def _write_provider(provider: EnvironmentProvider, env: Mapping[str, str]) -> str:
    text = ", ".join(f'{key}: "{value}"' for key, value in describe_provider(provider, env).items())
    return f"  {provider.name}: {{{text}, protocols: [{', '.join(provider.protocols)}]}}"


def _write_models(providers: list[EnvironmentProvider]) -> list[str]:
    if len(providers) == 1:
        return [f'  "*": {{targets: [{{provider: {providers[0].name}}}]}}']
    return [line for provider in providers for line in _write_patterns(provider)]


def _write_patterns(provider: EnvironmentProvider) -> list[str]:
    prefix = f"{provider.name}/"
    own = [f'  "{pattern}": {{targets: [{{provider: {provider.name}}}]}}' for pattern in provider.patterns]
    return [f'  "{prefix}*": {{targets: [{{provider: {provider.name}, strip: "{prefix}"}}]}}', *own]
