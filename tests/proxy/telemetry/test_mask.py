"""Masks take secrets out of bytes."""

from __future__ import annotations

from dragoman.proxy.telemetry.mask import Mask


def test_masks() -> None:
    mask = Mask(["sk-abcde", "sk-abcdefg", 'quote"quote', "", "error", "7 chars"])
    said = b'x sk-abcdefg sk-abcde quote"quote quote\\"quote quote\\\\\\"quote'
    assert mask(said) == b"x *** *** *** *** ***"
    assert mask(b'{"error": "7 chars are no secret"}') == b'{"error": "7 chars are no secret"}'
    assert Mask()(b"sk-abcde") == b"sk-abcde"


def test_the_latest_four_secrets_of_an_owner_are_masked() -> None:
    mask = Mask()
    for number in range(6):
        mask.add_secret("provider", f"sk-token-{number}")
    mask.add_secret("another", "sk-other-one")
    assert mask(b"sk-token-0 sk-token-1") == b"sk-token-0 sk-token-1"
    assert mask(b"sk-token-2 sk-token-5 sk-other-one") == b"*** *** ***"
