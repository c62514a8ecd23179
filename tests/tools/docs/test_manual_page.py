"""The manual page: what roff makes of it, and that no command is missing."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tools.docs.command_page import list_commands
from tools.docs.manual_page import manual_page


def test_every_command_and_option_is_there() -> None:
    page = manual_page().replace("\\-", "-")
    for context in list_commands():
        assert f".SS {context.command_path}" in page
        for parameter in context.command.params:
            assert all(name in page for name in parameter.opts if name.startswith("--"))


def test_no_line_is_taken_for_a_macro() -> None:
    known = {".TH", ".SH", ".SS", ".TP", ".PP", '.\\"'}
    macros = {line.partition(" ")[0] for line in manual_page().splitlines() if line.startswith((".", "'"))}
    assert macros <= known


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff formats manual pages; it is not installed here")
def test_groff_has_no_complaint() -> None:
    command = ["groff", "-man", "-ww", "-Tutf8"]
    result = subprocess.run(command, input=manual_page(), capture_output=True, text=True, check=True)
    assert result.stderr == ""
    assert result.stdout.startswith("DRAGOMAN(1)")
