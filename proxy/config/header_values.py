"""What a secret must be to be sent in an HTTP header."""

from __future__ import annotations

__all__ = ["BAD_SECRET_HINT", "explain_bad_secret"]

BAD_SECRET_HINT = "does it contain a space or a line break?"


def explain_bad_secret(secret: str, name: str) -> str | None:
    """Why no header can hold the secret that users know by this name; None if one can. It does not show the secret."""
    for position, character in enumerate(secret, 1):
        if not "!" <= character <= "~":
            return f"character {position} of {name} is not allowed in an HTTP header"
    return None
