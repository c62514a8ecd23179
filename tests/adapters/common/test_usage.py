from __future__ import annotations

import pytest

from dragoman.adapters.common.usage import UsageTally, normalize_usage, select_counts


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}, (1, 2, 3)),
        ({"prompt_tokens": 1, "completion_tokens": 2}, (1, 2, 3)),
        ({"prompt_tokens": 1, "total_tokens": 3}, (1, 2, 3)),
        ({"input_tokens": 1, "output_tokens": 2}, (1, 2, 3)),
        ({"prompt_tokens": 1.0, "completion_tokens": 2, "total_tokens": 3.0}, (1, 2, 3)),
        ({"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": -1}, (1, 2, 3)),
    ],
)
def test_counts_are_named_and_completed(reported: dict[str, float], expected: tuple[int, int, int]) -> None:
    usage = normalize_usage(reported)
    assert usage is not None
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == expected


@pytest.mark.parametrize(
    "reported",
    [
        None,
        [],
        {},
        {"total_tokens": 3},
        {"prompt_tokens": None, "completion_tokens": None},
        {"prompt_tokens": 1.5, "completion_tokens": 2},
        {"prompt_tokens": True, "completion_tokens": 2},
        {"prompt_tokens": -1, "completion_tokens": 2},
    ],
)
def test_counts_that_cannot_be_known_are_not_invented(reported: object) -> None:
    assert normalize_usage(reported) is None


def test_flat_reasoning_tokens_move_into_the_details() -> None:
    usage = normalize_usage(
        {
            "prompt_tokens": 1,
            "completion_tokens": 9,
            "total_tokens": 10,
            "reasoning_tokens": 7,
            "prompt_tokens_details": None,
        }
    )
    assert usage == {
        "prompt_tokens": 1,
        "completion_tokens": 9,
        "total_tokens": 10,
        "completion_tokens_details": {"reasoning_tokens": 7},
    }


@pytest.mark.parametrize("odd", [None, -1, 1.5, True, "7", [], {"a": 1}])
def test_details_are_counts(odd: object) -> None:
    counts = {"prompt_tokens": 1, "completion_tokens": 9, "total_tokens": 10}
    details = {"completion_tokens_details": {"reasoning_tokens": odd, "audio_tokens": 2}, "prompt_tokens_details": odd}
    usage = normalize_usage({**counts, **details})
    assert usage is not None
    usage.pop("prompt_tokens_details", None)  # {} where an object had no count
    assert usage == {**counts, "completion_tokens_details": {"audio_tokens": 2}}
    assert normalize_usage({**counts, **details, "reasoning_tokens": 7})["completion_tokens_details"] == {  # type: ignore[index]
        "reasoning_tokens": 7,
        "audio_tokens": 2,
    }
    assert "completion_tokens_details" not in normalize_usage({**counts, "reasoning_tokens": odd})  # type: ignore[operator]


def test_a_tally_takes_the_latest_of_each_choice_and_the_prompt_once() -> None:
    tally = UsageTally()
    tally.add({"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}, [{"index": 0}])
    tally.add({"prompt_tokens": 5, "completion_tokens": None, "total_tokens": None}, [{"index": 0}])
    tally.add({"prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9}, [{"index": 0}])
    tally.add({"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}, [{"index": 1}])
    assert tally.total() == {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}


def test_an_event_of_its_own_is_the_whole() -> None:
    tally = UsageTally()
    tally.add({"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}, [{"index": 0}])
    tally.add({"prompt_tokens": 5, "completion_tokens": 8, "total_tokens": 13}, [])
    total = tally.total()
    assert total is not None
    assert total["completion_tokens"] == 8


def test_only_counts_are_selected() -> None:
    details = {"cached_tokens": 2, "note": "x"}
    reported = {"input_tokens": 3, "details": details, "tier": "standard", "odd": -1, "none": None, "empty": {"a": "b"}}
    assert select_counts(reported) == {"input_tokens": 3, "details": {"cached_tokens": 2}}
    assert [select_counts(other) for other in (None, [1], "x")] == [{}, {}, {}]
