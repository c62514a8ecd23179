"""What people are told who begin without a configuration."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from dragoman.local_engine import embedded
from dragoman.proxy.config.models import Config
from dragoman.proxy.config.zero import ways_to_set

__all__ = ["found", "models_told", "next_steps", "nothing"]

_SHOWN = 12  # names of models in one line

_WIDTH = 120
_ENGINE = f"""
Or install the local engine, with which a small model answers at once: {embedded.INSTALL}"""


def nothing() -> str:
    """Why there is no configuration, and ways to have one."""
    ways = f"Write a file (dragoman init) or name one (--config FILE); or set {ways_to_set()}."
    lines = ["no provider in the environment.", *wrap(ways, _WIDTH)]
    return "\n".join(lines) + _ENGINE * bool(embedded.lacking())


def found(config: Config) -> str:
    """Where a configuration without a file comes from."""
    providers = [name for name, provider in config.providers.items() if provider.engine is None]
    if not providers:
        return f"no provider in the environment either, so {embedded.NAME} answers"
    return f"from the environment: {', '.join(providers)}"


def models_told(config: Config) -> str:
    """The models that can be asked for."""
    names = list(config.models)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"models: {', '.join(names[:_SHOWN])}{more}" if names else "no model is configured"


def next_steps(config: Config, url: str) -> Iterator[str]:
    """What to try where the model that comes with dragoman answers."""
    mini = config.models.get(embedded.NAME)
    if mini is None or any(config.providers[target.provider].model_dir for target in mini.targets):
        return
    question = "What is dragoman?"
    port = "" if url.endswith(":8080") else f" --base-url {url}/v1"
    yield f"\n{embedded.NAME} is a tiny model that knows dragoman and nothing else. Try:"
    yield f'  dragoman chat "{question}"{port}'
    yield f"  curl {url}/v1/chat/completions -H 'content-type: application/json' \\"
    yield f'    -d \'{{"model": "{embedded.NAME}", "messages": [{{"role": "user", "content": "{question}"}}]}}\''
    yield f'  OpenAI(base_url="{url}/v1", api_key="unused")    # the openai package of Python'
    yield "For other models: dragoman init writes a configuration to begin with."
