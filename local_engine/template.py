"""A folder's chat template: a conversation to the prompt's text, in the sandbox of `sandbox`."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any, NoReturn

from jinja2.exceptions import SecurityError, TemplateError

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault

from .places import FolderError
from .sandbox import Bounds, Budget, Environment, spending

__all__ = ["ChatTemplate"]

LONGEST = 1_000_000
TOKENS = ("bos_token", "eos_token", "pad_token", "unk_token")


class Objection(TemplateError):
    """The template itself refuses the conversation."""


class ChatTemplate:
    """A compiled template. `tokenizer_config` names the special tokens that it may write."""

    def __init__(
        self, source: str, tokenizer_config: Mapping[str, Any] | None = None, bounds: Bounds | None = None
    ) -> None:
        """Raises FolderError for a template that is no Jinja, or that is refused already on a plain greeting."""
        self.source = source
        self._bounds = bounds or Bounds()
        self._tokens = {name: _token(tokenizer_config or {}, name) for name in TOKENS}
        if len(source) > LONGEST:
            raise FolderError(f"the chat template has more than {LONGEST} characters")
        environment = Environment()
        environment.filters["tojson"] = _tojson
        environment.globals |= {"raise_exception": _object, "strftime_now": _now}
        self._compiled = self._guarded(lambda: environment.from_string(source))
        self._probe()

    def render(self, messages: list[JsonObject], tools: list[JsonObject] | None = None, **more: Any) -> str:
        """The prompt. Raises Fault: the conversation's, where the template objects to it, else an internal one."""
        given = {**self._tokens, "documents": None, "add_generation_prompt": True, **more}
        token = spending.set(Budget(self._bounds))
        try:
            return "".join(self._compiled.generate(**given, messages=messages, tools=tools))
        except Objection as error:
            message = f"the model's chat template refuses the conversation: {error.message}"
            raise Fault("invalid_request", message, ("messages",)) from None
        except SecurityError as error:
            raise Fault("internal", f"the chat template is refused: {error.message}", code="template_refused") from None
        except (RecursionError, MemoryError) as error:
            message = f"the chat template is refused: {_said(error)}"
            raise Fault("internal", message, code="template_refused") from None
        except Exception as error:  # whatever a template may come to
            message = f"the model's chat template cannot render this conversation: {_said(error)}"
            raise Fault("invalid_request", message, ("messages",), code="template_failed") from error
        finally:
            spending.reset(token)

    def _probe(self) -> None:
        try:
            self.render([{"role": "user", "content": "hello"}])
        except Fault as fault:
            if fault.code == "template_refused":
                raise FolderError(fault.message) from None

    def _guarded(self, make: Any) -> Any:
        try:
            return make()
        except (TemplateError, SyntaxError, RecursionError, MemoryError, ValueError) as error:
            raise FolderError(f"the chat template is not valid Jinja: {_said(error)}") from None


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _token(config: Mapping[str, Any], name: str) -> str:
    value = config.get(name)
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else ""


def _tojson(value: Any, indent: int | None = None, ensure_ascii: bool = False, **more: Any) -> str:
    """JSON as models were trained on: spaces after separators, no escapes for HTML."""
    if indent is not None and not 0 <= indent <= 16:
        raise SecurityError("tojson takes an indent up to 16")
    known = {key: value for key, value in more.items() if key in ("separators", "sort_keys")}
    budget = spending.get()
    budget.step(budget.weight(value))
    text = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **known)
    budget.fits(len(text))
    return text


def _object(message: object) -> NoReturn:
    raise Objection(str(message))


def _now(form: str) -> str:
    if len(form) > 100:
        raise SecurityError("strftime_now takes a form of up to 100 characters")
    return datetime.datetime.now().strftime(form)
