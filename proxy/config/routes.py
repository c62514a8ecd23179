"""Checks of models: their targets, weights and fallbacks, and the names that refer to models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dragoman.schemas import load, names

from .document import Document, Node, did_you_mean
from .names import match, matches

__all__ = ["judge_models"]

_HUB = re.compile(r"hub/\w+\.request")


def judge_models(document: Document) -> None:
    models = document.mapping("models")
    node = document.find(("models",))
    if node is None or node.value == {}:
        hint = "add a model with a target, as in `dragoman init`"
        document.add(("models",), "no-models", "there are no models, so no request can be served", hint=hint)
    for name in models:
        for position, _ in enumerate(document.items("models", name, "targets")):
            _judge_target(document, name, position)
        _judge_weights(document, name)
        for position, node in enumerate(document.items("models", name, "fallbacks")):
            _judge_model_name(document, ("models", name, "fallbacks", position), node)
    for circle in _circles(_edges(document, models)):
        _report_circle(document, circle)
    _judge_model_name(document, ("server", "default_model"), document.find(("server", "default_model")))
    for position, _ in enumerate(document.items("keys")):
        _judge_visible(document, ("keys", position, "models"))


def _judge_target(document: Document, model: str, position: int) -> None:
    path = ("models", model, "targets", position)
    provider = document.text(*path, "provider")
    known = document.mapping("providers")
    if provider is not None and provider not in known:
        _unknown(document, (*path, "provider"), "provider", "providers", known)
    dialect = document.text("providers", provider, "dialect") if provider in known else None
    if dialect not in (None, "azure") and document.text(*path, "deployment"):
        message = f"deployment is for the dialect azure only; {provider}'s is {dialect}"
        document.add((*path, "deployment"), "wrong-dialect", message, hint="remove it", at_key=True)
    _judge_strip(document, path, model)
    fields = {field for name in names() if _HUB.fullmatch(name) for field in load(name)["properties"]}
    for index, node in enumerate(document.items(*path, "lacks")):
        if isinstance(node.value, str) and node.value not in fields and not node.broken:
            hint = did_you_mean(node.value, fields)
            message = f'there is no parameter "{node.source_text}"'
            document.add((*path, "lacks", index), "unknown-parameter", message, hint=hint)


def _judge_strip(document: Document, path: tuple[str | int, ...], model: str) -> None:
    strip = document.text(*path, "strip")
    if not strip:
        return
    if document.text(*path, "model") not in (None, "*"):
        message = "strip has no effect if model is set"
    elif not model.partition("*")[0].startswith(strip) or "*" not in model:
        message = f'"{model}" is not a pattern that begins with the text of strip'
    else:
        return
    document.add((*path, "strip"), "bad-strip", message, expected="the beginning of a pattern, up to its *")


def _judge_weights(document: Document, model: str) -> None:
    targets = document.items("models", model, "targets")
    weights = [document.find(("models", model, "targets", position, "weight")) for position, _ in enumerate(targets)]
    if weights and all(weight is not None and weight.value in (0, "0") for weight in weights):
        path = ("models", model, "targets", 0, "weight")
        document.add(path, "no-weight", f'every target of "{model}" has the weight 0', hint="give one a weight above 0")


def _judge_model_name(document: Document, path: tuple[str | int, ...], node: Node | None) -> None:
    models = document.mapping("models")
    name = document.text(*path)
    if node is not None and name is not None and "*" not in name and match(models, name) is None:
        _unknown(document, path, "model", "models", models)


def _judge_visible(document: Document, path: tuple[str | int, ...]) -> None:
    """Add a problem for each pattern of a key that matches no model."""
    models = document.mapping("models")
    for position, _ in enumerate(document.items(*path)):
        pattern = document.text(*path, position)
        if pattern and models and not any(matches(pattern, model) or matches(model, pattern) for model in models):
            _unknown(document, (*path, position), "model", "models", models)


def _unknown(
    document: Document, path: tuple[str | int, ...], kind: str, section: str, known: Mapping[str, Node]
) -> None:
    node = document.find(path)
    shown = node.source_text if node else ""
    hint = did_you_mean(shown, known)
    if hint:
        close = hint.split('"')[1]
        hint = f"{hint} (line {document.line_of(section, close)})"
    expected = f"a name from {section}: {', '.join(known) or 'there are none'}"
    document.add(path, f"unknown-{kind}", f'there is no {kind} "{shown}"', expected=expected, hint=hint)


def _edges(document: Document, models: Mapping[str, Node]) -> dict[str, list[tuple[str, int]]]:
    """For each model the models that its fallbacks lead to, and their positions in the list."""
    edges: dict[str, list[tuple[str, int]]] = {name: [] for name in models}
    for name in models:
        for position, _ in enumerate(document.items("models", name, "fallbacks")):
            following = match(models, document.text("models", name, "fallbacks", position) or "")
            if following is not None:
                edges[name].append((following, position))
    return edges


def _circles(edges: Mapping[str, list[tuple[str, int]]]) -> Iterator[list[tuple[str, int]]]:
    """The circles of fallbacks, each a list of (model, position of the fallback). Of circles that share a step, at
    least one is found."""
    done: set[str] = set()
    for start in edges:
        walk: list[tuple[str, int]] = []
        waiting: list[tuple[str, Iterator[tuple[str, int]]]] = [] if start in done else [(start, iter(edges[start]))]
        while waiting:
            name, left = waiting[-1]
            following, position = next(left, (None, 0))
            if following is None:
                waiting.pop()
                done.add(name)
                walk = walk[:-1]
            elif following in (names := [known for known, _ in waiting]):
                begin = names.index(following)
                yield [*walk[begin:], (name, position)]
            elif following not in done:
                walk.append((name, position))
                waiting.append((following, iter(edges[following])))


def _report_circle(document: Document, circle: list[tuple[str, int]]) -> None:
    name, position = circle[-1]
    steps = [f"{model} (line {document.line_of('models', model)})" for model, _ in circle]
    message = f"fallbacks go in a circle: {' -> '.join([*steps, circle[0][0]])}"
    document.add(("models", name, "fallbacks", position), "fallback-circle", message, hint="remove one of them")
