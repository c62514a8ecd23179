"""The README for an index of packages, which has no other file of the repository."""

from __future__ import annotations

from pathlib import Path

from tools.readme_links import find_relative_links, replace_relative_links

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
TEXT = "![Four panes](docs/a.png) [Clients](docs/clients.md#codex), [uv](https://docs.astral.sh/uv/) [here](#start)"


def test_links_lead_to_the_files_of_the_release() -> None:
    assert replace_relative_links(TEXT, "https://example.com/me/dragoman/", "v1.2.3") == (
        "![Four panes](https://example.com/me/dragoman/raw/v1.2.3/docs/a.png)"
        " [Clients](https://example.com/me/dragoman/blob/v1.2.3/docs/clients.md#codex),"
        " [uv](https://docs.astral.sh/uv/) [here](#start)"
    )


def test_without_a_repository_the_texts_stay() -> None:
    assert replace_relative_links(TEXT, None, "v1") == " Clients, [uv](https://docs.astral.sh/uv/) [here](#start)"


def test_the_readme_has_relative_links_and_none_after_that() -> None:
    assert "docs/configuration.md" in find_relative_links(README)
    for repository in (None, "https://example.com/dragoman"):
        assert find_relative_links(replace_relative_links(README, repository, "v1")) == []
