"""From a file to a configuration, or to everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .access import judge_access
from .document import Document
from .engines import judge_engines
from .literals import warn_of_literals
from .models import Config
from .problems import ConfigErrors, Problem
from .routes import judge_models
from .shape import shaped
from .source import parse, read
from .storage import judge_store, place_store
from .upstreams import judge_providers, judge_timeouts, place_files
from .variables import put_in

__all__ = ["Checked", "ConfigErrors", "Problem", "check", "check_text", "load"]


@dataclass(frozen=True, slots=True)
class Checked:
    """A configuration that can be used, and the warnings about it."""

    config: Config
    warnings: tuple[Problem, ...]


def load(path: Path, env: Mapping[str, str]) -> Config:
    """The configuration in the file, variables from `env`. Raises ConfigErrors with all problems of the file."""
    return check(path, env).config


def check(path: Path, env: Mapping[str, str], *, insecure: bool = False) -> Checked:
    """`load` that hands over the warnings too. `insecure` is what `serve --insecure` says: what only exposes keys or
    providers to the network is no error then. Raises ConfigErrors."""
    return _judged(read(path), env, path.parent, insecure)


def check_text(text: str, name: str, env: Mapping[str, str], *, insecure: bool = False) -> Checked:
    """`check` for a text that is in no file; `name` stands for the file in problems."""
    return _judged(parse(Document(name, []), text), env, Path(), insecure)


def _judged(document: Document, env: Mapping[str, str], folder: Path, insecure: bool) -> Checked:
    warn_of_literals(document)
    put_in(document, env, folder)
    place_files(document, folder)
    place_store(document, folder)
    config = shaped(document)
    judge_access(document, insecure)
    judge_engines(document)
    judge_providers(document, insecure)
    judge_models(document)
    judge_timeouts(document, "timeouts")
    judge_store(document)
    problems = ConfigErrors(document.problems)
    if config is None or any(problem.severity == "error" for problem in problems.problems):
        raise problems
    return Checked(config, tuple(problems.problems))
