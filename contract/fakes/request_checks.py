"""The checks of a service before its model gets a request: key, version, JSON, extra fields, schema.

Each check raises RequestRefusedError with the reply that the dialect's service sends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from itertools import chain
from typing import NoReturn

import jsonschema_rs

from dragoman.contract.dialects import Dialect
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.contract.placeholders import fill_placeholders
from dragoman.schemas import load

from .answers import select_objects
from .errors import Problem, build_json_reply, write_error, write_wrong_version
from .observed_errors import OBSERVED_ERRORS
from .wire import Reply

__all__ = [
    "RequestRefusedError",
    "apply_extras_policy",
    "check_batch",
    "check_key",
    "check_previous_response",
    "check_schema",
    "check_tool_outputs",
    "check_version",
    "check_version_header",
    "parse_body",
    "refuse",
]

_VERSION = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(-preview)?")
_VERSIONED_BY_HEADER = frozenset({"messages", "count_tokens"})


class RequestRefusedError(Exception):
    """The service refuses the request; `reply` goes to the client."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


def refuse(dialect: Dialect, profile: str, problem: Problem) -> NoReturn:
    raise RequestRefusedError(write_error(dialect.name, profile, problem))


def check_key(dialect: Dialect, profile: str, headers: Mapping[str, str], key: str | None) -> None:
    """Check the key. Any header of the dialect may have it; if several do, all must be right."""
    forms = dialect.key if dialect.accepted_keys is None else dialect.accepted_keys
    if key is None or not forms:
        return
    found = [headers[name] == form.format(key=key) for name, form in forms.items() if name in headers]
    if not found or not all(found):
        message = "The key is wrong" if found else f"No key: send it in {' or '.join(forms)}"
        refuse(dialect, profile, Problem(401, message))


def check_version(dialect: Dialect, query: Mapping[str, str], protocol: str = "") -> None:
    version = query.get("api-version")
    if (
        "api-version" not in dialect.query
        or protocol in _VERSIONED_BY_HEADER
        or (version is not None and _VERSION.fullmatch(version))
    ):
        return
    message = "The api-version query parameter is required" if version is None else f"No such api-version: {version}"
    text = f"{message}; it is written YYYY-MM-DD or YYYY-MM-DD-preview"
    raise RequestRefusedError(write_wrong_version(dialect.name, text))


def check_version_header(dialect: Dialect, profile: str, headers: Mapping[str, str]) -> JsonObject:
    """Return the JSON Schema of what the request's version demands of its body, empty if the API has no versions."""
    rule = dialect.version
    if rule is None:
        return {}
    version = headers.get(rule.header)
    if version is None:
        refuse(dialect, profile, Problem(400, rule.missing))
    if version not in rule.values:
        refuse(dialect, profile, Problem(400, str(fill_placeholders(rule.unknown, {"version": version}))))
    return rule.values[version]


def parse_body(dialect: Dialect, profile: str, raw: bytes) -> JsonObject:
    """Parse the body as a JSON object."""
    status = dialect.errors.statuses.get("malformed", 400)
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        refuse(dialect, profile, Problem(status, f"Bad request: json: {error}", code=dialect.errors.malformed))
    if not isinstance(body, dict):
        refuse(dialect, profile, Problem(status, "Bad request: json: the body is not an object"))
    return body


def apply_extras_policy(
    dialect: Dialect, profile: str, headers: Mapping[str, str], body: JsonObject, protocol: str = "chat"
) -> JsonObject:
    """Return the body that reaches the model; the dialect ignores, refuses or drops unknown fields."""
    rule = dialect.extras
    if rule.rule == "ignored":
        return body
    known = load(f"{dialect.name}/{protocol}.request", profile)["properties"]
    extras = [key for key in body if "x-extra-parameter" in known.get(key, {"x-extra-parameter": True})]
    if rule.rule == "refused":
        if extras:
            raise RequestRefusedError(OBSERVED_ERRORS[rule.error].build_reply(extras[0]))
        return body
    value = headers.get("extra-parameters", "error").lower()
    accepted = rule.values.get(profile, rule.values["actual"])
    if value not in accepted:
        detail = f"Unexpected EXTRA_PARAMETERS option {value}, expected options are {accepted}"
        raise RequestRefusedError(build_json_reply(400, {"detail": detail}, rule.headers))
    if value == "pass-through" or not extras:
        return body
    if value == "error":
        raise RequestRefusedError(OBSERVED_ERRORS[rule.error].build_reply("', '".join(extras)))
    return {key: value for key, value in body.items() if key not in extras}


def check_schema(
    dialect: Dialect, profile: str, headers: Mapping[str, str], body: JsonObject, protocol: str = "chat"
) -> None:
    """Check the body. If a header passes unknown fields to the model, those inside messages reach it too."""
    passes = dialect.extras.rule == "by header" and headers.get("extra-parameters", "").lower() == "pass-through"
    demands = check_version_header(dialect, profile, headers)
    validators = [_validator(f"{dialect.name}/{protocol}.request", profile)]
    validators += [jsonschema_rs.Draft202012Validator(demands)] if demands else []
    for error in chain.from_iterable(validator.iter_errors(body) for validator in validators):
        if passes and error.kind.name == "additionalProperties":
            continue
        refuse(dialect, profile, _describe_violation(dialect, error, body))


def _describe_violation(dialect: Dialect, error: jsonschema_rs.ValidationError, body: JsonObject) -> Problem:
    """Describe a violation of the schema; a missing key belongs to the path if the service has a message for it."""
    path = tuple(error.instance_path)
    value = _find_value(body, path)
    sentence = dialect.errors.sentences.get(error.kind.name)
    if sentence is not None and error.kind.name == "required":
        path = (*path, error.kind.as_dict()["property"])
    return Problem(dialect.errors.statuses.get("invalid", 400), sentence or error.message, path, value)


def check_batch(dialect: Dialect, profile: str, body: JsonObject, protocol: str, model: str) -> None:
    """Check the service's limit of inputs, which is not part of its schema."""
    rule = load(f"{dialect.name}/{protocol}.request", profile)["properties"].get("input", {})
    most, given = rule.get("x-batch"), body.get("input")
    if most is not None and isinstance(given, list) and len(given) > most:
        text = f"Input embeddings size is too large, exceeding {most} limit for {model}"
        refuse(dialect, profile, Problem(400, text, code="BAD_REQUEST"))


def check_tool_outputs(dialect: Dialect, profile: str, body: JsonObject) -> None:
    """Check that every tool output belongs to a call in the same input."""
    items = select_objects(body.get("input"))
    called = {item.get("call_id") for item in items if item.get("type") == "function_call"}
    for item in items:
        if item.get("type") == "function_call_output" and item.get("call_id") not in called:
            text = f"No tool call found for function call output with call_id {item.get('call_id')}."
            refuse(dialect, profile, Problem(400, text, ("input",)))


def check_previous_response(dialect: Dialect, profile: str, body: JsonObject) -> None:
    """Refuse to continue a response, as the fakes store none."""
    if (name := body.get("previous_response_id")) is not None:
        text = f"Previous response with id '{name}' not found."
        refuse(dialect, profile, Problem(400, text, ("previous_response_id",), name, "previous_response_not_found"))


@cache
def _validator(schema: str, profile: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(load(schema, profile))


def _find_value(value: JsonValue, path: tuple[str | int, ...]) -> JsonValue:
    for step in path:
        value = value[step]
    return value
