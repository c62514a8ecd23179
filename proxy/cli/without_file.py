"""The configuration of a proxy without a file: from the environment, or why there is none."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import wrap

from dragoman.local_engine import embedded
from dragoman.proxy.config.checked_config import CheckedConfig
from dragoman.proxy.config.environment import describe_variables, find_incomplete_variables, load_from_environment
from dragoman.proxy.config.models import Config

from .options import DEFAULT_FILE, exit_with_error

__all__ = ["explain_missing_configuration", "load_without_file"]

_WIDTH = 120
_NO_ENGINE = f"""
Or install the local engine, which serves a small model at once: {embedded.INSTALL}"""


def load_without_file(env: dict[str, str], insecure: bool) -> CheckedConfig:
    """Build the configuration that the variables describe, and print where it comes from. Raises ConfigErrors. Exits
    with status 2 if they describe none."""
    for hint in find_incomplete_variables(env):
        print(f"note: {hint}", file=sys.stderr)
    config = load_from_environment(env, insecure=insecure, embedded=embedded.can_answer())
    if config is None:
        exit_with_error(
            f"there is nothing to serve: no {DEFAULT_FILE} in {Path.cwd()}, and {explain_missing_configuration()}"
        )
    print(f"no {DEFAULT_FILE} here; {_describe_origin(config)}", file=sys.stderr)
    return CheckedConfig(config, ())


def explain_missing_configuration() -> str:
    """Why there is no configuration, and how to get one."""
    ways = f"Write a file (dragoman init) or name one (--config FILE); or set {describe_variables()}."
    lines = ["no provider in the environment.", *wrap(ways, _WIDTH)]
    return "\n".join(lines) + _NO_ENGINE * bool(embedded.missing_libraries())


def _describe_origin(config: Config) -> str:
    """Where a configuration without a file comes from."""
    providers = [name for name, provider in config.providers.items() if provider.engine is None]
    if not providers:
        return f"no provider in the environment either, so {embedded.NAME} answers"
    return f"from the environment: {', '.join(providers)}"
