"""Reads a provider's embeddings into hub form: one vector per input, in order, in the requested format.

Vectors are never repaired. A wrong count, a missing or repeated index, different lengths and values that are not finite
numbers are faults, each with the path of the input. If no vector has an index, they are in the order of the inputs.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.changes import Weight
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.common.reply_validation import validate_natively
from dragoman.adapters.common.usage import NO_COUNTS
from dragoman.adapters.faults import Fault
from dragoman.adapters.native_errors import read_error_object
from dragoman.adapters.paths import Path
from dragoman.adapters.validation import load_validator

from .vectors import check_base64, check_numbers, decode_vector, encode_vector

__all__ = ["count_inputs", "read_embeddings", "write_embeddings"]

_COUNTS = ("prompt_tokens", "total_tokens")


def read_embeddings(reply: Reply, rules: ReplyRules, ctx: Context) -> JsonObject:
    """Read a reply into hub form, as the policy `replies` requires. Alters `reply.body`.

    Vectors get the requested format under every policy. Raises Fault if the body reports an error or cannot be
    normalized.
    """
    body, mode = reply.body, ctx.target.policy.replies
    if body.get("error") or body.get("data") is None:
        raise read_error_object(body, reply.status, rules.words, ctx.clock())
    if mode in ("strict", "report"):
        validate_natively(_make_outline(body), load_validator(f"{rules.dialect}/embeddings.reply", ctx.profile), ctx)
    if mode in ("off", "report") and _has_requested_format(body, ctx.request):
        return body
    return _normalize(body, ctx)


def write_embeddings(reply: JsonObject, ctx: Context) -> Reply:
    """Write a reply in hub form for a dialect whose replies have an id."""
    if reply.get("id"):
        return Reply(200, reply)
    ctx.receipt.record_fill(("id",), "the provider gave none")
    return Reply(200, {"id": ctx.new_id("emb"), **reply})


def count_inputs(request: JsonObject) -> int | None:
    """The number of inputs of a request in hub form; None if it has none."""
    given: Any = request.get("input")
    if isinstance(given, list) and given:
        return 1 if isinstance(given[0], int) else len(given)
    return None if given is None else 1


def _make_outline(body: JsonObject) -> JsonObject:
    """A copy of the body with only the first number of each vector, for schema validation."""
    data = body.get("data")
    if not isinstance(data, list):
        return body
    return {**body, "data": [_keep_first_number(item) for item in data]}


def _keep_first_number(item: Any) -> Any:
    vector = item.get("embedding") if isinstance(item, dict) else None
    return {**item, "embedding": vector[:1]} if isinstance(vector, list | str) else item


def _has_requested_format(body: JsonObject, request: JsonObject) -> bool:
    """Whether no vector needs a conversion."""
    data = body["data"]
    asked = request.get("encoding_format") or "float"
    wrong = {"float": str, "base64": list}.get(asked)
    items = data if isinstance(data, list) else ()
    return wrong is None or not any(isinstance(item, dict) and type(item.get("embedding")) is wrong for item in items)


def _normalize(body: JsonObject, ctx: Context) -> JsonObject:
    body = {key: value for key, value in body.items() if value is not None}
    _set_envelope(body, ctx)
    outline, hub = _make_outline(body), load_validator("hub/embeddings.reply")
    if not hub.accepts(outline) and (violation := hub.first_violation(outline)):
        raise _invalid(violation.message, _find_input_path(violation.path, ctx.request))
    _set_order(body, ctx)
    _write_vectors(body["data"], ctx)
    return body


def _set_envelope(body: JsonObject, ctx: Context) -> None:
    if body.get("object") != "list":
        body["object"] = "list"
        ctx.receipt.record_conversion(("object",), "the hub's name for it")
    if not body.get("model"):
        body["model"] = ctx.target.model
        ctx.receipt.record_fill(("model",), "the provider gave none")
    if not body.get("id", "some"):
        del body["id"]
    if isinstance(body["data"], dict):
        body["data"] = [body["data"]]
        ctx.receipt.record_conversion(("data",), "an object becomes a list of one")
    body["usage"] = _complete_usage(body.get("usage"), ctx)
    if isinstance(body["data"], list):
        _complete_items([item for item in body["data"] if isinstance(item, dict)], ctx)


def _complete_items(items: list[JsonObject], ctx: Context) -> None:
    """Set the object of each embedding, and the index if no embedding has one."""
    for item in items:
        if item.get("object") != "embedding":
            item["object"] = "embedding"
            ctx.receipt.record_fill(("data",), "the hub's name for it")
    if items and all(item.get("index") is None for item in items):
        for index, item in enumerate(items):
            item["index"] = index
        ctx.receipt.record_fill(("data",), "no embedding has an index: they are in the order of the inputs")


def _complete_usage(reported: Any, ctx: Context) -> JsonObject:
    """Both token counts. A missing one equals the other, because embeddings generate no tokens.

    Without any, both are 0, which is not a true count: every client's API requires them.
    """
    usage = {key: value for key, value in reported.items() if value is not None} if isinstance(reported, dict) else {}
    if reported and not usage:
        ctx.receipt.record_drop(("usage",), NO_COUNTS)
    generated = usage.pop("completion_tokens", None)
    if generated is not None:
        weight: Weight = "loss" if generated else "form"
        ctx.receipt.record_drop(("usage", "completion_tokens"), "embeddings generate no tokens", weight)
    known = [usage[name] for name in _COUNTS if name in usage]
    if not known:
        ctx.receipt.record_fill(("usage",), "the provider gave no counts; 0 means unknown", "loss")
    elif len(known) < len(_COUNTS):
        ctx.receipt.record_fill(("usage",), "both counts are the same")
    return {**usage, **{name: usage.get(name, known[0] if known else 0) for name in _COUNTS}}


def _set_order(body: JsonObject, ctx: Context) -> None:
    data: list[JsonObject] = body["data"]
    count = count_inputs(ctx.request) or len(data)
    if len(data) != count:
        raise _invalid(f"it has {len(data)} embeddings for {count} inputs")
    found = [item["index"] for item in data]
    if found == list(range(count)):
        return
    missing = min(set(range(count)).difference(found), default=None)
    if missing is not None:
        raise _invalid(f"the embedding with index {missing} is missing", _input_path(missing, ctx.request))
    data.sort(key=lambda item: item["index"])
    ctx.receipt.record_conversion(("data",), "sorted in the order of the inputs")


def _write_vectors(data: list[JsonObject], ctx: Context) -> None:
    asked = ctx.request.get("encoding_format") or "float"
    length, is_converted = _requested_length(asked, ctx), False
    for index, item in enumerate(data):
        given = item["embedding"]
        try:
            item["embedding"], found = _convert(given, asked)
        except ValueError as error:
            raise _invalid(str(error), _input_path(index, ctx.request)) from None
        if item["embedding"] is not given and not is_converted:
            is_converted = True
            ctx.receipt.record_conversion(("data",), "vectors get the format that was asked for")
        length = length or found
        if found != length:
            raise _invalid(f"a vector has {found} values instead of {length}", _input_path(index, ctx.request))


def _requested_length(asked: str, ctx: Context) -> int | None:
    """The requested number of values per vector; None if the client did not ask or the target was not asked."""
    wanted: int | None = ctx.request.get("dimensions")
    return wanted if asked in ("float", "base64") and not ctx.receipt.is_lost(("dimensions",)) else None


def _convert(vector: Any, asked: str) -> tuple[Any, int]:
    """The vector in the requested format, and its length. Raises ValueError if the vector is invalid."""
    if isinstance(vector, list):
        if asked != "base64":
            return vector, check_numbers(vector)
        return encode_vector(vector), len(vector)
    if asked == "float":
        plain = decode_vector(vector)
        return plain, len(plain)
    return vector, check_base64(vector) if asked == "base64" else len(vector)


def _find_input_path(path: Path, request: JsonObject) -> Path:
    """The path of the input that a path in the reply belongs to, by the order of the embeddings."""
    if path[:1] == ("data",) and len(path) > 1 and isinstance(path[1], int):
        return _input_path(path[1], request)
    return ()


def _input_path(index: int, request: JsonObject) -> Path:
    several = isinstance(request.get("input"), list) and not isinstance(request["input"][0], int)
    return ("input", index) if several else ("input",)


def _invalid(message: str, path: Path = ()) -> Fault:
    text = f"the provider sent invalid embeddings: {message}"
    return Fault("upstream_invalid_response", text, path, code="upstream_invalid_response")
