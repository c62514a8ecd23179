"""The command `chat` and its options."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dragoman.proxy.cli.options import (
    ConfigFile,
    EnvFile,
    exit_on_config_errors,
    exit_with_error,
    load_configuration,
    read_environment,
)

__all__ = ["DEFAULT_URL", "chat"]

DEFAULT_URL = "http://127.0.0.1:8080/v1"


def chat(
    question: Annotated[str | None, typer.Argument(help="One question. Default: a conversation.")] = None,
    base_url: Annotated[
        str | None,
        typer.Option(envvar="DRAGOMAN_BASE_URL", help="The address of an OpenAI API, which ends with /v1."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="The model. Default: the only one, the server's default, or its first.")
    ] = None,
    api_key: Annotated[str | None, typer.Option(envvar="DRAGOMAN_API_KEY", help="The API key to send.")] = None,
    config: ConfigFile = None,
    env_file: EnvFile = None,
) -> None:
    """Talk to a model. Without --base-url, the proxy on http://127.0.0.1:8080 answers. If none runs there, or --config
    is given, a proxy that runs during the conversation answers."""
    from .client import ChatClient, ChatError
    from .conversation import choose_model, converse, print_answer
    from .temporary_proxy import run_temporary_proxy

    def talk(client: ChatClient) -> None:
        name = model or choose_model(client)
        if question is not None:
            print_answer(client, name, [{"role": "user", "content": question}])
        else:
            converse(client, name)

    try:
        client = ChatClient(base_url or DEFAULT_URL, api_key)
        if base_url is not None or (config is None and client.is_reachable()):
            return talk(client)
        with exit_on_config_errors():
            checked = load_configuration(config, read_environment(env_file, config), insecure=False)
        with run_temporary_proxy(checked.config) as url:
            talk(ChatClient(f"{url}/v1", api_key))
    except ValueError as error:
        exit_with_error(str(error))
    except ChatError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(error.exit_status) from None
