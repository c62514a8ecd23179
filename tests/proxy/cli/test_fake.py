"""`dragoman fake`."""

from __future__ import annotations

import pytest

from dragoman.contract import fakes

from .conftest import Command


def test_fake_starts_a_provider_with_its_options(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    ran: list[fakes.FakeProvider] = []
    monkeypatch.setattr(fakes, "run_until_signal", lambda fake, *_: ran.append(fake))
    args = ("--port", "9", "--behaviour", "tools", "--profile", "native")
    assert command("fake", "mindie", *args, DRAGOMAN_FAKE_API_KEY="k").exit_code == 0
    (fake,) = ran
    assert (fake.dialect, fake.port, fake.behaviour) == ("mindie", 9, "tools")
    assert (fake.api_key, fake.profile) == ("k", "native")


def test_fake_lists_behaviours_and_refuses_wrong_arguments(command: Command) -> None:
    assert command("fake", "--list").stdout.strip() == fakes.list_behaviours().strip()
    for args in (("fake",), ("fake", "nobody"), ("fake", "openai", "--behaviour", "nonsense")):
        result = command(*args)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("error: ")
