"""dragoman-mini as the package ships it: the contents of the folder, its tokenizer and its template."""

from __future__ import annotations

import tomllib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from jinja2.sandbox import ImmutableSandboxedEnvironment

from dragoman.local_engine.mini import FOLDER
from dragoman.local_engine.model_folder.folder import open_folder
from dragoman.local_engine.model_folder.signature import DecoderSignature
from dragoman.local_engine.text.detokenizer import load_tokenizer

MOST_BYTES = 1_500_000
TOKENIZER = load_tokenizer(FOLDER / "tokenizer.json")


def shipped_files() -> set[Path]:
    """The files of the folder that pyproject.toml puts into the wheel."""
    settings = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text("utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["dragoman.local_engine.mini"]
    return {file for pattern in ["*.py", *patterns] for file in FOLDER.glob(pattern)}


def test_the_wheel_holds_the_folder() -> None:
    here = {file for file in FOLDER.rglob("*") if file.is_file() and "__pycache__" not in file.parts}
    assert shipped_files() == here


def test_the_folder_holds_no_code_but_its_path() -> None:
    assert [file.name for file in shipped_files() if file.suffix == ".py"] == ["__init__.py"]


def test_the_folder_is_small() -> None:
    assert sum(file.stat().st_size for file in shipped_files()) <= MOST_BYTES


def test_the_folder_opens() -> None:
    folder = open_folder(FOLDER)
    assert isinstance(folder.signature, DecoderSignature)
    assert (folder.signature.layout, folder.signature.vocab, folder.context) == ("slots", 1536, 2048)
    assert folder.eos == {0} == {TOKENIZER.token_to_id("<|end|>")}
    assert folder.template == (FOLDER / "chat_template.jinja").read_text("utf-8")


@given(st.text())
def test_any_text_has_tokens(text: str) -> None:
    ids = TOKENIZER.encode(text, add_special_tokens=False).ids
    assert TOKENIZER.decode(ids, skip_special_tokens=False) == text


def test_signs_of_json_are_single_tokens() -> None:
    vocabulary = TOKENIZER.get_vocab()
    assert {token for token in vocabulary if set(token) & set('"{}[]')} == set('"{}[]')


def test_the_template_marks_optional_parameters() -> None:
    template = ImmutableSandboxedEnvironment().from_string((FOLDER / "chat_template.jinja").read_text("utf-8"))
    properties = {name: {"type": "string"} for name in ("amount", "to", "unit")}
    parameters = {"properties": properties, "required": ["amount", "to"]}
    several = {"type": "function", "function": {"name": "convert", "description": "", "parameters": parameters}}
    bare = {"type": "function", "function": {"name": "now", "description": ""}}
    assert template.render(messages=[], tools=[several, bare]) == "<|tools|>convert(amount, to, unit?)\nnow()<|end|>"


def test_the_template_writes_calls_and_parts() -> None:
    template = ImmutableSandboxedEnvironment().from_string((FOLDER / "chat_template.jinja").read_text("utf-8"))
    function = {"name": "get_weather", "arguments": {"city": "Paris"}}
    for arguments in ({"city": "Paris"}, '{"city": "Paris"}'):
        calls = [{"id": "1", "type": "function", "function": function | {"arguments": arguments}}]
        messages = [
            {"role": "user", "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]},
            {"role": "assistant", "content": None, "tool_calls": calls},
        ]
        call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
        assert template.render(messages=messages) == f"<|user|>AB<|end|><|assistant|>{call}<|end|>"


def test_its_answers_are_the_most_likely_ones_unless_a_request_wants_others() -> None:
    assert open_folder(FOLDER).sampling == {"temperature": 0}
