"""What a terminal gets of payloads, and what a pipe gets."""

from __future__ import annotations

import io
import sys

import pytest

from dragoman.proxy.cli.payload.output import print_json, write_bytes

SAID = "fine\x1b[2J\x9b31m\x07 ünï\tcode\n"


class Terminal(io.TextIOWrapper):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__(io.BytesIO(), "utf-8")
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def read_written(self) -> str:
        self.flush()
        data = self.detach()
        assert isinstance(data, io.BytesIO)
        return data.getvalue().decode()


@pytest.mark.parametrize(("is_terminal", "shown"), [(True, "fine[2J31m ünï\tcode\n"), (False, SAID)])
def test_bytes_control_no_terminal_and_reach_a_pipe_unaltered(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, shown: str
) -> None:
    output = Terminal(is_terminal)
    monkeypatch.setattr(sys, "stdout", output)
    write_bytes(SAID.encode())
    assert output.read_written() == shown


@pytest.mark.parametrize("no_color", [True, False])
def test_json_controls_no_terminal(monkeypatch: pytest.MonkeyPatch, no_color: bool) -> None:
    output = Terminal(True)
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setenv("NO_COLOR", "1") if no_color else monkeypatch.delenv("NO_COLOR", raising=False)
    print_json({"text": SAID})
    assert "\x9b" not in output.read_written()
