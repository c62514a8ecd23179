"""The command and its options. What it needs is imported inside it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dragoman.proxy.cli.options import ConfigFile, EnvFile, configuration, environment, problems_shown

__all__ = ["DEFAULT", "chat"]

DEFAULT = "http://127.0.0.1:8080/v1"


def chat(
    question: Annotated[str | None, typer.Argument(help="One question; without it, a conversation.")] = None,
    base_url: Annotated[
        str | None,
        typer.Option(envvar="DRAGOMAN_BASE_URL", help="The address of an OpenAI API, with its /v1."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model. Default: the first that the server lists.")] = None,
    api_key: Annotated[str | None, typer.Option(envvar="DRAGOMAN_API_KEY", help="The key to present.")] = None,
    config: ConfigFile = None,
    env_file: EnvFile = None,
) -> None:
    """Talk to a model. Without --base-url: at the proxy on http://127.0.0.1:8080, or, where none runs or --config is
    given, at one that runs as long as the talk."""
    from .client import ChatClient, ChatError
    from .own import own_proxy
    from .talk import converse, first_model, say

    def talk(client: ChatClient) -> None:
        name = model or first_model(client)
        if question is not None:
            say(client, name, [{"role": "user", "content": question}])
        else:
            converse(client, name)

    try:
        client = ChatClient(base_url or DEFAULT, api_key)
        if base_url is not None or (config is None and client.answers()):
            return talk(client)
        with problems_shown():
            checked = configuration(config, environment(env_file), insecure=False)
        with own_proxy(checked.config) as url:
            talk(ChatClient(f"{url}/v1", api_key))
    except ChatError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
