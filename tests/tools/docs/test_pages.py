"""The generated pages in docs/ agree with the schemas and the adapters."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dragoman.adapters import dialects
from dragoman.schemas import find_base, load, names, profiles
from tools.docs import pages
from tools.docs.__main__ import main
from tools.docs.pages import find_stale, make_pages, write_pages
from tools.docs.trials import SILENT

DOCS = Path(__file__).resolve().parents[3] / "docs"
COMMAND = "python -m tools.docs"
BAR = re.compile(r"(?<!\\)\|")


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return make_pages()


@pytest.fixture
def made_once(monkeypatch: pytest.MonkeyPatch, made: dict[str, str]) -> None:
    """The pages are not made again for every check."""
    monkeypatch.setattr(pages, "make_pages", lambda: made)


@pytest.mark.usefixtures("made_once")
def test_the_pages_in_docs_are_up_to_date() -> None:
    assert find_stale(DOCS) == [], f"run: {COMMAND}"


@pytest.mark.usefixtures("made_once")
def test_stale_pages_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0
    (tmp_path / "losses.md").unlink()
    (tmp_path / "dialects" / "azure.md").write_text("old", "utf-8")
    (tmp_path / "dialects" / "gone.md").write_text("of a dialect that no longer exists", "utf-8")
    assert main(["--check", str(tmp_path)]) == 1
    printed = capsys.readouterr().err
    assert [line.rpartition("/")[2] for line in printed.splitlines()] == ["azure.md", "gone.md", "losses.md"]
    assert not (tmp_path / "losses.md").exists(), "a check wrote something"


@pytest.mark.usefixtures("made_once")
def test_a_stale_block_of_a_handwritten_page_is_named(tmp_path: Path) -> None:
    write_pages(tmp_path)
    page = tmp_path / "pipeline.md"
    page.write_text((DOCS / "pipeline.md").read_text("utf-8").replace("lost / repeat_call", "lost / ignore"), "utf-8")
    assert find_stale(tmp_path) == ["pipeline.md"]
    write_pages(tmp_path)
    assert page.read_bytes() == (DOCS / "pipeline.md").read_bytes()


def test_writing_twice_gives_the_same(tmp_path: Path, made: dict[str, str]) -> None:
    write_pages(tmp_path)
    written = {str(file.relative_to(tmp_path)): file for file in tmp_path.rglob("*") if file.is_file()}
    assert {name: file.read_text("utf-8") for name, file in written.items()} == made


def test_every_page_says_that_it_is_generated(made: dict[str, str]) -> None:
    tables = {"command-line.md", "dragoman.1", "losses.md", "model-facts.md", "quirks.md", "settings.md"}
    assert made.keys() == tables | {f"dialects/{name}.md" for name in dialects}
    for text in made.values():
        assert COMMAND in text.partition("\n")[0]


def test_rows_of_a_table_have_the_same_length(made: dict[str, str]) -> None:
    for name, text in made.items():
        for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            bars = {len(BAR.findall(line)) for line in block.splitlines()}
            assert len(bars) == 1, f"{name}: {block[:200]}"


def test_every_key_of_every_schema_is_on_its_page(made: dict[str, str]) -> None:
    """That of another vendor's schema is on the vendor's page."""
    for name in names():
        base = find_base(name)
        dialect = (name if base is None else base[0]).partition("/")[0]
        for profile in profiles(name) if dialect in dialects else ():
            page = made[f"dialects/{dialect}.md"]
            missing = [key for key in load(name, profile)["properties"] if f"| `{key}` |" not in page]
            assert not missing, f"{name} ({profile})"


def test_every_change_has_a_record(made: dict[str, str]) -> None:
    rows = [line for line in made["losses.md"].splitlines() if SILENT in line]
    assert not rows


def test_keys_of_every_kind_of_event_are_listed(made: dict[str, str]) -> None:
    row = "| `response.output_text.done` | `item_id` (string), `output_index` (integer), `content_index` (integer), "
    assert row + "`text` (string), `logprobs` (array of objects) |" in made["dialects/openai.md"]
    types = [branch["if"]["properties"]["type"] for branch in load("openai/responses.event")["allOf"]]
    words = {word for rule in types for word in rule.get("enum", [rule.get("const")])}
    missing = [word for word in words if f"`{word}`" not in made["dialects/openai.md"].partition("Keys by event")[2]]
    assert len(words) > 40
    assert missing == []
    assert "Keys by event" not in made["dialects/mindie.md"]


def test_every_setting_is_on_its_page(made: dict[str, str]) -> None:
    schema = load("config")
    tables = [schema, *(rule for rule in schema["$defs"].values() if "properties" in rule)]
    missing = [key for rule in tables for key in rule["properties"] if f"\n| `{key}` |" not in made["settings.md"]]
    assert missing == []
    assert (
        "| `port` | integer, 0 to 65535 | `8080` | The port to listen on; 0 takes a free one. |" in made["settings.md"]
    )
    assert "| `drain` | [server.drain](#serverdrain) |" in made["settings.md"]


def test_every_option_is_on_its_page(made: dict[str, str]) -> None:
    page = made["command-line.md"]
    assert re.findall(r"^## dragoman (serve|fake|contract run|import litellm)$", page, re.MULTILINE) == [
        "serve",
        "fake",
        "contract run",
        "import litellm",
    ]
    assert "| `--log-level <debug\\|info\\|warning\\|error>` | `DRAGOMAN_LOG_LEVEL` | `info` | The lowest level" in page
