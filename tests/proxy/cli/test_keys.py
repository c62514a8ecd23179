"""`dragoman keys`: a new key, of which the configuration has the hash."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.adapters.faults import Fault
from dragoman.proxy.config.load import check
from dragoman.proxy.routing.keys import Keys

from .conftest import GOOD, Command


def test_a_new_key_works_with_the_lines_that_are_printed(empty_folder: Path, command: Command) -> None:
    result = command("keys", "new", "--name", "alice")
    assert result.exit_code == 0
    key, _, rest = result.output.partition("\n")
    lines = rest[rest.index("keys:") :]
    assert key not in lines
    file = empty_folder / "dragoman.yaml"
    file.write_text(GOOD + lines)
    checked = check(file, {})
    assert not checked.warnings
    keys = Keys(checked.config.keys)
    assert keys.authenticate({"authorization": f"Bearer {key}", "x-api-key": key}).name == "alice"
    with pytest.raises(Fault, match="does not know this API key"):
        keys.authenticate({"x-api-key": key[:-1]})


def test_each_key_is_another_one(command: Command) -> None:
    made = {command("keys", "new").output.splitlines()[0] for _ in range(20)}
    assert len(made) == 20
    assert all(key.startswith("sk-dragoman-") and len(key) == 55 for key in made)


def test_a_name_that_the_configuration_refuses(command: Command) -> None:
    result = command("keys", "new", "--name", "a b")
    assert (result.exit_code, "a name has letters" in result.output) == (2, True)
