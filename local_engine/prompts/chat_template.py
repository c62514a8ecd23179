"""Chat templates: render a conversation to the text of a prompt, in the Jinja sandbox of `sandbox`."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any, NoReturn

from jinja2 import Template
from jinja2.exceptions import SecurityError, TemplateError

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.local_engine.model_folder.files import FolderError
from dragoman.local_engine.sandbox import Bounds, Budget, Environment, spending

__all__ = ["ChatTemplate"]

MAX_SOURCE = 1_000_000
SPECIAL_TOKENS = ("bos_token", "eos_token", "pad_token", "unk_token")


class TemplateRejection(TemplateError):
    """The template rejects the conversation with `raise_exception`."""


class ChatTemplate:
    """A compiled template. `tokenizer_config` contains the special tokens that it may use."""

    def __init__(
        self, source: str, tokenizer_config: Mapping[str, Any] | None = None, bounds: Bounds | None = None
    ) -> None:
        """Compile a template. Raises FolderError if it is invalid Jinja, or breaks the sandbox on a plain greeting."""
        self.source = source
        self._bounds = bounds or Bounds()
        self._tokens = {name: _read_token(tokenizer_config or {}, name) for name in SPECIAL_TOKENS}
        if len(source) > MAX_SOURCE:
            raise FolderError(f"the chat template has more than {MAX_SOURCE} characters")
        environment = Environment()
        environment.filters["tojson"] = _write_json
        environment.globals |= {"raise_exception": _raise_exception, "strftime_now": _format_now}
        self._compiled = _compile(environment, source)
        self._check_greeting()

    def render(self, messages: list[JsonObject], tools: list[JsonObject] | None = None, /, **more: Any) -> str:
        """Render the prompt. Raises Fault: `internal` if the sandbox stops the template, else `invalid_request`."""
        given = {**self._tokens, "documents": None, "add_generation_prompt": True, **more}
        token = spending.set(Budget(self._bounds))
        try:
            return "".join(self._compiled.generate(**given, messages=messages, tools=tools))
        except TemplateRejection as error:
            message = f"the model's chat template rejects the conversation: {error.message}"
            raise Fault("invalid_request", message, ("messages",)) from None
        except SecurityError as error:
            raise Fault("internal", f"the chat template is refused: {error.message}", code="template_refused") from None
        except (RecursionError, MemoryError) as error:
            message = f"the chat template is refused: {_describe(error)}"
            raise Fault("internal", message, code="template_refused") from None
        except Exception as error:  # a template can raise anything
            message = f"the model's chat template cannot render this conversation: {_describe(error)}"
            raise Fault("invalid_request", message, ("messages",), code="template_failed") from error
        finally:
            spending.reset(token)

    def _check_greeting(self) -> None:
        try:
            self.render([{"role": "user", "content": "hello"}])
        except Fault as fault:
            if fault.code == "template_refused":
                raise FolderError(fault.message) from None


def _compile(environment: Environment, source: str) -> Template:
    try:
        return environment.from_string(source)
    except (TemplateError, SyntaxError, RecursionError, MemoryError, ValueError) as error:
        raise FolderError(f"the chat template is not valid Jinja: {_describe(error)}") from None


def _describe(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _read_token(config: Mapping[str, Any], name: str) -> str:
    value = config.get(name)
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else ""


def _write_json(value: Any, indent: int | None = None, ensure_ascii: bool = False, **more: Any) -> str:
    """Write JSON as models were trained on: with spaces after separators and no HTML escapes."""
    if indent is not None and not 0 <= indent <= 16:
        raise SecurityError("tojson accepts an indent up to 16")
    known = {key: value for key, value in more.items() if key in ("separators", "sort_keys")}
    budget = spending.get()
    budget.charge(budget.measure(value))
    text = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **known)
    budget.check_size(len(text))
    return text


def _raise_exception(message: object) -> NoReturn:
    raise TemplateRejection(str(message))


def _format_now(time_format: str) -> str:
    if len(time_format) > 100:
        raise SecurityError("strftime_now accepts a format of up to 100 characters")
    return datetime.datetime.now().strftime(time_format)
