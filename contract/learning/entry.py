"""The provider entry: a configuration file with what is known, each setting below the exchange that shows it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dragoman.contract.dialects import load_dialect
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.contract.texts import to_line
from dragoman.schemas import load

from .findings import LACKING, UNKNOWN_FIELD, Evidence, Finding, Findings

__all__ = ["EntryNames", "derive_settings", "render_entry"]

_LIMIT_NAMES = ("max_tokens", "max_completion_tokens")
_MOST_MODELS = 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,200}")
"""Names of models that need no care in a configuration."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._:/@-]+|\.{2,}")
_RANKS = {"refused": 0, "crashes": 0, "accepted": 2}
"""How well a name of the limit works; 1 for anything else."""


class EntryNames(NamedTuple):
    """The name of the provider, the variable that has its key (empty if it needs none), and further headers."""

    provider: str
    key_variable: str = ""
    headers: Mapping[str, str] = {}


def derive_settings(findings: Findings) -> JsonObject:
    """Derive the settings of the provider and its target: only what is known, and differs from the default."""
    settings: JsonObject = {
        "dialect": findings.dialect,
        "base_url": findings.base_url,
        "profile": findings.get("profile"),
        "protocols": findings.protocols,
        "reasoning_tags": findings.get("reasoning_tags"),
        "limits.inputs": findings.get("limits.inputs"),
        "lacks": sorted({field for _, field, role in _sort_fields(findings) if role == "lacks"}),
        "takes": sorted({field for _, field, role in _sort_fields(findings) if role == "takes"}),
        "max_tokens_name": _choose_limit_name(findings),
    }
    return {key: value for key, value in settings.items() if value not in (None, [])}


def _sort_fields(findings: Findings) -> Iterator[tuple[str, str, str]]:
    """The protocol and the name of each field that a setting lists, and the setting: `lacks` or `takes`.

    The settings are for all protocols, so a field is lacking only if none accepts it. What the dialect's API lacks
    matters only if dragoman sends it all the same, and else only if it is accepted."""
    data, profile = load_dialect(findings.dialect), findings.get("profile") or "actual"
    accepted = {name.partition(".")[2] for name, one in findings.list_below("fields") if one.value == "accepted"}
    for name, finding in findings.list_below("fields"):
        protocol, _, field = name.partition(".")
        if field in (*_LIMIT_NAMES, UNKNOWN_FIELD):
            continue
        known = field in _list_fields(findings.dialect, protocol, profile)
        if finding.value in LACKING and field not in accepted and (known or data.extensions):
            yield protocol, field, "lacks"
        elif finding.value == "accepted" and not (known or data.extensions) and _refuses_unknown(findings, protocol):
            yield protocol, field, "takes"


def _refuses_unknown(findings: Findings, protocol: str) -> bool:
    return bool(findings.get(f"fields.{protocol}.{UNKNOWN_FIELD}") == "refused")


def _list_fields(dialect: str, protocol: str, profile: str = "actual") -> Sequence[str]:
    return list(load(f"{dialect}/{protocol}.request", profile)["properties"])


def _choose_limit_name(findings: Findings) -> str | None:
    """The name of the limit on tokens, if one of the two works and the other one does not."""
    values = {name: findings.get(f"fields.chat.{name}") for name in _LIMIT_NAMES}
    ranks = {name: _RANKS.get(str(value), 1) for name, value in values.items()}
    better = max(_LIMIT_NAMES, key=lambda name: ranks[name])
    worse = next(name for name in _LIMIT_NAMES if name != better)
    if values[worse] not in LACKING or ranks[better] <= ranks[worse]:
        return None
    is_default = better == _LIMIT_NAMES[0] and _LIMIT_NAMES[1] not in _list_fields(findings.dialect, "chat")
    return None if is_default else better


def render_entry(findings: Findings, names: EntryNames, command: str) -> str:
    """Render the file. `command` is the one that made it."""
    parts = (_write_head(findings, command), _write_provider(findings, names), _write_models(findings, names))
    return "\n".join(line for part in (*parts, _write_rest(findings)) for line in part) + "\n"


def _write_head(findings: Findings, command: str) -> Iterator[str]:
    cost = f"{findings.requests} requests, about {findings.tokens} tokens"
    yield f"# Learned on {findings.started[:10]} by: {to_line(command)}"
    yield f"# It took {cost}. A comment is the exchange that shows the line below it: what was sent -> what came back."
    if findings.interrupted:
        yield f"# Not complete: {to_line(findings.interrupted)}"


def _write_provider(findings: Findings, names: EntryNames) -> Iterator[str]:
    settings = derive_settings(findings)
    yield "providers:"
    yield f"  {_scalar(names.provider)}:"
    yield from _write_evidence(findings.facts.get("dialect"), 4)
    yield f"    dialect: {findings.dialect}"
    yield f"    base_url: {_scalar(findings.base_url)}"
    if names.key_variable:
        yield f"    api_key: ${{{names.key_variable}}}"
    if names.headers:
        yield f"    headers: {_flow(dict(names.headers))}"
    for name in ("profile", "reasoning_tags"):
        if name in settings:
            yield from _write_evidence(findings.facts.get(name), 4)
            yield f"    {name}: {_scalar(settings[name])}"
    for name, finding in findings.list_below("protocols"):
        yield from _write_evidence(finding, 4, f"{name}: ")
    yield f"    protocols: {_flow(settings.get('protocols', []))}"
    if "limits.inputs" in settings:
        yield from _write_evidence(findings.facts.get("limits.inputs"), 4)
        yield f"    limits: {{inputs: {settings['limits.inputs']}}}"


def _write_models(findings: Findings, names: EntryNames) -> Iterator[str]:
    settings = derive_settings(findings)
    yield "models:"
    yield f"  {_scalar(_name_publicly(findings.model) or names.provider)}:"
    yield "    targets:"
    yield f"      - provider: {_scalar(names.provider)}"
    yield f"        model: {_scalar(findings.model)}"
    for name in ("lacks", "takes"):
        if name in settings:
            yield from _write_field_evidence(findings, name)
            yield f"        {name}: {_flow(settings[name])}"
    if "max_tokens_name" in settings:
        for name in _LIMIT_NAMES:
            finding = findings.facts.get(f"fields.chat.{name}")
            yield from _write_evidence(finding, 8, f"{name} {finding.value if finding else ''}: ")
        yield f"        max_tokens_name: {settings['max_tokens_name']}"
    yield from _write_other_models(findings, names)


def _name_publicly(model: str) -> str:
    """A name that a configuration may have for a model whose own name is a path, or has spaces."""
    return model if _NAME.fullmatch(model) else _NOT_IN_NAMES.sub("-", model).strip("._:/@-")[:200]


def _write_field_evidence(findings: Findings, setting: str) -> Iterator[str]:
    """Write what shows each field of a setting: one line for all fields that one exchange shows, and one for all that
    are refused as any unknown field is."""
    fields: dict[tuple[str, JsonValue, Evidence | None], list[str]] = {}
    for protocol, field, role in _sort_fields(findings):
        finding = findings.facts[f"fields.{protocol}.{field}"]
        is_extra = field not in _list_fields(findings.dialect, protocol) and _refuses_unknown(findings, protocol)
        if role == setting and is_extra and finding.value == "refused":
            control = findings.facts[f"fields.{protocol}.{UNKNOWN_FIELD}"]
            fields[protocol, "refused", control.evidence] = ["any unknown field"]
        elif role == setting:
            fields.setdefault((protocol, finding.value, finding.evidence), []).append(field)
    for (_, value, evidence), names in fields.items():
        yield from _write_evidence(Finding(value, evidence), 8, f"{', '.join(names)} {value}: ")


def _write_other_models(findings: Findings, names: EntryNames) -> Iterator[str]:
    listed = findings.get("models") or []
    others = [name for name in listed if name != findings.model and _NAME.fullmatch(name)]
    if not others:
        return
    yield from _write_evidence(findings.facts.get("models"), 2)
    yield f"  # What is learned is about {findings.model}; these were not asked:"
    for name in others[:_MOST_MODELS]:
        yield f"  {_scalar(name)}: {{targets: [{{provider: {_scalar(names.provider)}}}]}}"
    if len(others) > _MOST_MODELS:
        yield f"  # ... and {len(others) - _MOST_MODELS} more"


def _write_rest(findings: Findings) -> Iterator[str]:
    values = list(findings.list_below("values"))
    if values:
        yield "# Values that it rejects, although it has the field:"
        for name, finding in values:
            yield from _write_evidence(finding, 0, f"{name.split('.')[1]} {finding.value}: ")
    quirks = dict(findings.list_below("quirks"))
    if quirks:
        yield "# Quirks, which dragoman repairs (docs/quirks.md):"
        for name, finding in quirks.items():
            shown = f" ({to_line(finding.evidence.received)})" if finding.evidence else ""
            yield f"# - {name}: {to_line(str(finding.value))}{shown}"
    if findings.unknown:
        yield "# Not known:"
        for why, some in _group_reasons(findings.unknown).items():
            yield f"# - {', '.join(some)}: {to_line(why)}"


def _group_reasons(unknown: Mapping[str, str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name, why in unknown.items():
        groups.setdefault(why, []).append(name.removeprefix("fields."))
    return groups


def _write_evidence(finding: Finding | None, indent: int, label: str = "") -> Iterator[str]:
    if finding is not None and finding.evidence is not None:
        yield " " * indent + f"# {label}{_describe(finding.evidence)}"


def _describe(evidence: Evidence) -> str:
    return to_line(f"{evidence.sent} -> {evidence.received}")


def _scalar(value: JsonValue) -> str:
    """YAML for a text or another scalar: as it is if that is safe, else in quotes."""
    text = str(value) if isinstance(value, str) else json.dumps(value)
    plain = text.replace("-", "").replace("_", "").isalnum() and text[:1].isalpha() and isinstance(value, str)
    reserved = text.lower() in ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
    return text if not isinstance(value, str) or (plain and text.isascii() and not reserved) else json.dumps(text)


def _flow(value: JsonValue) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    return "[" + ", ".join(_flow(item) for item in value) + "]" if isinstance(value, list) else _scalar(value)
