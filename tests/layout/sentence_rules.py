"""Finds missing docstrings, docstrings that conceal an exception, and words that a reader has to decode."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping

from source_tree import ROOT, Function, is_public, list_functions, read_modules

from dragoman.contract.json_types import JsonValue

__all__ = [
    "STOP_WORDS",
    "docstring_lacks",
    "find_bad_docstrings",
    "find_stop_words",
    "list_comments",
    "list_messages",
    "list_strings",
    "raised_by_function",
]

DIALECT_VERBS = frozenset(
    f"{verb}_{noun}" for verb in ("read", "write") for noun in ("request", "reply", "stream", "fault")
)
"""Documented in adapters/dialect.py, for all dialects."""
STREAM_METHODS = frozenset({"feed", "feed_run", "close", "write", "write_run"})
"""Documented in adapters/streams.py, for all readers, translators and writers."""

STOP_WORDS = re.compile(
    r"\b(told|tells of|stands|lies|beside|mend(s|ed|ing)?|ha(s|ve) no words? for|knows? nothing of|comes? out"
    r"|gives? way|nobody foresaw)\b",
    re.IGNORECASE,
)
MESSAGE_KEYS = frozenset({"x-message", "$comment", "description", "title"})
"""The keys of JSON Schemas that hold sentences of ours."""


def find_bad_docstrings(folder: str) -> Iterator[str]:
    """Public functions without a docstring, or with one that conceals an exception of the function."""
    for module in read_modules(folder):
        raised = raised_by_function(module.tree)
        for node in filter(is_public, list_functions(module.tree)):
            yield from (module.place(node.lineno, f"{node.name}: {lack}") for lack in docstring_lacks(node, raised))


def docstring_lacks(node: Function, raised: Mapping[str, frozenset[str]]) -> Iterator[str]:
    if is_accessor(node) or is_verb(node):
        return
    text = ast.get_docstring(node)
    if text is None:
        yield "no docstring"
        return
    missing = [name for name in sorted(raised[node.name]) if not re.search(rf"\bRaises\b.*\b{name}\b", text, re.DOTALL)]
    if missing:
        yield f"does not say that it raises {', '.join(missing)}"


def is_accessor(node: Function) -> bool:
    return any(isinstance(each, ast.Name) and each.id in ("property", "overload") for each in node.decorator_list)


def is_verb(node: Function) -> bool:
    """Whether the function implements a verb whose contract is documented once, with the verb itself."""
    is_method = bool(node.args.args) and node.args.args[0].arg == "self"
    return node.name in DIALECT_VERBS or (is_method and node.name in STREAM_METHODS)


def raised_by_function(tree: ast.Module) -> Mapping[str, frozenset[str]]:
    """The exceptions that each function of a module raises, by the function's name.

    A `raise Name(...)` counts if the name is a class, or a function of the module annotated to return one; so does one
    in a function of the module that is called by name. Exceptions of other modules' functions are not seen, and what
    the body of a `try` with handlers raises is taken to be handled.
    """
    functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
    makers = {node.name: node.returns.id for node in functions if isinstance(node.returns, ast.Name)}
    raised = {node.name: frozenset[str]() for node in functions}
    calls: dict[str, set[str]] = {name: set() for name in raised}
    for node in functions:
        for each in unhandled(node.body):
            if isinstance(each, ast.Raise) and isinstance(each.exc, ast.Call):
                name = called_name(each.exc)
                name = makers.get(name, name)
                raised[node.name] |= {name} if name[:1].isupper() else set()
            elif isinstance(each, ast.Call):
                calls[node.name] |= {called_name(each)} & raised.keys()
    for _ in raised:
        raised = {name: own.union(*(raised[each] for each in calls[name])) for name, own in raised.items()}
    return raised


def unhandled(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes below the statements, without nested functions and without the bodies of `try` with handlers."""
    for node in body:
        if isinstance(node, Function | ast.ClassDef | ast.Lambda):
            continue
        yield node
        children: Iterable[ast.AST] = ast.iter_child_nodes(node)
        if isinstance(node, ast.Try) and node.handlers:
            children = [*node.handlers, *node.orelse, *node.finalbody]
        yield from unhandled(children)


def called_name(call: ast.Call) -> str:
    """The name in `name(...)` and `self.name(...)`, else an empty string."""
    function = call.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "self":
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def find_stop_words(folder: str) -> Iterator[str]:
    for module in read_modules(folder):
        texts = [*list_strings(module.tree), *list_comments(module.text)]
        yield from (module.place(line, found[0]) for line, text in texts for found in STOP_WORDS.finditer(text))
    for file in sorted((ROOT / folder).rglob("*.json")) if folder == "schemas" else ():
        for text in list_messages(json.loads(file.read_text("utf-8"))):
            yield from (f"{file.relative_to(ROOT)} {found[0]}" for found in STOP_WORDS.finditer(text))


def list_messages(schema: JsonValue) -> Iterator[str]:
    """The sentences of a JSON Schema, at any depth."""
    if isinstance(schema, list):
        for item in schema:
            yield from list_messages(item)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            if key in MESSAGE_KEYS and isinstance(value, str):
                yield value
            else:
                yield from list_messages(value)


def list_strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def list_comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
