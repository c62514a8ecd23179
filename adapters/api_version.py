"""The query parameter `api-version`, which Azure's services require in every call."""

from __future__ import annotations

import re

from .faults import Fault

__all__ = ["check_api_version"]

_VERSION = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(-preview)?")


def check_api_version(version: str | None, example: str) -> None:
    """Check the form of a client's `api-version`, YYYY-MM-DD or YYYY-MM-DD-preview; any date is accepted.

    `version` is None if the query has none. The message proposes `example`. Raises Fault `invalid_request`.
    """
    if version is None:
        text = f"the query parameter api-version is required, as in ?api-version={example}"
        raise Fault("invalid_request", text, ("api-version",), code="missing_required_parameter")
    if not _VERSION.fullmatch(version):
        text = "api-version must have the form YYYY-MM-DD or YYYY-MM-DD-preview"
        raise Fault("invalid_request", text, ("api-version",), version, code="invalid_value")
