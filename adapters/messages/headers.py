"""The headers of the Messages API: the version, and the betas that a request makes use of.

A client has to name the version; Anthropic's packages and Claude Code always do. A provider is called with the first
of these versions that has every parameter of the request: the client's, the one that the provider is configured for,
the others. Betas are passed on to Anthropic, which refuses those that it does not know, and so is the user profile
on whose behalf the client asks. The workspace is that of the provider's credentials, which the client does not have.

Source: Anthropic Messages API reference, versions and beta headers; anthropic 2.13.0, `_constants` and
`messages.create`.
"""

from __future__ import annotations

import re

from dragoman.adapters.call import Call, Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.suggestions import did_you_mean
from dragoman.adapters.validation import Validator

from .versions import VERSIONS, list_foreign

__all__ = ["BETAS", "VERSION", "choose_version", "drop_betas", "read_betas", "read_version", "write_headers"]

VERSION, BETAS = "anthropic-version", "anthropic-beta"
_PROFILE, _WORKSPACE = "anthropic-user-profile-id", "anthropic-workspace-id"

_BETA = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def _read_list(call: Call, name: str) -> str:
    """The value of a header that is a list, whose lines mean the same as one line with commas (RFC 9110, 5.3)."""
    return ",".join([value for key, value in call.headers.items() if len(key) == len(name) and key.lower() == name])


def read_version(call: Call, default: str | None = None) -> str:
    """Return the version that the client asks for. `default` is that of a service that does not require the header.
    Raises Fault."""
    version = call.headers.get(VERSION, default)
    if version is None:
        text = f"{VERSION}: header is required, as in {VERSION}: {VERSIONS[0]}"
        raise Fault("invalid_request", text, (VERSION,), code="missing_required_parameter")
    if version not in VERSIONS:
        known = " and ".join(VERSIONS)
        text = f'{VERSION}: "{version[:40]}" is not a valid version; there are {known}{did_you_mean(version, VERSIONS)}'
        raise Fault("invalid_request", text, (VERSION,), version, code="invalid_value")
    return version


def read_betas(call: Call) -> list[str]:
    """Return the betas that the client names. Raises Fault for what is no name."""
    betas = [beta for part in _read_list(call, BETAS).split(",") if (beta := part.strip())]
    for beta in betas:
        if not _BETA.fullmatch(beta):
            raise Fault("invalid_request", f"{BETAS}: not the name of a beta", (BETAS,), beta, code="invalid_value")
    return betas


def choose_version(body: JsonObject, ctx: Context, validator: Validator) -> str:
    """Return the version to call a provider with. `validator` is that of its requests."""
    given = (ctx.call.headers.get(VERSION), ctx.target.api_version, *VERSIONS)
    known = [version for version in given if version in VERSIONS]
    return next((version for version in known if not list_foreign(body, version, validator)), known[0])


def write_headers(body: JsonObject, ctx: Context, validator: Validator, *, takes_betas: bool) -> dict[str, str]:
    """Return the headers of a call. A provider that takes no betas gets none, which is recorded. Raises Fault."""
    headers = {VERSION: choose_version(body, ctx, validator)}
    if not takes_betas:
        drop_betas(ctx)
        return headers
    if betas := read_betas(ctx.call):
        headers[BETAS] = ",".join(betas)
    if profile := _read_profile(ctx.call):
        headers[_PROFILE] = profile
    _drop_workspace(ctx)
    return headers


def drop_betas(ctx: Context) -> None:
    """Record that the provider does not get the client's betas, user profile and workspace. Raises Fault."""
    if _read_list(ctx.call, BETAS):
        ctx.receipt.record_drop((BETAS,), "the provider documents no betas of this kind", "form")
    if _read_profile(ctx.call):
        ctx.receipt.record_drop((_PROFILE,), "the provider has no user profiles")
    _drop_workspace(ctx)


def _read_profile(call: Call) -> str:
    profile = _read_list(call, _PROFILE).strip()
    if profile and not _BETA.fullmatch(profile):
        raise Fault("invalid_request", f"{_PROFILE}: not an id", (_PROFILE,), profile, code="invalid_value")
    return profile


def _drop_workspace(ctx: Context) -> None:
    if _read_list(ctx.call, _WORKSPACE):
        ctx.receipt.record_drop((_WORKSPACE,), "the workspace is that of the provider's credentials")
