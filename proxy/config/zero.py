"""Serving without a configuration file: providers from the variables that their own tools use, and the small model that
comes with dragoman.

With one provider, every model's name goes to it unchanged. With several, `openai/gpt-5` names the provider, and names
that only one provider has (`gpt-*`, `databricks-*`, ...) work without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dragoman.local_engine.embedded import NAME

from .load import check_text
from .models import Config

__all__ = ["FILE", "from_environment", "half_set"]

FILE = "(environment)"
"""What problems name instead of a file."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A provider, the variables that all have to be set for it, and the patterns of models that are plainly its own."""

    name: str
    needs: tuple[str, ...]
    base_url: str
    patterns: tuple[str, ...] = ()
    protocols: str = "chat"
    dialect: str = ""
    """Where it is not the provider's name."""
    more: str = ""
    """Further keys of the provider."""


_API_VERSION = "2024-10-21"
"""The latest of Azure OpenAI that is no preview; it has no Responses, so Responses are served over chat."""

_SOURCES = (
    _Source(
        "openai",
        ("OPENAI_API_KEY",),
        "${OPENAI_BASE_URL:-https://api.openai.com/v1}",
        ("gpt-*", "chatgpt-*", "o*", "text-embedding-*"),
        "chat, responses, completions, embeddings",
    ),
    _Source(
        "databricks",
        ("DATABRICKS_HOST", "DATABRICKS_TOKEN"),
        "${DATABRICKS_HOST}",
        ("databricks-*",),
        "chat, completions, embeddings",
    ),
    _Source(
        "azure",
        ("AZURE_INFERENCE_ENDPOINT", "AZURE_INFERENCE_CREDENTIAL"),
        "${AZURE_INFERENCE_ENDPOINT}",
        (),
        "chat, embeddings",
    ),
    _Source(
        "azure-openai",
        ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY"),
        "${AZURE_OPENAI_ENDPOINT}",
        (),
        "chat, completions, embeddings",
        "openai",
        f'address: azure-openai, api_version: "${{OPENAI_API_VERSION:-{_API_VERSION}}}"',
    ),
)


_EMBEDDED_PROVIDER = "  embedded: {engine: local, device: cpu, threads: 1, protocols: [chat, completions]}"
_EMBEDDED_MODEL = f"  {NAME}: {{targets: [{{provider: embedded}}]}}"


def from_environment(env: Mapping[str, str], *, insecure: bool = False, embedded: bool = False) -> Config | None:
    """Create the configuration from the variables; None if they set no provider. `embedded`: the model that
    comes with dragoman is one more. Raises ConfigErrors."""
    sources = [source for source in _SOURCES if all(env.get(name) for name in source.needs)]
    if not sources and not embedded:
        return None
    providers = [_provider(source, env) for source in sources] + [_EMBEDDED_PROVIDER] * embedded
    models = _models(sources) + [_EMBEDDED_MODEL] * embedded
    lines = ["providers:", *providers, "models:", *models]
    return check_text("\n".join(lines), FILE, env, insecure=insecure).config


def half_set(env: Mapping[str, str]) -> list[str]:
    """A hint for each provider for which only some variables are set."""
    hints = []
    for source in _SOURCES:
        missing = [name for name in source.needs if not env.get(name)]
        if 0 < len(missing) < len(source.needs):
            found = ", ".join(name for name in source.needs if name not in missing)
            hints.append(f"{found} is set, but {', '.join(missing)} is not")
    return hints


def _provider(source: _Source, env: Mapping[str, str]) -> str:
    bare = source.name == "databricks" and "://" not in env["DATABRICKS_HOST"]  # its tools take a host alone too
    url = f"https://{source.base_url}" if bare else source.base_url
    key = f"${{{source.needs[-1]}}}"
    said = f'dialect: {source.dialect or source.name}, base_url: "{url}", api_key: "{key}"'
    more = f", {source.more}" if source.more else ""
    return f"  {source.name}: {{{said}, protocols: [{source.protocols}]{more}}}"


def _models(sources: list[_Source]) -> list[str]:
    if len(sources) == 1:
        return [f'  "*": {{targets: [{{provider: {sources[0].name}}}]}}']
    return [line for source in sources for line in _patterns(source)]


def _patterns(source: _Source) -> list[str]:
    prefix = f"{source.name}/"
    named = [f'  "{pattern}": {{targets: [{{provider: {source.name}}}]}}' for pattern in source.patterns]
    return [f'  "{prefix}*": {{targets: [{{provider: {source.name}, strip: "{prefix}"}}]}}', *named]
