from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import changes
from dragoman.adapters.changes import Action, Change, Receipt
from dragoman.adapters.paths import Path


def test_unmap_walks_renames_back() -> None:
    receipt = Receipt()
    receipt.record_rename(("max_completion_tokens",), ("max_tokens",), "the target's name for it")
    assert receipt.unmap(("max_tokens",)) == ("max_completion_tokens",)
    assert receipt.unmap(("temperature",)) == ("temperature",)


def test_unmap_of_a_permutation_takes_effect_at_once() -> None:
    receipt = Receipt()
    receipt.map_paths(
        [(("messages", 2), ("messages", 0)), (("messages", 0), ("messages", 1)), (("messages", 1), ("messages", 2))]
    )
    assert [receipt.unmap(("messages", i, "content"))[1] for i in range(3)] == [2, 0, 1]


def test_unmap_goes_through_the_steps_from_the_last_to_the_first() -> None:
    receipt = Receipt()
    receipt.map_paths([(("messages", 1), ("messages", 0)), (("messages", 0), ("messages", 1))])
    receipt.record_rename(("messages", 0, "content"), ("messages", 0, "text"), "another name")
    assert receipt.unmap(("messages", 0, "text", 3)) == ("messages", 1, "content", 3)


def test_changes_show_the_path_that_the_client_wrote() -> None:
    receipt = Receipt()
    receipt.map_paths([(("messages", 1), ("messages", 0)), (("messages", 0), ("messages", 1))])
    receipt.record_drop(("messages", 0, "name"), "not known")
    assert receipt.changes[0].public() == {
        "action": "dropped",
        "weight": "loss",
        "reason": "not known",
        "before": "messages[1].name",
    }


def test_a_receipt_that_is_kept_has_its_changes_alone() -> None:
    receipt = Receipt()
    receipt.record_rename(("a",), ("b",), "x")
    receipt.mark_advisory(("b",))
    receipt.forget_paths()
    assert [change.before for change in receipt.changes] == [("a",)]
    assert receipt.unmap(("b",)) == ("b",)
    assert not receipt.is_advisory(("b",))


def test_words_that_others_chose_are_bounded() -> None:
    receipt = Receipt()
    receipt.record_drop(("x" * 100_000,), f"nobody knows {'y' * 100_000}")
    shown = receipt.changes[0].public()
    assert {name: len(text) for name, text in shown.items() if name in ("before", "reason")} == {
        "before": 500,
        "reason": 500,
    }


PATHS: st.SearchStrategy[Path] = st.lists(st.sampled_from(["a", "b", "x" * 600, 0, 1]), max_size=3).map(tuple)


@given(PATHS, PATHS, st.sampled_from(["renamed", "dropped"]), st.sampled_from(["why", "else"]))
def test_a_change_that_is_remembered_is_shown_as_any_other(before: Path, after: Path, action: Action, why: str) -> None:
    change = Change(action, before, after, why, "form")
    first = change.public()
    assert Change(*change).public() == first
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "_SHOWN", {})
        assert change.public() == first


def test_only_some_frequent_changes_of_few_words_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    remembered: dict[Change, object] = {}
    monkeypatch.setattr(changes, "_SHOWN", remembered)
    monkeypatch.setattr(changes, "_MOST_SHOWN", 2)
    for path in [("x" * 501,), ("messages", 1), ("messages", 0), ("tools",), ("input",)]:
        Change("dropped", path, (), "why", "loss").public()
    assert [change.before for change in remembered] == [("messages", 0), ("tools",)]


def test_a_fork_keeps_what_was_and_shares_nothing() -> None:
    receipt = Receipt()
    receipt.record_drop(("user",), "only advises")
    fork = receipt.fork()
    fork.record_rename(("a",), ("b",), "x")
    assert len(receipt.changes) == 1
    assert receipt.unmap(("b",)) == ("b",)
    assert fork.unmap(("b",)) == ("a",)


def test_the_header_lists_losses_only() -> None:
    receipt = Receipt()
    receipt.record_fill(("stream",), "always explicit")
    assert receipt.header() is None
    receipt.record_drop(("seed",), "the target's API does not have it")
    receipt.record_drop(("messages", 0, 'na"me\n\\%ä'), "odd")
    assert receipt.header() == (
        """dropped;path="seed";reason="the target's API does not have it", """
        'dropped;path="messages[0].na%22me%0A%5C%25%C3%A4";reason="odd"'
    )


def test_the_header_is_bounded_and_says_how_much_is_left_out() -> None:
    receipt = Receipt()
    for i in range(50):
        receipt.record_drop((f"field{i}",), "because")
    header = receipt.header()
    assert header is not None
    assert header.endswith(", more;count=30")
    assert len(header) <= 2048
    receipt = Receipt()
    for i in range(5):
        receipt.record_drop(("x" * 900, i), "because")
    header = receipt.header()
    assert header is not None
    assert header.endswith("more;count=3")
    assert len(header) <= 2048


def test_what_a_fork_has_more_is_taken_over_once() -> None:
    receipt = Receipt()
    receipt.record_drop(("user",), "it only advises")
    forks = [receipt.fork(), receipt.fork()]
    for fork in forks:
        fork.record_drop(("input", 0), "x")
        fork.violations = 2
        receipt.absorb(fork)
    assert [change.before for change in receipt.changes] == [("user",), ("input", 0)]
    assert receipt.violations == 4


def test_what_is_lost() -> None:
    receipt = Receipt()
    receipt.record_drop(("user",), "it only advises")
    receipt.record_drop(("n",), "the same as none", "form")
    receipt.record_clamp(("dimensions",), "at least 1")
    assert receipt.is_lost(("user",))
    assert receipt.is_lost(("dimensions",))
    assert not receipt.is_lost(("n",))
    assert not receipt.is_lost(("temperature",))


def test_the_header_knows_what_another_receipt_has_reported() -> None:
    """A fork that lost something, and what absorbs it, show that as the receipt itself would."""
    receipt = Receipt()
    receipt.record_fill(("n",), "it has no value")
    assert receipt.header() is None
    fork = receipt.fork()
    fork.record_drop(("seed",), "the target lacks it")
    assert receipt.header() is None
    receipt.absorb(fork)
    assert (
        receipt.header()
        == fork.header()
        == receipt.fork().header()
        == 'dropped;path="seed";reason="the target lacks it"'
    )
