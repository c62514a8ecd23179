"""The command `drift`: it asks a learned endpoint again, and tells what has changed."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from dragoman.contract.option_groups import expand_groups
from dragoman.proxy.cli.options import exit_on_config_errors, exit_with_error, read_environment
from dragoman.proxy.cli.terminal import remove_controls

from .options import AskOptions

if TYPE_CHECKING:
    from dragoman.contract.learning.drift import Drift
    from dragoman.contract.learning.findings import Findings
    from dragoman.proxy.config.models import Config, TargetChoice

    from .session import Question

__all__ = ["drift"]

CHANGED = 1


@dataclass(frozen=True)
class KnownOptions:
    """What was learned before."""

    file: Annotated[Path, typer.Argument(help="A report of learn --json, or a configuration with the provider.")]
    provider: Annotated[str, Option(help="The provider, if the configuration has several.")] = ""
    model: Annotated[str, Option(help="The model to ask, if the configuration has several.")] = ""
    api_key_env: Annotated[
        str | None, Option(help="The environment variable with the key, for a report; it has none.")
    ] = None


@expand_groups
def drift(known: KnownOptions, ask: AskOptions) -> None:
    """Ask a learned endpoint again, and show what has changed. It is a diff. Exit status: 0 nothing, 1 something."""
    from dragoman.contract.learning.drift import compare_findings, compare_settings, render_diff

    from .files import check_output, write_atomically
    from .session import ask_endpoint, exit_on_interruption

    if ask.json_file is not None and not ask.dry_run:
        check_output(ask.json_file, overwrite=ask.force)
    content = _read_json(known.file)
    if content is not None:
        old, question = _read_report(known, content)
    else:
        settings, question = _read_configuration(known, ask.insecure)
    new = ask_endpoint(question, ask)
    result = compare_settings(settings, new) if content is None else compare_findings(old, new)
    if ask.json_file is not None:
        text = json.dumps({**result.to_json(), "report": new.to_json()}, indent=1)
        write_atomically(ask.json_file, text + "\n", overwrite=ask.force)
    if str(ask.json_file) != "-":
        shown = render_diff(result, str(known.file), f"{new.base_url} on {new.started[:10]}")
        print(remove_controls(shown), end="")
    _print_notes(result, new)
    exit_on_interruption(new)
    raise typer.Exit(CHANGED if result.differences else 0)


def _read_json(file: Path) -> Any:
    """Read the file as JSON; None if it is none. Exits with status 2 if it cannot be read."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        exit_with_error(f"cannot read {file}: {getattr(error, 'strerror', None) or error}")
    try:
        return json.loads(text)
    except ValueError:
        return None


def _read_report(known: KnownOptions, content: Any) -> tuple[Findings, Question]:
    from dragoman.contract.learning.findings import Findings, InvalidFindingsError

    from .session import Question, read_key

    try:
        old = Findings.from_json(content)
    except InvalidFindingsError as error:
        exit_with_error(f"{known.file}: {error}")
    key = read_key(known.api_key_env, read_environment(None, known.file))
    return old, Question(old.base_url, old.dialect, known.model or old.model, key)


def _read_configuration(known: KnownOptions, insecure: bool) -> tuple[dict[str, Any], Question]:
    """Read the settings of the provider and of its target."""
    from dragoman.proxy.config.load import check

    from .session import Question, read_key

    with exit_on_config_errors():
        env = read_environment(None, known.file)
        config = check(known.file, env, insecure=insecure).config
    name, model, target = _choose_target(config, known)
    provider = config.providers[name]
    if not provider.dialect or not provider.base_url:
        exit_with_error(f"the provider {name} has no address to ask")
    settings: dict[str, Any] = {
        "dialect": provider.dialect,
        "profile": provider.profile,
        "protocols": provider.protocols,
        "reasoning_tags": provider.reasoning_tags or None,
        "limits.inputs": provider.limits.inputs,
        "lacks": target.lacks,
        "takes": target.takes,
        "max_tokens_name": target.max_tokens_name,
    }
    key = provider.api_key.get_secret_value() if provider.api_key else read_key(known.api_key_env, env)
    return settings, Question(provider.base_url, provider.dialect, model, key, provider.headers)


def _choose_target(config: Config, known: KnownOptions) -> tuple[str, str, TargetChoice]:
    """Choose the provider, the model's name there, and the target. Exits with status 2 if there is no one choice."""
    found = [
        (target.provider, target.model if target.model and target.model != "*" else name, target)
        for name, model in config.models.items()
        for target in model.targets
        if known.provider in ("", target.provider)
    ]
    providers = sorted({name for name, _, _ in found})
    if len(providers) != 1:
        exit_with_error(f"name the provider with --provider: {', '.join(providers or config.providers)}")
    if known.model:
        named = [one for one in found if one[1] == known.model]
        return named[0] if named else (providers[0], known.model, found[0][2])
    if "*" in found[0][1]:
        exit_with_error(f"{found[0][1]} is a pattern: name a model with --model")
    return found[0]


def _print_notes(result: Drift, new: Findings) -> None:
    for note in result.notes:
        print(f"note: {remove_controls(note)}", file=sys.stderr)
    if not result.differences and not new.interrupted:
        print("nothing has changed", file=sys.stderr)
