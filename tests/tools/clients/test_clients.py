"""The list of clients, the format of their scripts, what becomes of outcomes, and the page."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest

from tests.tables import for_each
from tools.clients import runner
from tools.clients.catalog import (
    CHECKS,
    CLIENTS,
    LANGUAGES,
    REASONS,
    SCRIPTS,
    Client,
    Reason,
    find_reason,
    load_clients,
)
from tools.clients.judgement import find_defects, shorten_reason, write_count
from tools.clients.outcomes import Outcome, Verdict, load_outcome, parse_verdicts, save_outcome
from tools.clients.page import read_recipe, write_page
from tools.clients.routes import FACES, GATEWAYS, ROUTES
from tools.clients.runner import build_variables, run_script

PAGE = Path(__file__).parents[3] / "docs" / "clients.md"
SHARED = re.compile(r'"\./shared/([^"]+)"|^from (\w+) import \*', re.MULTILINE)
CHECK = re.compile(r"""\b(?:check|report)\(\s*["']([^"']+)["']""")
CAUSE = Reason("provider", "it has none", routes=("mindie",), checks=("embeddings",), text="no vec")


@for_each("client", CLIENTS.values())
def test_every_client_has_a_script_with_known_checks(client: Client) -> None:
    text = client.script.read_text("utf-8")
    checks = [name for part in (text, *_read_shared(text)) for name in CHECK.findall(part)]
    assert checks and set(checks) <= set(CHECKS), checks
    assert bool(read_recipe(client)) == client.recipe
    assert len(read_recipe(client).splitlines()) <= 9


def _read_shared(text: str) -> list[str]:
    names = [node or f"{python}.py" for node, python in SHARED.findall(text)]
    return [(SCRIPTS / "shared" / name).read_text("utf-8") for name in names]


def test_every_script_belongs_to_a_client() -> None:
    files = {file for suffix in LANGUAGES.values() for file in SCRIPTS.glob(f"*.{suffix}")}
    assert files == {client.script for client in CLIENTS.values()}


def test_the_page_has_every_client() -> None:
    text = PAGE.read_text("utf-8")
    assert [client.title for client in CLIENTS.values() if client.title not in text] == []


@pytest.mark.parametrize("row", ["{packages: []}", "{packages: [a], face: x}", "{packages: [a], routes: [x]}"])
def test_wrong_rows_are_refused(tmp_path: Path, row: str) -> None:
    file = tmp_path / "clients.yaml"
    file.write_text(f"one: {{title: One, {row[1:]}", "utf-8")
    with pytest.raises(ValueError, match="one"):
        load_clients(file)


def test_lines_that_are_no_verdicts_are_left_out() -> None:
    lines = ["hello", '{"no": 1}', "{broken", '{"check": "chat", "passed": true}done']
    output = "\n".join([*lines, '{"check": "stream", "passed": false, "reason": "r"}'])
    assert parse_verdicts(output) == [Verdict("chat", True), Verdict("stream", False, "r")]


def test_outcomes_are_kept(tmp_path: Path) -> None:
    outcome = Outcome("1.0", {"a": "1.0"}, {"dragoman": "2"}, {"dragoman": {"azure": [Verdict("chat", False, "é")]}})
    save_outcome(tmp_path, "a", outcome)
    assert load_outcome(tmp_path, "a") == outcome
    assert load_outcome(tmp_path, "b") == Outcome()


def test_causes_match_all_that_they_name() -> None:
    assert find_reason([CAUSE], "a", "dragoman", "mindie", "embeddings", "there is no vector") is CAUSE
    assert find_reason([CAUSE], "a", "dragoman", "azure", "embeddings", "there is no vector") is None
    assert find_reason([CAUSE], "a", "dragoman", "mindie", "embeddings", "other") is None


def test_a_failure_without_a_cause_is_a_defect_only_of_dragoman() -> None:
    routes = {"mindie": [Verdict("embeddings", False, "no vec"), Verdict("chat", False, "x"), Verdict("stream", True)]}
    outcome = Outcome(verdicts={"dragoman": routes, "litellm": routes})
    assert [one.verdict.check for one in find_defects([CAUSE], "a", outcome)] == ["chat"]
    assert write_count(routes["mindie"]) == "1 of 3"
    assert (write_count(routes["mindie"][2:]), write_count([])) == ("1", "–")


def test_reasons_name_nothing_of_a_machine() -> None:
    reason = "no '/v1/models' at http://127.0.0.1:4711/v1/models of over-azure, see /tmp/a-1/b.py: chatcmpl-fake000230"
    assert shorten_reason(reason) == "no '/v1/models' at http://gateway/v1/models of MODEL, see FILE: chatcmpl-fake…"
    assert shorten_reason("a\n" * 200, 5) == "a a a…"


def test_page_has_numbers_causes_recipes_and_what_was_not_run() -> None:
    (name, client), *rest = CLIENTS.items()
    verdicts = {route: [Verdict("chat", True), Verdict("embeddings", route != "mindie", "no vec")] for route in ROUTES}
    unexplained = {route: [Verdict("chat", False, "a | b <c>")] for route in ROUTES}
    outcome = Outcome("9.8.7", verdicts={"dragoman": verdicts, "lenient": unexplained, "litellm": unexplained})
    text = write_page(CLIENTS, [CAUSE], {name: outcome, **{other: Outcome(failure="no wheel") for other, _ in rest}})
    assert f"| {client.title} (`{name}`) | 9.8.7 | 2 | 2 | 2 | 1 of 2 | 2 | 2 | 0 of 6 | 0 of 6 |" in text
    assert f"- it has none (the provider's API lacks it): embeddings over MindIE ({name})." in text
    assert f"- **unexplained**: a \\| b &lt;c>: chat over every route ({name})." in text
    assert f"\n- a \\| b &lt;c>: chat over every route ({name})." in text
    assert "{recipes}" not in text and "recipe" not in read_recipe(client) and read_recipe(client) in text
    assert all(f"{other.title} was not run: {other.note or 'no wheel'}" in text for _, other in rest)
    assert all(f"### What does not pass: {title}" in text for title in GATEWAYS.values())


def test_recipes_have_addresses_instead_of_variables() -> None:
    recipes = [read_recipe(client) for client in CLIENTS.values() if client.recipe]
    assert recipes
    assert not [recipe for recipe in recipes if re.search(r"\b(?:BASE_URL|API_KEY|MODEL)\b|user\(", recipe)]


def test_scripts_get_the_address_of_their_face(tmp_path: Path) -> None:
    client = Client("a", "A", ("a",), face="openai", variables={"OTHER": "{origin}/x {model} {folder}"})
    found = build_variables(client, "http://127.0.0.1:1", "azure", tmp_path, tmp_path)
    assert (found["BASE_URL"], found["MODEL"]) == ("http://127.0.0.1:1" + FACES["openai"], "over-azure")
    assert found["OTHER"] == f"http://127.0.0.1:1/x over-azure {tmp_path}"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("from checks import *\n@check('chat')\ndef _():\n    equal(MODEL, 'over-azure')", [Verdict("chat", True)]),
        (
            "from checks import *\n@check('chat')\nasync def _():\n    contains('ab', 'c')",
            [Verdict("chat", False, "AssertionError: no 'c' in 'ab'")],
        ),
        (
            'print(\'{"check": "chat", "passed": true}\'); raise SystemExit(\'sorry\')',
            [Verdict("chat", True), Verdict("script", False, "exit status 1: sorry")],
        ),
        ("print('nothing')", [Verdict("script", False, "exit status 0: ")]),
        ("import time; time.sleep(600)", [Verdict("script", False, "not done after 5 s: ")]),
    ],
)
async def test_scripts_report_their_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, expected: list[Verdict]
) -> None:
    (tmp_path / "one.py").write_text(script, "utf-8")
    monkeypatch.setattr(runner, "_build_command", lambda *_: [sys.executable, "-P", str(tmp_path / "one.py")])
    client = Client("one", "One", ("one",), timeout=5 if "sleep" in script else 60)
    assert await asyncio.wait_for(run_script(client, "http://127.0.0.1:1", "azure", tmp_path), 60) == expected


def test_causes_are_read() -> None:
    assert REASONS


async def test_scripts_for_node_are_written_before_any_run_and_by_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = CLIENTS["openai-node"]
    (tmp_path / client.name).mkdir()

    async def list_files(client: Client, origin: str, route: str, cache: Path) -> list[Verdict]:
        before = _list_names(cache)
        runner._build_command(client, cache)
        assert _list_names(cache) == before
        return [Verdict(name, True) for name in before]

    monkeypatch.setattr(runner, "run_script", list_files)
    runs = [(client, "dragoman", route) for route in ROUTES]
    found = [verdicts async for _, verdicts in runner.run_clients(runs, {"dragoman": ""}, tmp_path, 2)]
    assert len(found) == len(ROUTES)
    assert all({"openai-node.mjs", "checks.mjs"} <= {one.check for one in verdicts} for verdicts in found)


def _list_names(folder: Path) -> set[str]:
    return {file.name for file in folder.rglob("*")}
