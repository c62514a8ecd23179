from __future__ import annotations

import copy

from dragoman.adapters.edits import Edits, remove, replace


def test_nested_values_are_copied_on_the_way() -> None:
    shared = {"tools": [{"function": {"name": "f", "strict": True}}, {"function": {"name": "g"}}], "user": "u"}
    before = copy.deepcopy(shared)
    body = dict(shared)
    remove(body, ("tools", 0, "function", "strict"))
    replace(body, ("tools", 1, "function", "description"), "")
    assert shared == before
    assert body["tools"] == [{"function": {"name": "f"}}, {"function": {"name": "g", "description": ""}}]


def test_the_outermost_object_is_altered_in_place() -> None:
    body = {"user": "u", "stop": ["a", "b"]}
    remove(body, ("user",))
    remove(body, ("stop", 0))
    assert body == {"stop": ["b"]}


def test_many_edits_copy_what_is_on_the_way_once() -> None:
    twin = {"name": "f", "strict": True}
    shared = {"tools": [{"function": twin}, {"function": twin}]}
    before = copy.deepcopy(shared)
    body = dict(shared)
    edits = Edits(body)
    edits.remove(("tools", 0, "function", "strict"))
    once = body["tools"]
    edits.replace(("tools", 0, "function", "name"), "g")
    edits.remove(("tools", 1, "function", "name"))
    assert body["tools"] is once
    assert shared == before
    assert body == {"tools": [{"function": {"name": "g"}}, {"function": {"strict": True}}]}


def test_a_parameter_of_which_nothing_is_left_is_removed() -> None:
    shared = {"text": {"verbosity": "low", "format": 1}, "reasoning": {"effort": "low"}, "tools": [{"a": 1}]}
    before = copy.deepcopy(shared)
    body = dict(shared)
    edits = Edits(body)
    for path in (("reasoning", "effort"), ("text", "verbosity"), ("tools", 0, "a")):
        edits.remove_parameter(path)
    assert (body, shared) == ({"text": {"format": 1}, "tools": [{}]}, before)
