"""Messages at the start of the proxy: what it serves, and what to try first."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.local_engine import embedded
from dragoman.proxy.config.models import Config, Store
from dragoman.proxy.config.values import format_seconds
from dragoman.proxy.conversations.stores.factory import store_path

__all__ = [
    "describe_models",
    "describe_store",
    "suggest_first_requests",
]

_MAX_NAMES = 12  # names of models in one line


def describe_models(config: Config) -> str:
    """The models that clients can ask for, in one line."""
    names = list(config.models)
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"models: {', '.join(names[:_MAX_NAMES])}{more}" if names else "no model is configured"


def describe_store(store: Store) -> str:
    """Where responses are stored and for how long, in one line."""
    time = format_seconds(store.retention)
    if store.kind == "sqlite":
        return f"responses are stored for {time} in {store_path(store)}"
    return f"responses are stored for {time} in memory" if store.kind == "memory" else "responses are not stored"


def suggest_first_requests(config: Config, url: str) -> Iterator[str]:
    """Lines with first requests to try, if the model that comes with dragoman is served, and no key is needed."""
    mini = config.models.get(embedded.NAME)
    if config.keys or mini is None or any(config.providers[target.provider].model_dir for target in mini.targets):
        return
    question = "What is dragoman?"
    port = "" if url.endswith(":8080") else f" --base-url {url}/v1"
    yield f"\n{embedded.NAME} is a tiny model that answers questions about dragoman only. Try:"
    yield f'  dragoman chat "{question}"{port}'
    yield f"  curl {url}/v1/chat/completions -H 'content-type: application/json' \\"
    yield f'    -d \'{{"model": "{embedded.NAME}", "messages": [{{"role": "user", "content": "{question}"}}]}}\''
    yield f'  OpenAI(base_url="{url}/v1", api_key="unused")    # the openai package of Python'
    yield "For other models: dragoman init writes a configuration to begin with."
