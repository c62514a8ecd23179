"""One run of learning on the command line: cost, consent, questions, and what is known if it is interrupted."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

import typer

from dragoman.contract.learning.findings import Findings
from dragoman.contract.learning.learner import Learner, LearnError, forecast_cost
from dragoman.contract.pacing import Pacer
from dragoman.contract.transport import HttpTransport
from dragoman.proxy.cli.options import exit_with_error
from dragoman.proxy.cli.terminal import remove_controls
from dragoman.proxy.config.header_values import BAD_SECRET_HINT, explain_bad_secret

from .options import AskOptions

__all__ = ["Question", "ask_endpoint", "exit_on_interruption", "read_key"]

_UNREACHABLE, _INTERRUPTED = 3, 130
_BY_USER = "interrupted by the user"


@dataclass(frozen=True)
class Question:
    """Which endpoint to ask, and what of it is known."""

    url: str
    dialect: str = ""
    model: str = ""
    key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def read_key(variable: str | None, env: Mapping[str, str]) -> str | None:
    """Read the key from the environment. Exits with status 2 if the variable is not set, or no header can hold its
    value."""
    if not variable:
        return None
    key = env.get(variable, "").strip()
    if not key:
        exit_with_error(f"the environment variable {variable} is not set")
    if (problem := explain_bad_secret(key, variable)) is not None:
        exit_with_error(f"{problem}; {BAD_SECRET_HINT}")
    return key


def ask_endpoint(question: Question, options: AskOptions) -> Findings:
    """Show the cost, ask whether to begin, and learn. If the run is interrupted, `interrupted` of the result says so.
    Exits with status 3 if nothing can be learned."""
    _show_cost(question, options)
    transport = HttpTransport(options.timeout, verify_tls=not options.insecure)
    learner = Learner(
        question.url,
        transport,
        Pacer(options.delay, options.max_wait),
        key=question.key,
        dialect=question.dialect,
        model=question.model,
        headers=question.headers,
        budget=options.budget,
        say=lambda text: print(f"asking about {text}", file=sys.stderr),
    )
    try:
        asyncio.run(_learn(learner, transport))
    except LearnError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        if not learner.findings.protocols:
            raise
        learner.findings.interrupted = _BY_USER
    return learner.findings


def exit_on_interruption(findings: Findings) -> None:
    """Exit with status 3 if the endpoint, or with 130 if the user ended the run before its end."""
    if findings.interrupted:
        raise typer.Exit(_INTERRUPTED if findings.interrupted == _BY_USER else _UNREACHABLE)


async def _learn(learner: Learner, transport: HttpTransport) -> None:
    try:
        await learner.learn()
    finally:
        await transport.close()


def _show_cost(question: Question, options: AskOptions) -> None:
    """Show what learning costs. Exits if that is all, or if the user does not want to begin."""
    cost = forecast_cost(question.url, question.dialect)
    limit = f"; --budget ends it at {options.budget} tokens" if options.budget is not None else ""
    print(
        f"This sends about {cost.requests} requests with {cost.tokens} tokens, read and written, to {question.url};"
        f"\nif it refuses much, up to {cost.most_requests} requests and {cost.most_tokens} tokens. The counts of tokens"
        f" are estimates{limit}.",
        file=sys.stderr,
    )
    if options.dry_run:
        raise typer.Exit
    if options.yes:
        return
    if not sys.stdin.isatty():
        exit_with_error("there is no terminal to ask whether to begin: add --yes")
    typer.confirm("Begin?", abort=True, err=True)


def _fail(text: str) -> NoReturn:
    print(f"error: {remove_controls(text)}", file=sys.stderr)
    raise typer.Exit(_UNREACHABLE)
