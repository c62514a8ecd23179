"""The command `init`: it writes a configuration file for the providers that it finds or asks for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    DEFAULT_FILE,
    exit_on_config_errors,
    exit_with_error,
    format_count,
    read_environment,
    write_new_file,
)

if TYPE_CHECKING:
    from dragoman.adapters.providers import EnvironmentProvider
    from dragoman.proxy.config.models import Config
    from dragoman.proxy.config.starter import StarterProvider

__all__ = ["init"]


def init(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = DEFAULT_FILE,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing: use every provider of the environment.")
    ] = False,
) -> None:
    """Write a configuration file for your providers. It finds them in the environment and in the file .env next to it;
    on a terminal, it asks what to use. The file has comments, and the models that the providers list."""
    from dragoman.local_engine import embedded
    from dragoman.proxy.config.load import check_text
    from dragoman.proxy.config.starter import write_starter

    if file.exists() and not force:
        exit_with_error(f"{file} exists; --force overwrites it")
    with exit_on_config_errors():
        env = read_environment(None, file, must_exist=False)
        chosen, typed = _choose_providers(env, asks=not yes and _has_terminal())
        env |= typed
        has_model = embedded.can_answer()
        if not chosen and not has_model:
            from .without_file import explain_missing_configuration

            exit_with_error(f"there is nothing to write: {explain_missing_configuration()}")
        found = [_describe(provider, env) for provider in chosen]
        first = check_text(write_starter(found, embedded=has_model), str(file), env, insecure=True).config
        text = write_starter([*_add_models(found, first)], embedded=has_model)
        config = check_text(text, str(file), env, insecure=True).config
    write_new_file(file, text, force)
    _keep_variables(file, typed)
    _print_next_steps(file, config)


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _choose_providers(env: Mapping[str, str], *, asks: bool) -> tuple[list[EnvironmentProvider], dict[str, str]]:
    """The providers to use, and the variables that were typed."""
    from dragoman.proxy.config.environment import find_incomplete_variables, find_providers

    from .provider_questions import ask_for_provider, confirm_providers

    for hint in find_incomplete_variables(env):
        print(f"note: {hint}", file=sys.stderr)
    if not asks:
        return find_providers(env), {}
    if chosen := confirm_providers(env):
        return chosen, {}
    answer = ask_for_provider(env)
    return ([], {}) if answer is None else ([answer[0]], answer[1])


def _describe(provider: EnvironmentProvider, env: Mapping[str, str]) -> StarterProvider:
    from dragoman.proxy.config.environment import describe_provider
    from dragoman.proxy.config.starter import StarterProvider

    settings = {**describe_provider(provider, env), "protocols": provider.protocols}
    return StarterProvider(provider.name, settings, provider.patterns)


def _add_models(providers: Sequence[StarterProvider], config: Config) -> Iterable[StarterProvider]:
    """The providers with the models that they list. Prints what each of them says."""
    import asyncio

    from dragoman.proxy.config.starter import MOST_NAMES

    listed = asyncio.run(_list_models(config)) if providers else {}
    for provider in providers:
        names = listed[provider.name]
        if isinstance(names, str):
            print(f"{names}; the file has patterns instead of its models", file=sys.stderr)
            yield provider
            continue
        more = ", more than the file names one by one" if len(names) > MOST_NAMES else ""
        print(f"{provider.name}: {format_count(len(names), 'model')}{more}", file=sys.stderr)
        yield replace(provider, models=names)


async def _list_models(config: Config) -> dict[str, list[str] | str]:
    """The names of each provider's models, or a sentence about why they are not known. All are asked at once."""
    import asyncio

    from dragoman.adapters.faults import Fault
    from dragoman.adapters.registry import dialects
    from dragoman.proxy.routing.providers import ProviderState
    from dragoman.proxy.routing.state import RouterState

    async def ask(provider: ProviderState) -> list[str] | str:
        if provider.catalog is None:
            return f"{provider.name}: its API does not list models"
        try:
            return await provider.catalog.fetch()
        except Fault as fault:
            return fault.message

    state = RouterState(config, dialects)
    try:
        answers = await asyncio.gather(*(ask(provider) for provider in state.providers))
        return dict(zip((provider.name for provider in state.providers), answers, strict=True))
    finally:
        await state.close()


def _keep_variables(file: Path, variables: Mapping[str, str]) -> None:
    """Add variables to the file `.env` next to the configuration, which only its owner may read if it is new."""
    if not variables:
        return
    from dragoman.proxy.config.envfile import FILE, write_variable

    path = file.parent / FILE
    try:
        path.touch(mode=0o600)
        with path.open("a", encoding="utf-8") as stream:
            stream.writelines(write_variable(name, value) for name, value in variables.items())
    except (OSError, ValueError) as error:
        exit_with_error(f"cannot write {path}: {error}; set {', '.join(variables)} in the environment")
    print(f"wrote {path} with {', '.join(variables)}; keep it out of version control")


def _print_next_steps(file: Path, config: Config) -> None:
    from .onboarding import describe_models

    option = "" if file == DEFAULT_FILE else f" --config {file}"
    print(f"wrote {file}; {describe_models(config)}")
    print(f"next: dragoman serve{option}, then dragoman chat in another terminal")
