"""Loading and checking: a configuration from a file or a text, or every problem with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from .access import check_access
from .checked_config import CheckedConfig
from .document import Document
from .engines import check_engines
from .litellm import refuse_litellm_file
from .literals import warn_about_literal_secrets
from .local import resolve_model_folders
from .models import Config
from .problems import ConfigErrors, Problem
from .rates import check_rates
from .routes import check_models
from .storage import check_store, resolve_store_path
from .upstreams import check_providers, check_timeouts, resolve_files
from .validation import validate
from .variables import substitute_variables
from .yaml_reader import parse_document, read_document

__all__ = ["CheckedConfig", "ConfigErrors", "Problem", "check", "check_text", "load"]


def load(path: Path, env: Mapping[str, str]) -> Config:
    """Load the file, with variables from `env`. Raises ConfigErrors with every problem of the file."""
    return check(path, env).config


def check(path: Path, env: Mapping[str, str], *, insecure: bool = False) -> CheckedConfig:
    """Load the file, and return the warnings too. `insecure`, as in `serve --insecure`, allows settings that only
    expose keys or providers to the network. Raises ConfigErrors."""
    checked = _check_document(read_document(path), env, path.parent, insecure)
    return replace(checked, files=(path, *checked.files))


def check_text(text: str, name: str, env: Mapping[str, str], *, insecure: bool = False) -> CheckedConfig:
    """As `check`, for a text without a file. Problems show `name` as the file's name."""
    return _check_document(parse_document(Document(name, []), text), env, Path(), insecure)


def _check_document(document: Document, env: Mapping[str, str], folder: Path, insecure: bool) -> CheckedConfig:
    refuse_litellm_file(document)
    warn_about_literal_secrets(document)
    substitute_variables(document, env, folder)
    resolve_files(document, folder)
    resolve_store_path(document, folder)
    resolve_model_folders(document, folder)
    config = validate(document)
    check_access(document, insecure)
    check_engines(document)
    check_providers(document, insecure)
    check_models(document)
    check_rates(document)
    check_timeouts(document, "timeouts")
    check_store(document)
    problems = ConfigErrors(document.problems, document.files)
    if config is None or any(problem.severity == "error" for problem in problems.problems):
        raise problems
    files = (*document.files, *_list_certificates(config))
    return CheckedConfig(config, tuple(problems.problems), files, document.describe())


def _list_certificates(config: Config) -> list[Path]:
    given = [provider.tls for provider in config.providers.values()]
    return [Path(path) for tls in given for path in (tls.ca, tls.cert, tls.key) if path is not None]
