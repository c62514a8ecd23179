"""Secrets in texts that clients and providers wrote."""

from __future__ import annotations

import pytest

from dragoman.proxy.telemetry.content_mask import ContentMask, find_header_secrets
from dragoman.proxy.telemetry.mask import Mask

_MASK = ContentMask(Mask())
_SIZE = 500_000  # characters: if time grew with the square of the text, each of these would take minutes


@pytest.mark.parametrize(
    "text",
    [
        '"' + "api_key" * (_SIZE // 7),
        "?" + "api_key" * (_SIZE // 7),
        "\\" * _SIZE,
        '\\"api_key' * (_SIZE // 9),
        '"api_key"' + " " * _SIZE,
        '"api_key": "' * (_SIZE // 12),
    ],
    ids=["an endless name", "an endless parameter", "backslashes", "names in JSON text", "spaces", "open quotes"],
)
def test_a_hostile_text_is_masked_in_time_in_proportion_to_its_length(text: str) -> None:
    assert _MASK.mask_text(text)


def test_a_cut_body_without_spaces_loses_at_most_what_a_secret_can_be_long() -> None:
    image = "iVBORw0KGgo" * (_SIZE // 11)
    shown = _MASK.mask_text(f'{{"url": "data:image/png;base64,{image}', is_cut=True)
    assert len(shown) > _SIZE - 5_000


@pytest.mark.parametrize("cut", ['{"note": "the word is hunter2secr', '{"note": "the word is '])
def test_the_last_word_of_a_cut_text_is_left_out(cut: str) -> None:
    assert _MASK.mask_text(cut, is_cut=True) == '{"note": "the word is '


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"api_key": "hunter2hunter2"}', '{"api_key": "***"}'),
        ('{"AWS-Secret-Access-Key": "a\\"b"}', '{"AWS-Secret-Access-Key": "***"}'),
        ('{"arguments": "{\\"password\\": \\"hunter2\\"}"}', '{"arguments": "{\\"password\\": \\"***\\"}"}'),
        ('"{\\\\\\"passwd\\\\\\":\\\\\\"hunter2\\\\\\"}"', '"{\\\\\\"passwd\\\\\\":\\\\\\"***\\\\\\"}"'),
        ("GET /v1?x=1&api-key=hunter2 HTTP/1.1", "GET /v1?x=1&api-key=*** HTTP/1.1"),
    ],
)
def test_what_a_name_calls_a_secret_is_masked(text: str, shown: str) -> None:
    assert _MASK.mask_text(text) == shown


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("Authorization", "Bearer hunter2", "Bearer ***"),
        ("authorization", "hunter two", "***"),
        ("X-Api-Key", "hunter2", "***"),
        ("X-Ratelimit-Remaining-Tokens", "12", "12"),
    ],
)
def test_a_secret_header_shows_its_scheme_alone(name: str, value: str, shown: str) -> None:
    assert _MASK.mask_header(name, value) == shown


@pytest.mark.parametrize("name", ["X-Api-Token", "X-Auth-Token", "X-Amz-Security-Token", "Private-Token", "Token"])
def test_a_header_named_token_holds_a_secret(name: str) -> None:
    assert _MASK.mask_header(name, "hunter2-hunter2") == "***"
    assert find_header_secrets([(name, "hunter2-hunter2")]) == {"hunter2-hunter2"}


@pytest.mark.parametrize(
    "name", ["x-ratelimit-remaining-tokens", "x-prompt-tokens", "anthropic-ratelimit-input-tokens-remaining"]
)
def test_a_header_with_a_number_of_tokens_is_shown(name: str) -> None:
    assert _MASK.mask_header(name, "149984000") == "149984000"
    assert find_header_secrets([(name, "149984000")]) == set()
