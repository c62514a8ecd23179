"""What a service looks at before its model gets a request: the key, the version, the JSON, the extras, the schema.

Each check raises Refused with the reply that the dialect's service would give.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NoReturn

import jsonschema_rs

from dragoman.contract.dialects import Dialect
from dragoman.schemas import load

from .answers import Json, objects
from .errors import Problem, json_reply, native, wrong_version
from .odd import ODD
from .wire import Reply

__all__ = [
    "Refused",
    "body_of",
    "check_batch",
    "check_key",
    "check_outputs",
    "check_previous",
    "check_schema",
    "check_version",
    "refuse",
    "without_extras",
]

_VERSION = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(-preview)?")


class Refused(Exception):
    """The request goes no further; `reply` is what the client gets."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


def refuse(dialect: Dialect, profile: str, problem: Problem) -> NoReturn:
    raise Refused(native(dialect.name, profile, problem))


def check_key(dialect: Dialect, profile: str, headers: Mapping[str, str], key: str | None) -> None:
    """Any of the dialect's headers may carry the key; where several do, all must be right."""
    forms = dialect.key if dialect.accepted_keys is None else dialect.accepted_keys
    if key is None or not forms:
        return
    found = [headers[name] == form.format(key=key) for name, form in forms.items() if name in headers]
    if not found or not all(found):
        said = "The key is wrong" if found else f"No key: send it in {' or '.join(forms)}"
        refuse(dialect, profile, Problem(401, said))


def check_version(dialect: Dialect, query: Mapping[str, str]) -> None:
    version = query.get("api-version")
    if "api-version" not in dialect.query or (version is not None and _VERSION.fullmatch(version)):
        return
    said = "The api-version query parameter is required" if version is None else f"No such api-version: {version}"
    raise Refused(wrong_version(dialect.name, f"{said}; it is written YYYY-MM-DD or YYYY-MM-DD-preview"))


def body_of(dialect: Dialect, profile: str, raw: bytes) -> Json:
    """The body as a JSON object."""
    status = dialect.errors.statuses.get("malformed", 400)
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        refuse(dialect, profile, Problem(status, f"Bad request: json: {error}", code=dialect.errors.malformed))
    if not isinstance(body, dict):
        refuse(dialect, profile, Problem(status, "Bad request: json: the body is not an object"))
    return body


def without_extras(
    dialect: Dialect, profile: str, headers: Mapping[str, str], body: Json, protocol: str = "chat"
) -> Json:
    """The body that reaches the model, once the dialect has dealt with the fields that it does not know."""
    rule = dialect.extras
    if rule.rule == "ignored":
        return body
    extras = [key for key in body if key not in load(f"{dialect.name}/{protocol}.request", profile)["properties"]]
    if rule.rule == "refused":
        if extras:
            raise Refused(ODD[rule.error].make(extras[0]))
        return body
    word = headers.get("extra-parameters", "error").lower()
    accepted = rule.words.get(profile, rule.words["actual"])
    if word not in accepted:
        detail = f"Unexpected EXTRA_PARAMETERS option {word}, expected options are {accepted}"
        raise Refused(json_reply(400, {"detail": detail}, rule.headers))
    if word == "pass-through" or not extras:
        return body
    if word == "error":
        raise Refused(ODD[rule.error].make("', '".join(extras)))
    return {key: value for key, value in body.items() if key not in extras}


def check_schema(dialect: Dialect, profile: str, body: Json, protocol: str = "chat") -> None:
    for error in _validator(f"{dialect.name}/{protocol}.request", profile).iter_errors(body):
        path = tuple(error.instance_path)
        refuse(
            dialect, profile, Problem(dialect.errors.statuses.get("invalid", 400), error.message, path, _at(body, path))
        )


def check_batch(dialect: Dialect, profile: str, body: Json, protocol: str, model: str) -> None:
    """The service's own limit of inputs, which its schema does not tell a client of."""
    rule = load(f"{dialect.name}/{protocol}.request", profile)["properties"].get("input", {})
    most, given = rule.get("x-batch"), body.get("input")
    if most is not None and isinstance(given, list) and len(given) > most:
        text = f"Input embeddings size is too large, exceeding {most} limit for {model}"
        refuse(dialect, profile, Problem(400, text, code="BAD_REQUEST"))


def check_outputs(dialect: Dialect, profile: str, body: Json) -> None:
    """Outputs are of calls in the same input."""
    items = objects(body.get("input"))
    called = {item.get("call_id") for item in items if item.get("type") == "function_call"}
    for item in items:
        if item.get("type") == "function_call_output" and item.get("call_id") not in called:
            text = f"No tool call found for function call output with call_id {item.get('call_id')}."
            refuse(dialect, profile, Problem(400, text, ("input",)))


def check_previous(dialect: Dialect, profile: str, body: Json) -> None:
    """The fakes keep nothing, so that no response can be gone on from."""
    if (name := body.get("previous_response_id")) is not None:
        text = f"Previous response with id '{name}' not found."
        refuse(dialect, profile, Problem(400, text, ("previous_response_id",), name, "previous_response_not_found"))


@cache
def _validator(schema: str, profile: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(load(schema, profile))


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value
