"""Checks of models: whether every name exists, and whether the fallbacks end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from dragoman.adapters.registry import dialects
from dragoman.schemas import load, names

from .document import Document, Node, did_you_mean
from .names import find_common_name, match, matches
from .problems import Severity

__all__ = ["check_models"]

_HUB = re.compile(r"hub/\w+\.request")


def check_models(document: Document) -> None:
    """Check the models, the default model, and the models that keys may use."""
    models = document.mapping("models")
    node = document.find(("models",))
    if node is None or node.value == {}:
        hint = "add a model with a target, as in `dragoman init`"
        document.add_problem(
            ("models",), "no-models", "there are no models: clients cannot request anything", hint=hint
        )
    for name in models:
        for position, _ in enumerate(document.items("models", name, "targets")):
            _check_target(document, name, position)
        _check_weights(document, name)
        _check_hedge(document, name)
        for position, node in enumerate(document.items("models", name, "fallbacks")):
            _check_model_name(document, ("models", name, "fallbacks", position), node)
        for reason in document.mapping("models", name, "fallbacks_for"):
            for position, node in enumerate(document.items("models", name, "fallbacks_for", reason)):
                _check_model_name(document, ("models", name, "fallbacks_for", reason, position), node)
    for cycle in _find_cycles(_fallback_edges(document, models)):
        _report_cycle(document, cycle)
    _check_model_name(document, ("server", "default_model"), document.find(("server", "default_model")))
    for position, _ in enumerate(document.items("keys")):
        _check_key_models(document, ("keys", position, "models"))
    _check_overlaps(document, [name for name in models if "*" in name])
    if all(problem.severity == "warning" for problem in document.problems):  # a wrong name leaves the right one unused
        _check_unused_providers(document)


def _check_target(document: Document, model: str, position: int) -> None:
    path = ("models", model, "targets", position)
    provider = document.text(*path, "provider")
    known = document.mapping("providers")
    if provider is not None and provider not in known and not document.is_broken("providers"):
        _report_unknown(document, (*path, "provider"), "provider", "providers", known)
    dialect = dialects.get(document.text("providers", provider, "dialect") or "") if provider in known else None
    if dialect is not None and dialect.deployment_header is None and document.text(*path, "deployment"):
        owners = " and ".join(name for name, one in dialects.items() if one.deployment_header)
        message = f"deployment is for the dialect {owners} only; {provider}'s is {dialect.name}"
        document.add_problem((*path, "deployment"), "wrong-dialect", message, hint="remove it", at_key=True)
    _check_strip(document, path, model)
    _check_parameters(document, path)


def _check_parameters(document: Document, path: tuple[str | int, ...]) -> None:
    """Check that the parameters that a target lacks or takes exist, and do not contradict one another."""
    known = {field for name in names() if _HUB.fullmatch(name) for field in load(name)["properties"]}
    lacks = [node.value for node in document.items(*path, "lacks")]
    for key in ("lacks", "takes"):
        for index, node in enumerate(document.items(*path, key)):
            place = (*path, key, index)
            if not isinstance(node.value, str) or node.broken:
                continue
            if node.value not in known:
                severity: Severity = "warning" if key == "takes" else "error"  # a server may have parameters of its own
                message, hint = f'there is no parameter "{node.source_text}"', did_you_mean(node.value, known)
                document.add_problem(place, "unknown-parameter", message, hint=hint, severity=severity)
            elif key == "takes" and node.value in lacks:
                message, hint = f"the target lacks {node.source_text}", "remove it from lacks or from takes"
                document.add_problem(place, "conflicting-parameters", message, hint=hint)
    name = document.text(*path, "max_tokens_name")
    if name is not None and name in lacks:
        message = f"the target lacks {name}"
        document.add_problem((*path, "max_tokens_name"), "conflicting-parameters", message, hint="remove it from lacks")


def _check_overlaps(document: Document, patterns: Sequence[str]) -> None:
    """Warn of names that two patterns match although neither pattern is a special case of the other."""
    for one, other in combinations(patterns, 2):
        name = None if matches(one, other) or matches(other, one) else find_common_name(one, other)
        winner = None if name is None else match(dict.fromkeys((one, other)), name)
        if winner is not None:
            loser = other if winner == one else one
            message = f'"{one}" and "{other}" both match names such as {name}; "{winner}" serves them'
            path, hint = ("models", loser), "name such models one by one, or make a pattern narrower"
            document.add_problem(path, "overlapping-patterns", message, hint=hint, severity="warning", at_key=True)


def _check_unused_providers(document: Document) -> None:
    used = {
        document.text("models", model, "targets", position, "provider")
        for model in document.mapping("models")
        for position, _ in enumerate(document.items("models", model, "targets"))
    }
    for name in document.mapping("providers") if document.mapping("models") else ():
        if name not in used:
            message, hint = f'no model has a target with the provider "{name}"', "add one under models, or remove it"
            path = ("providers", name)
            document.add_problem(path, "unused-provider", message, hint=hint, severity="warning", at_key=True)


def _check_strip(document: Document, path: tuple[str | int, ...], model: str) -> None:
    strip = document.text(*path, "strip")
    if not strip:
        return
    if document.text(*path, "model") not in (None, "*"):
        message = "strip has no effect if model is set"
    elif not model.partition("*")[0].startswith(strip) or "*" not in model:
        message = f'"{model}" is not a pattern that begins with the text of strip'
    else:
        return
    document.add_problem((*path, "strip"), "bad-strip", message, expected="the beginning of a pattern, up to its *")


def _check_weights(document: Document, model: str) -> None:
    targets = document.items("models", model, "targets")
    weights = [document.find(("models", model, "targets", position, "weight")) for position, _ in enumerate(targets)]
    if weights and all(weight is not None and weight.value in (0, "0") for weight in weights):
        path = ("models", model, "targets", 0, "weight")
        document.add_problem(
            path, "no-weight", f'every target of "{model}" has the weight 0', hint="give one a weight above 0"
        )


def _check_hedge(document: Document, model: str) -> None:
    path = ("models", model, "hedge_after")
    if document.text(*path) is not None and len(document.items("models", model, "targets")) < 2:
        message = f'"{model}" has no second target to ask'
        document.add_problem(
            path, "no-hedge", message, hint="add a target, or remove hedge_after", severity="warning", at_key=True
        )


def _check_model_name(document: Document, path: tuple[str | int, ...], node: Node | None) -> None:
    models = document.mapping("models")
    name = document.text(*path)
    if document.is_broken("models"):
        return
    if node is not None and name is not None and "*" not in name and match(models, name) is None:
        _report_unknown(document, path, "model", "models", models)


def _check_key_models(document: Document, path: tuple[str | int, ...]) -> None:
    """Check that each pattern of a key covers a model, or a part of a pattern of models."""
    models = document.mapping("models")
    for position, _ in enumerate(document.items(*path)):
        pattern = document.text(*path, position)
        if pattern and models and not any(matches(pattern, model) or matches(model, pattern) for model in models):
            _report_unknown(document, (*path, position), "model", "models", models)


def _report_unknown(
    document: Document, path: tuple[str | int, ...], kind: str, section: str, known: Mapping[str, Node]
) -> None:
    node = document.find(path)
    shown = node.source_text if node else ""
    hint = did_you_mean(shown, known)
    if hint:
        close = hint.split('"')[1]
        hint = f"{hint} (line {document.line_of(section, close)})"
    expected = f"a name from {section}: {', '.join(known) or 'there are none'}"
    document.add_problem(path, f"unknown-{kind}", f'there is no {kind} "{shown}"', expected=expected, hint=hint)


def _fallback_edges(document: Document, models: Mapping[str, Node]) -> dict[str, list[tuple[str, int]]]:
    """Map each model to the models of its fallbacks, each with its position in the list."""
    edges: dict[str, list[tuple[str, int]]] = {name: [] for name in models}
    for name in models:
        for position, _ in enumerate(document.items("models", name, "fallbacks")):
            following = match(models, document.text("models", name, "fallbacks", position) or "")
            if following is not None:
                edges[name].append((following, position))
    return edges


def _find_cycles(edges: Mapping[str, list[tuple[str, int]]]) -> Iterator[list[tuple[str, int]]]:
    """Find cycles by a depth-first search. A cycle is a list of models, each with the position of the fallback that
    continues the cycle. At least one cycle is found of those that share a step."""
    done: set[str] = set()
    for start in edges:
        steps: list[tuple[str, int]] = []
        stack: list[tuple[str, Iterator[tuple[str, int]]]] = [] if start in done else [(start, iter(edges[start]))]
        while stack:
            name, left = stack[-1]
            following, position = next(left, (None, 0))
            if following is None:
                stack.pop()
                done.add(name)
                steps = steps[:-1]
            elif following in (names := [known for known, _ in stack]):
                begin = names.index(following)
                yield [*steps[begin:], (name, position)]
            elif following not in done:
                steps.append((name, position))
                stack.append((following, iter(edges[following])))


def _report_cycle(document: Document, cycle: list[tuple[str, int]]) -> None:
    name, position = cycle[-1]
    steps = [f"{model} (line {document.line_of('models', model)})" for model, _ in cycle]
    message = f"the fallbacks form a cycle: {' -> '.join([*steps, cycle[0][0]])}"
    document.add_problem(("models", name, "fallbacks", position), "fallback-circle", message, hint="remove one of them")
