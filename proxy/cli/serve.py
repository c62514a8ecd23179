"""The command `serve`: its options, and the configuration that results from them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from .options import (
    DEFAULT_FILE,
    ConfigFile,
    EnvFile,
    Insecure,
    Report,
    exit_on_config_errors,
    load_configuration,
    print_problems,
    read_environment,
)

if TYPE_CHECKING:
    from dragoman.proxy.config.load import CheckedConfig
    from dragoman.proxy.config.models import Config
    from dragoman.proxy.config.problems import Problem

__all__ = ["serve"]


def serve(
    config: ConfigFile = None,
    host: Annotated[str | None, typer.Option(envvar="DRAGOMAN_HOST", help="Instead of server.host.")] = None,
    port: Annotated[
        int | None, typer.Option(envvar="DRAGOMAN_PORT", min=0, max=65535, help="Instead of server.port.")
    ] = None,
    insecure: Insecure = False,
    env_file: EnvFile = None,
    log_format: Annotated[
        Literal["json", "console"] | None,
        typer.Option(envvar="DRAGOMAN_LOG_FORMAT", help="Default: console on a terminal, json elsewhere."),
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        typer.Option(envvar="DRAGOMAN_LOG_LEVEL", help="The lowest level to log."),
    ] = "info",
) -> None:
    """Serve the configured models."""
    from dragoman.proxy.config.envfile import FILE as ENV_FILE

    file = config or (DEFAULT_FILE if DEFAULT_FILE.exists() else None)

    def load(report: Report) -> CheckedConfig:
        checked = load_configuration(file, read_environment(env_file, file, report=report), insecure)
        files = (*checked.files, env_file or (file or DEFAULT_FILE).parent / ENV_FILE)
        return replace(checked, config=_override_address(checked.config, host, port), files=files)

    with exit_on_config_errors():
        checked = load(print_problems)
    print_problems(checked.warnings)
    from dragoman.proxy.http.authorities import defer_authorities

    with defer_authorities():
        from .server_process import run

    form = log_format or ("console" if sys.stderr.isatty() else "json")
    source = None if file is None else partial(_load_again, load)
    status = run(
        checked.config,
        insecure=insecure,
        log_format=form,
        log_level=log_level,
        source=source,
        files=checked.files,
        text=checked.text,
    )
    raise typer.Exit(status)


def _load_again(load: Callable[[Report], CheckedConfig]) -> CheckedConfig:
    """Load the configuration while the proxy runs: what would be printed at the start is among the warnings. Raises
    ConfigErrors."""
    from dragoman.proxy.config.problems import ConfigErrors

    problems: list[Problem] = []
    try:
        checked = load(problems.extend)
    except ConfigErrors as errors:
        raise ConfigErrors([*problems, *errors.problems]) from None
    return replace(checked, warnings=(*problems, *checked.warnings))


def _override_address(config: Config, host: str | None, port: int | None) -> Config:
    """The configuration with the host and port of the command line, if they are given."""
    given: dict[str, Any] = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    return replace(config, server=replace(config.server, **given))
