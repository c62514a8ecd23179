"""The kinds of value that a configuration holds beside plain text and numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from .urls import BadUrl, check_base_url, check_proxy_url

__all__ = [
    "FROM_FILE",
    "NO_BOOL",
    "BaseUrl",
    "Bytes",
    "HeaderName",
    "HeaderValue",
    "Label",
    "LitellmArgument",
    "ModelName",
    "ModelPattern",
    "ProxyUrl",
    "Seconds",
    "Secret",
    "UpstreamModel",
    "Vendor",
    "Version",
    "is_name",
    "is_pattern",
    "parse_bytes",
    "parse_seconds",
    "size_text",
    "time_text",
]

FROM_FILE = {"from_file": True}
"""The validation context for what a person wrote: there, durations and sizes need a unit."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,255}")
_PATTERN = re.compile(r"[A-Za-z0-9*][A-Za-z0-9._:/@*-]{0,255}")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VENDOR = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_ARGUMENT = re.compile(
    r"(aws|vertex|azure|watsonx|oci|sap|gigachat)_[a-z0-9_]{1,60}|api_version|organization|project_id|region_name|space_id|tenant_id"
)
_VERSION = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(-preview)?")
_OWN_HEADERS = re.compile(
    r"(proxy-.*|authorization|api-key|x-api-key|cookie|host|content-(length|type|encoding)|accept(-encoding)?|user-agent"
    r"|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect)",
    re.IGNORECASE,
)

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"B": 1, "kB": 1000, "KiB": 1024, "MB": 1000**2, "MiB": 1024**2, "GB": 1000**3, "GiB": 1024**3}
_QUANTITY = re.compile(r"(\d{1,15}(?:\.\d{1,6})?) ?([A-Za-z]+)")
_FORMS = {"duration": "a duration such as 30s, 500ms or 2m", "size": "a size such as 32MiB or 64kB"}


def parse_seconds(text: str) -> float | None:
    """`1.5s`, `500ms`, `2m`, `1h`, `30d` in seconds, or None."""
    return _quantity(text, _SECONDS)


def parse_bytes(text: str) -> int | None:
    """`32MiB`, `64kB` in bytes, or None."""
    size = _quantity(text, _BYTES)
    return None if size is None else int(size)


def time_text(seconds: float) -> str:
    """The reverse of `parse_seconds`."""
    for unit in ("d", "h"):
        if seconds >= _SECONDS[unit] and seconds % _SECONDS[unit] == 0:
            return f"{int(seconds // _SECONDS[unit])}{unit}"
    return f"{seconds:g}s" if seconds >= 1 else f"{seconds * 1000:g}ms"


def size_text(size: int) -> str:
    """The reverse of `parse_bytes`."""
    unit = next(unit for unit in ("GiB", "MiB", "KiB", "B") if size % _BYTES[unit] == 0)
    return f"{size // _BYTES[unit]}{unit}"


def is_name(text: str) -> bool:
    """True for what a client may ask for: no `*`, no `..` between slashes."""
    return _NAME.fullmatch(text) is not None and ".." not in text.split("/")


def is_pattern(text: str) -> bool:
    """True for what a model may be called in the configuration: a name, or one with `*` in it."""
    return _PATTERN.fullmatch(text) is not None and ".." not in text.split("/")


def _quantity(text: str, units: dict[str, Any]) -> float | None:
    found = _QUANTITY.fullmatch(text.strip())
    return float(found[1]) * units[found[2]] if found and found[2] in units else None


def _refuse(code: Any, message: str, expected: str = "", hint: str = "") -> NoReturn:
    raise PydanticCustomError(code, "{message}", {"message": message, "expected": expected, "hint": hint})


def _seconds(value: object, info: ValidationInfo) -> object:
    return _measured(value, info, parse_seconds, "duration", "s")


def _bytes(value: object, info: ValidationInfo) -> object:
    return _measured(value, info, parse_bytes, "size", "B")


def _measured(
    value: object, info: ValidationInfo, parse: Callable[[str], float | None], noun: str, unit: str
) -> object:
    if isinstance(value, str):
        amount = parse(value)
        return amount if amount is not None else _refuse(f"bad-{noun}", f"this is no {noun}", _FORMS[noun])
    if isinstance(value, (int, float)) and not isinstance(value, bool) and info.context:
        hint = f"write {value}{unit}" if 0 < value < float("inf") else ""
        _refuse(f"bad-{noun}", f"this {noun} has no unit", _FORMS[noun], hint)
    return value


def _no_bool(value: object) -> object:
    return f"{value}" if isinstance(value, bool) else value  # int() would take it


def _name(text: str) -> str:
    if not is_name(text):
        hint = "name one model here, not a pattern" if "*" in text else ""
        _refuse("bad-name", "this cannot be a model's name", "letters, digits and . _ : / @ -, at most 256", hint)
    return text


def _pattern(text: str) -> str:
    if not is_pattern(text):
        expected = "letters, digits and . _ : / @ -, at most 256, with * for any characters"
        _refuse("bad-name", "this cannot be a model's name", expected)
    return text


def _label(text: str) -> str:
    if not _LABEL.fullmatch(text):
        _refuse("bad-name", "this cannot be a name", "letters, digits and . _ -, at most 64, a letter or digit first")
    return text


def _upstream_model(text: str) -> str:
    if not text or len(text) > 256 or not text.isprintable():
        _refuse("bad-name", "this cannot be a model's name", "1 to 256 printable characters")
    if "*" in text and text != "*":
        _refuse(
            "bad-name",
            "* stands for the client's whole name here and cannot be part of a longer one",
            hint='write "*" and, to leave out the beginning of the client\'s name, strip',
        )
    return text


def _base_url(text: str) -> str:
    try:
        return check_base_url(text)
    except BadUrl as error:
        _refuse("bad-url", error.message, error.expected, error.hint)


def _proxy_url(value: SecretStr) -> SecretStr:
    try:
        check_proxy_url(value.get_secret_value())
    except BadUrl as error:
        _refuse("bad-url", error.message, error.expected, error.hint)
    return value


def _secret(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not text:
        _refuse("empty-secret", "this secret is empty", hint="leave the line out where there is none")
    if bad := [position for position, char in enumerate(text, 1) if not "!" <= char <= "~"]:
        message = f"character {bad[0]} of this secret cannot stand in an HTTP header"
        _refuse("bad-secret", message, "visible ASCII characters", "is there a space or a line break in it?")
    return value


def _header_name(text: str) -> str:
    if not _TOKEN.fullmatch(text):
        _refuse("bad-header", "this is not a valid header name")
    if _OWN_HEADERS.fullmatch(text):
        _refuse(
            "bad-header",
            f"dragoman sets the header {text} itself",
            hint="credentials go into api_key, api_key_file or oauth",
        )
    return text


def _header_value(text: str) -> str:
    if not all(" " <= char <= "~" for char in text):
        _refuse("bad-header", "this is not a valid header value", "visible ASCII characters and spaces")
    return text


def _version(text: str) -> str:
    if not _VERSION.fullmatch(text):
        _refuse("bad-version", "this is no version of the Azure API", "YYYY-MM-DD or YYYY-MM-DD-preview")
    return text


def _vendor(text: str) -> str:
    if not _VENDOR.fullmatch(text):
        _refuse("bad-name", "this is no vendor of litellm's", "lower case letters, digits, _ and -, as in bedrock")
    return text


def _argument(text: str) -> str:
    if not _ARGUMENT.fullmatch(text):
        hint = "the key goes into api_key, the address into base_url"
        _refuse("bad-name", f"litellm is not given {text}", "credentials and places, as aws_region_name", hint)
    return text


def _like(pattern: re.Pattern[str]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^(?:{pattern.pattern})$"})


Seconds = Annotated[
    float,
    Field(gt=0, allow_inf_nan=False),
    BeforeValidator(_seconds),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(\.\d+)? ?(ms|s|m|h|d)$", "x-unit": "seconds"}),
]
Bytes = Annotated[
    int,
    Field(gt=0),
    BeforeValidator(_bytes),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(\.\d+)? ?(B|[kMG]B|[KMG]iB)$", "x-unit": "bytes"}),
]
NO_BOOL = BeforeValidator(_no_bool)
ModelName = Annotated[str, AfterValidator(_name), _like(_NAME)]
ModelPattern = Annotated[str, AfterValidator(_pattern), _like(_PATTERN)]
Label = Annotated[str, AfterValidator(_label), _like(_LABEL)]
UpstreamModel = Annotated[str, AfterValidator(_upstream_model)]
BaseUrl = Annotated[str, AfterValidator(_base_url), WithJsonSchema({"type": "string", "pattern": r"^https?://\S+$"})]
ProxyUrl = Annotated[
    SecretStr, AfterValidator(_proxy_url), WithJsonSchema({"type": "string", "pattern": r"^http://\S+$"})
]
Secret = Annotated[SecretStr, AfterValidator(_secret)]
Vendor = Annotated[str, AfterValidator(_vendor), _like(_VENDOR)]
LitellmArgument = Annotated[str, AfterValidator(_argument), _like(_ARGUMENT)]
HeaderName = Annotated[str, AfterValidator(_header_name)]
HeaderValue = Annotated[str, AfterValidator(_header_value)]
Version = Annotated[str, AfterValidator(_version), _like(_VERSION)]
