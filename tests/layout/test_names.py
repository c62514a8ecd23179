"""Names and sentences of the source tree: verbs for functions, retired names, docstrings, plain words.

Each check runs once for each top-level folder. It covers what a program can check of the rules in CONTRIBUTING.md: it
cannot see whether a name is right, or whether a docstring is true.
"""

from __future__ import annotations

import ast

import pytest
from name_rules import find_participles, find_retired_names, find_test_ids, reads_as_participle
from sentence_rules import (
    STOP_WORDS,
    docstring_lacks,
    find_bad_docstrings,
    find_stop_words,
    list_comments,
    list_messages,
    list_strings,
    raised_by_function,
)
from source_tree import is_public, list_functions

FOLDERS = ("adapters", "contract", "local_engine", "proxy", "schemas", "tools")
DOCUMENTED_FOLDERS = ("adapters", "schemas")


@pytest.mark.parametrize("folder", FOLDERS)
def test_functions_are_named_by_verbs_or_nouns(folder: str) -> None:
    assert list(find_participles(folder)) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_retired_names_are_gone(folder: str) -> None:
    assert list(find_retired_names(folder)) == []


@pytest.mark.parametrize("folder", ["tests"])
def test_names_of_tests_say_what_they_show(folder: str) -> None:
    assert list(find_test_ids(folder)) == []


@pytest.mark.parametrize("folder", DOCUMENTED_FOLDERS)
def test_public_functions_have_docstrings_that_name_their_exceptions(folder: str) -> None:
    assert list(find_bad_docstrings(folder)) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_sentences_use_plain_words(folder: str) -> None:
    assert list(find_stop_words(folder)) == []


@pytest.mark.parametrize(
    "name", ["told", "asked_by", "models_told", "written", "forgotten", "masked_by_name", "problems_shown"]
)
def test_a_participle_is_found(name: str) -> None:
    assert reads_as_participle(name)


@pytest.mark.parametrize(
    "name", ["is_sealed", "has_finished", "nested_tool", "write_run", "feed", "embed", "embedded_folder", "read", "cut"]
)
def test_verbs_questions_and_nouns_are_no_participles(name: str) -> None:
    assert not reads_as_participle(name)


SOURCE = '''
def undocumented(): ...
def silent():
    """Does something."""
    _check()
def honest():
    """Does something. Raises Fault if it cannot."""
    _check()
def careful():
    """Does something."""
    try:
        _check()
    except Fault:
        return None
def _check():
    raise _refusal()
def _refusal() -> Fault: ...
class Reader:
    @property
    def size(self): ...
    def feed(self): ...
    def scan(self):
        """Scans."""
        self._fail()
    def _fail(self):
        raise ValueError("no")
def fault() -> Fault:
    """Makes a fault."""
    return _refusal()
'''


def test_docstrings_are_compared_with_what_functions_raise() -> None:
    tree = ast.parse(SOURCE)
    raised = raised_by_function(tree)
    lacks = {node.name: list(docstring_lacks(node, raised)) for node in filter(is_public, list_functions(tree))}
    assert {name: found for name, found in lacks.items() if found} == {
        "undocumented": ["no docstring"],
        "silent": ["does not say that it raises Fault"],
        "scan": ["does not say that it raises ValueError"],
    }


@pytest.mark.parametrize(
    "text", ["it stands here", "Beside it", "is mended", "knows nothing of it", "has no word for it"]
)
def test_a_stop_word_is_found(text: str) -> None:
    assert STOP_WORDS.search(text)


@pytest.mark.parametrize("text", ["standard", "recommend", "amended", "besides", "comes outside", "believes"])
def test_other_words_are_none(text: str) -> None:
    assert not STOP_WORDS.search(text)


def test_comments_strings_and_messages_are_read() -> None:
    source = 'x = f"a {1} beside"  # stands\n'
    assert [text for _, text in list_strings(ast.parse(source))] == ["a ", " beside"]
    assert list(list_comments(source)) == [(1, "# stands")]
    schema = {"allOf": [{"x-message": "one"}], "properties": {"title": {"title": "two"}}}
    assert list(list_messages(schema)) == ["one", "two"]
