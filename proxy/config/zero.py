"""Serving without a configuration file: providers from the variables that their own tools use, and the small model that
comes with dragoman.

With one provider every model's name goes to it as it stands. With several, `openai/gpt-5` names the provider, and names
that leave no doubt (`gpt-*`, `databricks-*`, ...) work without it.
"""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.adapters.providers import EnvironmentProvider
from dragoman.adapters.registry import dialects
from dragoman.local_engine.embedded import NAME

from .load import check_text
from .models import Config

__all__ = ["FILE", "from_environment", "half_set", "ways_to_set"]

FILE = "(environment)"
"""What problems name instead of a file."""


_EMBEDDED_PROVIDER = "  embedded: {engine: local, device: cpu, threads: 1, protocols: [chat, completions]}"
_EMBEDDED_MODEL = f"  {NAME}: {{targets: [{{provider: embedded}}]}}"


def from_environment(env: Mapping[str, str], *, insecure: bool = False, embedded: bool = False) -> Config | None:
    """The configuration that the variables amount to, or None where no provider is set. `embedded`: the model that
    comes with dragoman is one more. Raises ConfigErrors."""
    sources = [source for source in _sources() if all(env.get(name) for name in source.variables)]
    if not sources and not embedded:
        return None
    providers = [_provider(source, env) for source in sources] + [_EMBEDDED_PROVIDER] * embedded
    models = _models(sources) + [_EMBEDDED_MODEL] * embedded
    lines = ["providers:", *providers, "models:", *models]
    return check_text("\n".join(lines), FILE, env, insecure=insecure).config


def half_set(env: Mapping[str, str]) -> list[str]:
    """What to tell about providers for which only some variables are set."""
    hints = []
    for source in _sources():
        missing = [name for name in source.variables if not env.get(name)]
        if 0 < len(missing) < len(source.variables):
            found = ", ".join(name for name in source.variables if name not in missing)
            hints.append(f"{found} is set, but {', '.join(missing)} is not")
    return hints


def ways_to_set() -> str:
    """The variables to set, in words: `A, or B and C`."""
    return ", or ".join(" and ".join(source.variables) for source in _sources())


def _sources() -> list[EnvironmentProvider]:
    return [source for dialect in dialects.values() for source in dialect.environment]


def _provider(source: EnvironmentProvider, env: Mapping[str, str]) -> str:
    [dialect] = [name for name, one in dialects.items() if source in one.environment]
    bare = source.bare_host and "://" not in env[source.variables[0]]
    settings = {
        "dialect": dialect,
        "base_url": f"https://{source.base_url}" if bare else source.base_url,
        "api_key": f"${{{source.variables[-1]}}}",
        **source.settings,
    }
    said = ", ".join(f'{key}: "{value}"' for key, value in settings.items())
    return f"  {source.name}: {{{said}, protocols: [{', '.join(source.protocols)}]}}"


def _models(sources: list[EnvironmentProvider]) -> list[str]:
    if len(sources) == 1:
        return [f'  "*": {{targets: [{{provider: {sources[0].name}}}]}}']
    return [line for source in sources for line in _patterns(source)]


def _patterns(source: EnvironmentProvider) -> list[str]:
    prefix = f"{source.name}/"
    named = [f'  "{pattern}": {{targets: [{{provider: {source.name}}}]}}' for pattern in source.patterns]
    return [f'  "{prefix}*": {{targets: [{{provider: {source.name}, strip: "{prefix}"}}]}}', *named]
