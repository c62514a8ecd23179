"""Checks of providers: whether the settings of each fit together, and fit its dialect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from dragoman.adapters.dialect import COMPANIONS, Dialect
from dragoman.adapters.litellm import LITELLM
from dragoman.adapters.providers import AddressForm
from dragoman.adapters.registry import dialects

from .document import Document, did_you_mean
from .keyfile import BadKeyFile, read_key
from .problems import Severity
from .traffic import Timeouts
from .urls import is_loopback
from .values import parse_seconds
from .vocabulary import SETTINGS, describe_owners

__all__ = ["check_providers", "check_timeouts", "resolve_files"]

_CREDENTIALS = ("api_key", "api_key_file", "oauth")
_KEY_FILES = (("api_key_file",), ("oauth", "client_secret_file"))
_FILES = (("tls", "ca"), ("tls", "cert"), ("tls", "key"), ("oauth", "ca"), *_KEY_FILES)


def check_providers(document: Document, insecure: bool) -> None:
    """Check every provider. With `insecure`, a key over plain http is a warning only."""
    for name in document.mapping("providers"):
        dialect = dialects.get(document.text("providers", name, "dialect") or "")
        if dialect is not None:
            _check_dialect(document, name, dialect)
            _check_address_settings(document, name, dialect)
            _check_base_url(document, name, dialect)
        called = LITELLM if document.text("providers", name, "engine") == "litellm" else dialect
        if called is not None:
            _check_protocols(document, name, called, _address_form(document, name, called))
        _check_credentials(document, name)
        _check_plain_http(document, name, insecure)
        if document.mapping("providers", name, "tls").keys() & {"cert", "key"} == {"key"}:
            message = "a private key needs a certificate"
            document.add_problem(
                ("providers", name, "tls", "key"), "tls-pair", message, hint="add cert: the file of the certificate"
            )
        check_timeouts(document, "providers", name, "timeouts")


def _check_dialect(document: Document, name: str, dialect: Dialect) -> None:
    form = _address_form(document, name, dialect)
    own = dialect.settings | (form.settings.keys() if form else set())
    for key in SETTINGS:
        if document.text("providers", name, key) and key not in own:
            message = f"{key} is for {describe_owners(key)} only; this provider's is {dialect.name}"
            document.add_problem(("providers", name, key), "wrong-dialect", message, hint="remove it", at_key=True)
    forms = tuple(dialect.address_forms)
    for key, known in (("profile", dialect.profiles), ("auth", tuple(dialect.auth)), ("address", forms)):
        chosen = document.text("providers", name, key)
        if chosen and known and chosen not in known:
            node = document.find(("providers", name, key))
            message = f"the dialect {dialect.name} has no {key} {node.source_text if node else chosen}"
            hint = did_you_mean(chosen, known)
            document.add_problem(
                ("providers", name, key), f"unknown-{key}", message, expected=_one_of(known), hint=hint
            )


def _address_form(document: Document, name: str, dialect: Dialect) -> AddressForm | None:
    return dialect.address_forms.get(document.text("providers", name, "address") or "")


def _check_address_settings(document: Document, name: str, dialect: Dialect) -> None:
    """Check that the provider has the keys that its form of address needs."""
    path, form = ("providers", name, "address"), _address_form(document, name, dialect)
    for key, hint in form.settings.items() if form else ():
        if document.find(("providers", name, key)) is None:
            message = f'"{key}" is missing: the address {document.text(*path)} needs one'
            document.add_problem(path, "missing-key", message, hint=hint)


def _check_credentials(document: Document, name: str) -> None:
    first, *others = [key for key in document.mapping("providers", name) if key in _CREDENTIALS] or [""]
    for key in others:
        line = document.line_of("providers", name, first)
        message = f"{key} and {first} (line {line}) are both set; a provider has one credential"
        document.add_problem(
            ("providers", name, key), "two-credentials", message, hint="remove one of them", at_key=True
        )
    oauth = document.mapping("providers", name, "oauth")
    if oauth and not oauth.keys() & {"scope", "audience"}:
        message = f'"scope" is missing in providers.{name}.oauth'
        hint = "all-apis on Databricks; https://cognitiveservices.azure.com/.default for Azure OpenAI"
        document.add_problem(("providers", name, "oauth"), "missing-key", message, hint=hint, at_key=True)
    _check_client_secret(document, name)
    if oauth and document.text("providers", name, "auth") not in (None, "bearer"):
        message = "access tokens are sent as bearer only"
        document.add_problem(("providers", name, "auth"), "unknown-auth", message, hint="remove it", at_key=True)


def _check_client_secret(document: Document, name: str) -> None:
    path = ("providers", name, "oauth")
    found = [key for key in ("client_secret", "client_secret_file") if key in document.mapping(*path)]
    if document.mapping(*path) and not found:
        message = f'"client_secret" is missing in {".".join(path)}'
        document.add_problem(path, "missing-key", message, expected="a text", hint="or client_secret_file", at_key=True)
    if len(found) > 1:
        message = "client_secret_file and client_secret are both set; a client has one secret"
        document.add_problem((*path, found[1]), "two-credentials", message, hint="remove one of them", at_key=True)


def _check_protocols(document: Document, name: str, dialect: Dialect, form: AddressForm | None) -> None:
    node = document.find(("providers", name, "protocols"))
    called = (protocol for protocol in dialect.called if protocol not in COMPANIONS)
    known = tuple(protocol for protocol in called if form is None or protocol in form.paths)
    for i, item in enumerate(node.value if node is not None and isinstance(node.value, list) else ()):
        if isinstance(item.value, str) and item.value not in known:
            what = f"the engine {dialect.name}" if dialect is LITELLM else f"the dialect {dialect.name}"
            what = what if form is None else f"the address {document.text('providers', name, 'address')}"
            message = f"{what} does not call providers with {item.source_text}"
            path = ("providers", name, "protocols", i)
            document.add_problem(path, "unknown-protocol", message, expected=_one_of(known))


def _check_base_url(document: Document, name: str, dialect: Dialect) -> None:
    path, address = ("providers", name, "base_url"), document.text("providers", name, "address")
    form, url = _address_form(document, name, dialect), document.text(*path)
    base = form.base_address if form else None if address else dialect.base_address
    if url is None or base is None:
        return
    if form is None and _report_other_form(document, path, dialect, url):
        return
    if (shorter := base.shorten(url)) is not None:
        owner = f"the address {address}" if form else f"the dialect {dialect.name}"
        message = f"the address already ends with a part of what {owner} appends: {base.appended}"
        twice = base.version and url.rstrip("/").endswith(base.version * 2)
        message = f"the address ends with {base.version} twice" if twice else message
        document.add_problem(path, "bad-url", message, hint=_suggest_address(document, path, shorter))
    elif base.lacks_version(url):
        message = f"{base.appended} is appended to this address; most servers need {base.version} before it"
        hint = _suggest_address(document, path, f"{url.rstrip('/')}{base.version}")
        document.add_problem(path, "no-version", message, hint=hint, severity="warning")


def _report_other_form(document: Document, path: tuple[str, ...], dialect: Dialect, url: str) -> bool:
    """Report an address that only another form of address of the dialect can have. Return whether it is one."""
    for name, form in dialect.address_forms.items():
        if form.own is not None and (shorter := form.own.sub("", url.rstrip("/"))) != url.rstrip("/"):
            suggested = _suggest_address(document, path, shorter)
            message = f"this is an address of {form.title}"
            document.add_problem(path, "bad-url", message, hint=f"{suggested or 'shorten it'}, and address: {name}")
            return True
    return False


def _suggest_address(document: Document, path: tuple[str, ...], url: str) -> str:
    """A hint with the better address; empty if the address contains a variable or a password."""
    node = document.find(path)
    return "" if node is None or node.raw is not None or "@" in url else f"write {url}"


def _check_plain_http(document: Document, name: str, insecure: bool) -> None:
    if any(document.find(("providers", name, key)) is not None for key in _CREDENTIALS):
        _check_encryption(document, ("providers", name, "base_url"), "key", insecure)
    _check_encryption(document, ("providers", name, "oauth", "token_url"), "client's secret", insecure)


def _check_encryption(document: Document, path: tuple[str, ...], what: str, insecure: bool) -> None:
    url = document.text(*path) or ""
    if not url.startswith("http://"):
        return
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return  # the validation of the value reports it
    if host and not is_loopback(host):
        message = f"the {what} would travel unencrypted: http to another machine"
        hint = "use https, or start with --insecure if the network is trusted"
        severity: Severity = "warning" if insecure else "error"
        document.add_problem(path, "plain-http", message, hint=hint, severity=severity)


def check_timeouts(document: Document, *path: str) -> None:
    """Check that no timeout is longer than the total timeout, configured or default."""
    total = _seconds(document, "total", *path)
    for name in document.mapping(*path).keys() & Timeouts.__dataclass_fields__.keys():
        value = _seconds(document, name, *path)
        if total is not None and value is not None and value > total:
            message = f"{name} ({value:g}s) is longer than total ({total:g}s)"
            hint = f"raise total, or lower {name}"
            document.add_problem((*path, name), "conflicting-timeouts", message, hint=hint)


def _seconds(document: Document, name: str, *path: str) -> float | None:
    if document.find((*path, name)) is None:
        return float(getattr(Timeouts, name))
    text = document.text(*path, name)
    return None if text is None else parse_seconds(text)


def resolve_files(document: Document, folder: Path) -> None:
    """Make the paths of TLS and key files absolute, and check that the files are readable."""
    for path in _file_paths(document):
        text, node = document.text(*path), document.find(path)
        if not text or node is None:
            continue
        file = folder / text
        node.value = str(file.absolute())
        shown = node.source_text if node.raw else str(file)
        try:
            _try_read(file, path)
        except OSError as error:
            document.files.append(file)
            document.add_problem(path, "unreadable", f"cannot read {shown}: {error.strerror}")
        except BadKeyFile as error:
            document.add_problem(path, "bad-key-file", f"{shown} does not contain a valid key: {error}")


def _try_read(file: Path, path: tuple[str, ...]) -> None:
    """Raise OSError or BadKeyFile if the file is unusable."""
    if path[2:] in _KEY_FILES:
        read_key(file)
        return
    with file.open("rb") as stream:
        stream.read(1)


def _file_paths(document: Document) -> Iterator[tuple[str, ...]]:
    for name in document.mapping("providers"):
        for key in _FILES:
            yield ("providers", name, *key)


def _one_of(known: tuple[str, ...]) -> str:
    return f"one of: {', '.join(known)}"
