"""Exports of an exchange: a command line, a recording that `dragoman fake --replay` plays, a contract case.

They are made of what the page shows, so secrets are masked in them too.
"""

from __future__ import annotations

import base64
import io
import json
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.proxy.config.models import Config
from dragoman.proxy.config.urls import is_loopback
from dragoman.proxy.http.browser_rules import find_host_name
from dragoman.proxy.telemetry.content_mask import is_secret_header

__all__ = ["EXPORTS", "NO_BODY", "Export"]

NO_BODY = "the request has no body, or was refused before it was read"

_STANDARD_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "origin",
        "referer",
        "transfer-encoding",
        "user-agent",
        "x-request-id",
    }
)
"""Headers that every client sends in its own way."""

_DROPPED_FROM_REPLY = ("set-cookie", "date", "connection", "transfer-encoding", "content-length", "content-encoding")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_* -]+")
_KEY = "$DRAGOMAN_KEY"
_FAILURE = 400  # from this status on a reply is an error
_MOST_TITLE = 60  # characters
_MOST_ARGUMENT = 100_000  # bytes; Linux refuses one argument of 128 KiB
_CUTS = frozenset(
    {
        "upstream_disconnected",
        "upstream_idle_timeout",
        "upstream_protocol_error",
        "upstream_timeout",
        "upstream_truncated",
    }
)
"""Faults of calls whose reply has no end."""
_PLAIN_TYPES = (str, int, float, bool)
"""Of values that a check compares. `input`, `prompt` and `system` may be texts too, which every proxy passes on."""


class Export(NamedTuple):
    """A file."""

    name: str
    text: str


def write_curl(shown: JsonObject, config: Config) -> Export:
    """The client's request as a command, to this machine. The key comes from the environment."""
    message = _read_request(shown)
    headers = dict(message["headers"])
    host = _choose_host(headers, config)
    _, target, _ = str(message["line"]).split(" ")
    parts = [f"curl -sS -N {shlex.quote(f'http://{host}{target}')}"]
    parts += [f"-H {_quote_header(name, value)}" for name, value in headers.items() if _is_sent_by_curl(name)]
    parts += ["-H 'Content-Type: application/json'", _write_curl_body(message["body"])]
    return Export(f"{_name_file(shown)}.sh", " \\\n  ".join(parts) + "\n")


def write_recording(shown: JsonObject, config: Config) -> Export:
    """The last call to a provider, in the format of `contract/recordings.py`."""
    from dragoman.contract.recordings import VERSION, hash_request

    call = next((one for one in reversed(shown["tries"]) if one["reply"]["line"]), None)
    if call is None:
        raise Fault("invalid_request", "no provider has answered", code="not_kept")
    request, reply = _check_body(call["request"]), _check_body(call["reply"])
    method, target, _ = str(request["line"]).split(" ")
    base = urlsplit(_find_base_address(config, str(call["target"]))).path.rstrip("/")
    path, body = target.removeprefix(base), request["body"] or ""
    recording = {
        "recording": VERSION,
        "request": {"method": method, "path": path, "headers": dict(request["headers"]), "body": body},
        "answer": {
            "status": int(str(reply["line"]).split(" ")[1]),
            "headers": [pair for pair in reply["headers"] if pair[0].lower() not in _DROPPED_FROM_REPLY],
            "chunks": [*_list_chunks(reply, float(call["began_ms"]))],
            "broken": _find_cut(shown, call),
        },
    }
    text = json.dumps(recording, indent=1, ensure_ascii=False)
    return Export(f"{_name_file(shown)}.{hash_request(method, path, body.encode())}.json", text + "\n")


def write_case(shown: JsonObject, config: Config) -> Export:
    """The client's request as a file of contract cases. The first one checks the reply of any endpoint. The second one
    checks a proxy: what it sends to a provider of this dialect."""
    from ruamel.yaml import YAML

    message = _read_request(shown)
    step: JsonObject = {"request": _write_step(shown, message), "expect": _write_expectation(shown)}
    case = {
        "id": f"{shown['protocol']}/exported/{_name_file(shown)}",
        "title": f"The exchange {_name_file(shown)} of the model {shown['model']}"[:_MOST_TITLE],
        "level": "MUST",
        "steps": [step],
    }
    cases = [case]
    if upstream := _write_upstream(shown, config):
        dialect, sent = upstream
        driven = {**step, "upstream": {"sent": sent}}
        cases.append({**case, "id": f"{case['id']}/sent", "upstreams": [dialect], "steps": [driven]})
    source = "an exchange of a dragoman proxy"
    content = {"protocol": shown["protocol"], "dialects": [shown["dialect"]], "source": source, "cases": cases}
    yaml, output = YAML(), io.StringIO()
    yaml.default_flow_style, yaml.width, yaml.allow_unicode = False, 4096, True
    yaml.dump(content, output)
    return Export(f"{_name_file(shown)}.yaml", output.getvalue())


EXPORTS: Mapping[str, Callable[[JsonObject, Config], Export]] = {
    "curl": write_curl,
    "recording": write_recording,
    "case": write_case,
}
"""What an exchange, as the page shows it, can become. Raises Fault if too little of it is kept."""


def _write_step(shown: JsonObject, message: JsonObject) -> JsonObject:
    """The request of a case. The contract adds the model, if the body is all that names it."""
    _, target, _ = str(message["line"]).split(" ")
    text = str(message["body"])
    step: JsonObject = {} if _is_usual_path(shown, target) else {"path": target.partition("?")[0]}
    headers = {name: value for name, value in message["headers"] if name.lower() not in _STANDARD_HEADERS}
    if kept := {name: value for name, value in headers.items() if not is_secret_header(name)}:
        step["headers"] = kept
    body = _parse(text)
    if body is None or _has_placeholder(text):
        return {**step, "raw": {"$base64": base64.b64encode(text.encode()).decode()}}
    if isinstance(body, dict) and not step.get("path"):
        body = {name: value for name, value in body.items() if name != "model"}
    return {**step, "body": body}


def _write_expectation(shown: JsonObject) -> JsonObject:
    status, reply = shown["status"], shown["client"]["reply"]
    if status is None:
        raise Fault("invalid_request", "the client got no reply, so there is nothing to expect", code="not_kept")
    if status >= _FAILURE:
        return {"status": status, "checks": ["error_shape"]}
    if reply["form"] == "events":
        ends = ["done"] if reply["events"][-1]["text"].startswith("data: [DONE]") else []
        return {"status": status, "schema": "event", "checks": ["sse.framing", "one_terminal", *ends]}
    return {"status": status, "schema": "reply"}


def _write_upstream(shown: JsonObject, config: Config) -> tuple[str, list[JsonObject]] | None:
    """The provider's dialect, and checks of what it got: one request, with these plain parameters, and without the
    fields that were dropped, renamed or moved. None if the exchange failed, took several calls, or called no dialect.
    """
    (*others, call) = shown["tries"] or [None]
    if call is None or others or shown["outcome"] != "ok":
        return None
    provider = config.providers.get(str(call["target"]).partition("/")[0])
    body = _parse(_check_body(call["request"])["body"] or "")
    if provider is None or provider.engine is not None or provider.dialect is None or not isinstance(body, dict):
        return None
    plain = {name: value for name, value in body.items() if name != "model" and isinstance(value, _PLAIN_TYPES)}
    changes = (one for one in shown["changes"] if one["side"] == "request" and one["try"] == call["try"])
    befores = (one["before"] for one in changes if one["before"] is not None and len(one["before"]) == 1)
    lacks = sorted({str(before[0]) for before in befores} - set(body))
    checks: list[JsonObject] = [{"requests": 1}]
    checks += [{"equals": plain}] if plain else []
    checks += [{"absent": lacks}] if lacks else []
    return provider.dialect, checks


def _is_usual_path(shown: JsonObject, target: str) -> bool:
    """Whether the contract asks the protocol at this path by itself, at the end of the base URL."""
    from dragoman.contract.dialects import load_dialect

    known = load_dialect(str(shown["dialect"])).paths.get(str(shown["protocol"]), [])
    path = target.partition("?")[0].rstrip("/")
    return any(path.endswith(one) if "{" not in one else path.endswith(one.rpartition("}")[2]) for one in known)


def _read_request(shown: JsonObject) -> JsonObject:
    if shown["client"] is None:
        raise Fault("invalid_request", "the request is not kept; set server.inspect to bodies", code="not_kept")
    message = _check_body(shown["client"]["request"])
    if message["body"] is None:
        missing = "the request's body is not UTF-8 text" if message["form"] == "binary" else NO_BODY
        raise Fault("invalid_request", message["why_not"] or missing, code="not_kept")
    return message


def _check_body(message: JsonObject) -> JsonObject:
    """Raises Fault if the body is cut or not kept."""
    if message["kept"] < message["bytes"]:
        raise Fault("invalid_request", str(message["why_not"]), code="not_kept")
    return message


def _find_cut(shown: JsonObject, call: JsonObject) -> str | None:
    """Why the reply to a call has no end; None if it has one."""
    if call["outcome"] == "running":
        return "the call was still running"
    if call["outcome"] == "cancelled":
        return "the client left" if shown["outcome"] == "client_left" else "the call was cancelled"
    return call["fault"] if call["fault"] in _CUTS else None


def _list_chunks(reply: JsonObject, began_ms: float) -> list[JsonObject]:
    if reply["form"] == "events":
        return [{"at": round((one["at_ms"] - began_ms) / 1000, 4), "text": one["text"]} for one in reply["events"]]
    return [{"at": 0.0, "text": reply["body"]}] if reply["body"] else []


def _find_base_address(config: Config, target: str) -> str:
    found = next((one for name, one in config.providers.items() if target.startswith(f"{name}/")), None)
    return "" if found is None else found.base_address


def _choose_host(headers: Mapping[str, str], config: Config) -> str:
    """The host that the client named if it is this machine: another one could be where somebody waits for the key."""
    named = next((value for name, value in headers.items() if name.lower() == "host"), "")
    return named if is_loopback(find_host_name(named)) else f"localhost:{config.server.port}"


def _write_curl_body(body: str) -> str:
    """As an argument, or if it is too long for one, as standard input, which has one more line feed at its end."""
    if len(body.encode()) <= _MOST_ARGUMENT:
        return f"--data-raw {shlex.quote(body)}"
    end = "END"
    while end in body:
        end += "_"
    return f"--data-binary @- <<'{end}'\n{body}\n{end}"


def _is_sent_by_curl(name: str) -> bool:
    """A shell would read some characters that a name may have."""
    return name.lower() not in _STANDARD_HEADERS and _PLAIN_NAME.fullmatch(name) is not None


def _quote_header(name: str, value: str) -> str:
    if not is_secret_header(name):
        return shlex.quote(f"{name}: {value}")
    return f'"{name}: {value.replace("***", _KEY) if _PLAIN_VALUE.fullmatch(value) else _KEY}"'


def _name_file(shown: JsonObject) -> str:
    return re.sub(r"[^a-z0-9._-]", "-", str(shown["id"]).lower())[:13].strip("-.") or "exchange"


def _has_placeholder(text: str) -> bool:
    return any(word in text for word in ("${", '"$times"', '"$text"'))


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
