"""The types of values in a configuration: durations, sizes, names, addresses, secrets, headers."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

from .header_values import BAD_SECRET_HINT, explain_bad_secret
from .rules import After, Before, Bounds, SecretText, TextPattern, reject
from .urls import BadUrl, check_base_url, check_proxy_url

if TYPE_CHECKING:
    from pydantic import ValidationInfo

__all__ = [
    "FROM_FILE",
    "MAKE_KEY",
    "MODEL_PATTERN",
    "NO_BOOL",
    "BaseUrl",
    "Bytes",
    "Expiry",
    "HeaderName",
    "HeaderValue",
    "HostName",
    "KeyHash",
    "Label",
    "LitellmArgument",
    "ModelName",
    "ModelPattern",
    "Origin",
    "ProxyUrl",
    "Seconds",
    "Secret",
    "UpstreamModel",
    "Vendor",
    "Version",
    "format_bytes",
    "format_seconds",
    "is_label",
    "is_model_name",
    "is_model_pattern",
    "make_model_name",
    "parse_bytes",
    "parse_expiry",
    "parse_seconds",
]

FROM_FILE = {"from_file": True}
"""The validation context of a file: its durations and sizes need a unit, those of Python code do not."""

_MODEL_NAME = "letters, digits and . _ : / @ -, at most 256"
MODEL_PATTERN = f"{_MODEL_NAME}, with * for any characters"
"""What a pattern of model names has."""

MAKE_KEY = "`dragoman keys new` makes a key and its hash"
"""A hint."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,255}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._:/@-]+|\.{2,}")
_PATTERN = re.compile(r"[A-Za-z0-9*][A-Za-z0-9._:/@*-]{0,255}")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VENDOR = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_ARGUMENT = re.compile(
    r"(aws|vertex|azure|watsonx|oci|sap|gigachat)_[a-z0-9_]{1,60}|api_version|organization|project_id|region_name|space_id|tenant_id"
)
_KEY_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_DATE_LENGTH = len("2027-01-31")
_VERSION = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(-preview)?")
_HOST_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,253}[A-Za-z0-9_])?")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?|\*")
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
    """Seconds from `1.5s`, `500ms`, `2m`, `1h` or `30d`; None for any other text."""
    return _parse_quantity(text, _SECONDS)


def parse_bytes(text: str) -> int | None:
    """Bytes from a size such as `32MiB` or `64kB`; None for any other text."""
    size = _parse_quantity(text, _BYTES)
    return None if size is None else int(size)


def format_seconds(seconds: float) -> str:
    """The reverse of `parse_seconds`."""
    for unit in ("d", "h"):
        if seconds >= _SECONDS[unit] and seconds % _SECONDS[unit] == 0:
            return f"{int(seconds // _SECONDS[unit])}{unit}"
    return f"{seconds:g}s" if seconds >= 1 else f"{seconds * 1000:g}ms"


def format_bytes(size: int) -> str:
    """The reverse of `parse_bytes`."""
    unit = next(unit for unit in ("GiB", "MiB", "KiB", "B") if size % _BYTES[unit] == 0)
    return f"{size // _BYTES[unit]}{unit}"


def parse_expiry(text: str) -> float | None:
    """Seconds since 1970 at the end of a date (`2027-01-31`, in UTC), or at a time (`2027-01-31T12:00:00+01:00`); None
    for any other text."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    if len(text) == _DATE_LENGTH:
        return (at.replace(tzinfo=UTC) + timedelta(days=1)).timestamp()
    return at.timestamp() if at.tzinfo is not None else None


def is_model_name(text: str) -> bool:
    """True for a name that a client may ask for: no `*`, no `..` between slashes."""
    return _NAME.fullmatch(text) is not None and ".." not in text.split("/")


def make_model_name(text: str) -> str:
    """A name that clients may ask for, made of a provider's own, such as a path. Empty if nothing is left."""
    return text if is_model_name(text) else _NOT_IN_NAMES.sub("-", text).strip("._:/@-")[:256]


def is_model_pattern(text: str) -> bool:
    """True for the name of a configured model: like a client's, but `*` is allowed."""
    return _PATTERN.fullmatch(text) is not None and ".." not in text.split("/")


def is_label(text: str) -> bool:
    """True for the name of a provider or a key."""
    return _LABEL.fullmatch(text) is not None


def _parse_quantity(text: str, units: dict[str, Any]) -> float | None:
    match = _QUANTITY.fullmatch(text.strip())
    return float(match[1]) * units[match[2]] if match and match[2] in units else None


def _validate_seconds(value: object, info: ValidationInfo) -> object:
    return _validate_quantity(value, info, parse_seconds, "duration", "s")


def _validate_bytes(value: object, info: ValidationInfo) -> object:
    return _validate_quantity(value, info, parse_bytes, "size", "B")


def _validate_quantity(
    value: object, info: ValidationInfo, parse: Callable[[str], float | None], noun: str, unit: str
) -> object:
    if isinstance(value, str):
        amount = parse(value)
        return amount if amount is not None else reject(f"bad-{noun}", f"this is not a {noun}", _FORMS[noun])
    if isinstance(value, (int, float)) and not isinstance(value, bool) and info.context:
        hint = f"write {value}{unit}" if 0 < value < float("inf") else ""
        reject(f"bad-{noun}", f"this {noun} has no unit", _FORMS[noun], hint)
    return value


def _reject_bool(value: object, _: ValidationInfo) -> object:
    return f"{value}" if isinstance(value, bool) else value  # int() would accept it


def _validate_model_name(text: str) -> str:
    if not is_model_name(text):
        hint = "name one model here, not a pattern" if "*" in text else ""
        reject("bad-name", "this cannot be a model's name", _MODEL_NAME, hint)
    return text


def _validate_model_pattern(text: str) -> str:
    if not is_model_pattern(text):
        reject("bad-name", "this cannot be a model's name", MODEL_PATTERN)
    return text


def _validate_label(text: str) -> str:
    if not is_label(text):
        reject("bad-name", "this cannot be a name", "letters, digits and . _ -, at most 64, a letter or digit first")
    return text


def _validate_upstream_model(text: str) -> str:
    if not text or len(text) > 256 or not text.isprintable():
        reject("bad-name", "this cannot be a model's name", "1 to 256 printable characters")
    if "*" in text and text != "*":
        reject(
            "bad-name",
            "* means the client's whole name here and cannot be part of a longer name",
            hint='write "*"; to leave out the beginning of the client\'s name, set strip',
        )
    return text


def _validate_base_url(text: str) -> str:
    try:
        return check_base_url(text)
    except BadUrl as error:
        reject("bad-url", error.message, error.expected, error.hint)


def _validate_proxy_url(value: SecretText) -> SecretText:
    try:
        check_proxy_url(value.get_secret_value())
    except BadUrl as error:
        reject("bad-url", error.message, error.expected, error.hint)
    return value


def _validate_secret(value: SecretText) -> SecretText:
    text = value.get_secret_value()
    if not text:
        reject("empty-secret", "this secret is empty", hint="remove the line if there is no secret")
    if (message := explain_bad_secret(text, "this secret")) is not None:
        reject("bad-secret", message, "visible ASCII characters", BAD_SECRET_HINT)
    return value


def _validate_expiry(text: str) -> str:
    if parse_expiry(text) is None:
        reject("bad-time", "this is not a date, nor a time with its zone", "2027-01-31, or 2027-01-31T12:00:00Z")
    return text


def _validate_key_hash(text: str) -> str:
    if not _KEY_HASH.fullmatch(text):
        reject("bad-hash", "this is not the hash of a key", "sha256: and 64 hexadecimal digits", MAKE_KEY)
    return text


def _validate_header_name(text: str) -> str:
    if not _TOKEN.fullmatch(text):
        reject("bad-header", "this is not a valid header name")
    if _OWN_HEADERS.fullmatch(text):
        reject(
            "bad-header",
            f"dragoman sets the header {text} itself",
            hint="credentials go into api_key, api_key_file or oauth",
        )
    return text


def _validate_header_value(text: str) -> str:
    if not all(" " <= char <= "~" for char in text):
        reject("bad-header", "this is not a valid header value", "visible ASCII characters and spaces")
    return text


def _validate_host_name(text: str) -> str:
    if not _HOST_NAME.fullmatch(text):
        reject("bad-host", "this is not the name of a host", "a name without scheme and port, as llm.example.com")
    return text


def _validate_origin(text: str) -> str:
    if not _ORIGIN.fullmatch(text):
        expected = "scheme://host[:port] in lower case, without a path, as https://app.example.com, or *"
        reject("bad-origin", "this is not the origin of a page", expected)
    return text


def _validate_version(text: str) -> str:
    if not _VERSION.fullmatch(text):
        reject("bad-version", "this is not a version of the Azure API", "YYYY-MM-DD or YYYY-MM-DD-preview")
    return text


def _validate_vendor(text: str) -> str:
    if not _VENDOR.fullmatch(text):
        reject("bad-name", "this is not a vendor of litellm", "lower case letters, digits, _ and -, as in bedrock")
    return text


def _validate_litellm_argument(text: str) -> str:
    if not _ARGUMENT.fullmatch(text):
        hint = "the key goes into api_key, the address into base_url"
        reject(
            "bad-name",
            f"litellm does not get the parameter {text}",
            "credentials or locations, as aws_region_name",
            hint,
        )
    return text


Seconds = Annotated[
    float,
    Bounds(gt=0, allow_inf_nan=False),
    Before(_validate_seconds),
    TextPattern(r"^\d+(\.\d+)? ?(ms|s|m|h|d)$", unit="seconds"),
]
Bytes = Annotated[
    int,
    Bounds(gt=0),
    Before(_validate_bytes),
    TextPattern(r"^\d+(\.\d+)? ?(B|[kMG]B|[KMG]iB)$", unit="bytes"),
]
NO_BOOL = Before(_reject_bool)
ModelName = Annotated[str, After(_validate_model_name), TextPattern(rf"^(?:{_NAME.pattern})$")]
ModelPattern = Annotated[str, After(_validate_model_pattern), TextPattern(rf"^(?:{_PATTERN.pattern})$")]
Label = Annotated[str, After(_validate_label), TextPattern(rf"^(?:{_LABEL.pattern})$")]
UpstreamModel = Annotated[str, After(_validate_upstream_model)]
BaseUrl = Annotated[str, After(_validate_base_url), TextPattern(r"^https?://\S+$")]
ProxyUrl = Annotated[SecretText, After(_validate_proxy_url), TextPattern(r"^http://\S+$")]
Expiry = Annotated[str, After(_validate_expiry), TextPattern(r"^\d{4}-\d\d-\d\d(T.+)?$")]
KeyHash = Annotated[str, After(_validate_key_hash), TextPattern(rf"^(?:{_KEY_HASH.pattern})$")]
Secret = Annotated[SecretText, After(_validate_secret)]
Vendor = Annotated[str, After(_validate_vendor), TextPattern(rf"^(?:{_VENDOR.pattern})$")]
LitellmArgument = Annotated[str, After(_validate_litellm_argument), TextPattern(rf"^(?:{_ARGUMENT.pattern})$")]
HeaderName = Annotated[str, After(_validate_header_name)]
HeaderValue = Annotated[str, After(_validate_header_value)]
HostName = Annotated[str, After(_validate_host_name), TextPattern(rf"^(?:{_HOST_NAME.pattern})$")]
Origin = Annotated[str, After(_validate_origin), TextPattern(rf"^(?:{_ORIGIN.pattern})$")]
Version = Annotated[str, After(_validate_version), TextPattern(rf"^(?:{_VERSION.pattern})$")]
