"""Chat templates: the common families' ways, and templates that mean harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.adapters.faults import Fault
from dragoman.local_engine.conversation import messages_for, variables
from dragoman.local_engine.places import FolderError
from dragoman.local_engine.reasoning import THINK, find_marks
from dragoman.local_engine.sandbox import Bounds
from dragoman.local_engine.template import ChatTemplate
from dragoman.local_engine.toolforms import find_form

TEMPLATES = Path(__file__).parent / "templates"
HI = [{"role": "user", "content": "hi"}]
TOOLS = [{"type": "function", "function": {"name": "clock", "description": "", "parameters": {"type": "object"}}}]
FAMILIES = {
    "hermes": "hermes",
    "qwen_thinking": "hermes",
    "llama3": "llama3",
    "mistral": "mistral",
    "mistral_args": "mistral-args",
    "pythonic": "pythonic",
}


def source(name: str) -> str:
    return (TEMPLATES / f"{name}.jinja").read_text()


@pytest.mark.parametrize(("name", "form"), FAMILIES.items())
def test_families_are_known_by_their_templates(name: str, form: str) -> None:
    text = source(name)
    found = find_form(text, {})
    assert found is not None and found.name == form
    assert find_marks(text, {}) == (THINK if name == "qwen_thinking" else None)
    prompt = ChatTemplate(text, {"bos_token": {"content": "<s>"}}).render(HI, TOOLS)
    assert "hi" in prompt and "clock" in prompt
    assert prompt.startswith("<s>") == (name in ("llama3", "mistral"))


def test_a_conversation_with_calls_is_rendered() -> None:
    text = source("mistral")
    call = {"id": "call_abc", "type": "function", "function": {"name": "clock", "arguments": '{"zone": "ü"}'}}
    request: dict[str, Any] = {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
        ]
    }
    prompt = ChatTemplate(text).render(messages_for(request, text, find_form(text, {})))
    assert prompt.startswith('[INST]a\nb[/INST][TOOL_CALLS][{"name": "clock", "arguments": {"zone": "ü"}, "id": "')


def test_what_a_template_refuses_is_the_conversations_fault() -> None:
    with pytest.raises(Fault, match="have to take turns") as refused:
        ChatTemplate(source("mistral")).render([*HI, *HI])
    assert (refused.value.kind, refused.value.path) == ("invalid_request", ("messages",))


def test_thinking_is_the_requests_to_switch() -> None:
    template = ChatTemplate(source("qwen_thinking"))
    assert THINK.closed_by(template.render(HI, **variables({"reasoning_effort": "none"})))
    assert THINK.opened_by(template.render(HI, **variables({"chat_template_kwargs": {"always": True}})))
    with pytest.raises(Fault) as refused:
        variables({"chat_template_kwargs": {"messages": []}})
    assert refused.value.path == ("chat_template_kwargs", "messages")


DOUBLING = "{% set ns = namespace(a=START) %}{% for i in range(60) %}{% set ns.a = STEP %}{% endfor %}{{ ns.a }}"
HARMFUL = [
    "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}",
    "{% for i in range(9999) %}{% for j in range(9999) if false %}{% endfor %}{% endfor %}",
    "{% for i in range(9999) %}{% for j in range(9999) %}" + "x" * 9999 + "{% endfor %}{% endfor %}",
    "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(50) }}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    DOUBLING.replace("START", "'x'").replace("STEP", "ns.a ~ ns.a"),
    DOUBLING.replace("START", "'x'").replace("STEP", "ns.a + ns.a"),
    DOUBLING.replace("START", "[1]").replace("STEP", "ns.a + ns.a"),
    DOUBLING.replace("START", "[1]").replace("STEP", "[ns.a, ns.a]"),
    DOUBLING.replace("START", "9").replace("STEP", "ns.a * ns.a"),
    DOUBLING.replace("START", "'x'").replace("STEP", "ns.a|replace('x', 'xx')"),
    DOUBLING.replace("START", "'x'").replace("STEP", "ns.a.replace('x', 'xx')"),
    DOUBLING.replace("{% set ns.a = STEP %}", "{% set b %}{{ ns.a }}{{ ns.a }}{% endset %}{% set ns.a = b %}").replace(
        "START", "'x'"
    ),
    "{{ 'a' * 10000000000 }}",
    "{{ 'a'.center(10000000000) }}",
    "{{ '%10000000000d' % 1 }}",
    "{{ '{:10000000000}'.format(1) }}",
    "{{ 9 ** 9 ** 9 }}",
    "{{ range(1000000000) }}",
    "{% set a = 'x' * 4000000 %}{{ [a, a, a, a]|tojson }}",
    "{% set a = 'x' * 4000000 %}{{ ([a] * 100000)|join }}",
    "{{ 'a'|center(10000000000) }}",
    "{{ ''.__class__ }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ messages.__class__ }}",
    "{{ messages[0]['__class__'].x }}{{ cycler.__init__.__globals__ }}",
    "{{ self.__init__ }}",
    "{{ ''|attr('__class__') }}",
    "{{ messages.append(1) }}",
    "{{ messages[0].update({'role': 'system'}) }}",
    "{% for",
    "{% break %}",
    "x" * 1_000_001,
]


@pytest.mark.parametrize("text", HARMFUL, ids=lambda text: text[:60])
def test_harmful_templates_are_refused_with_their_folder(text: str) -> None:
    with pytest.raises(FolderError, match="the chat template"):
        ChatTemplate(text, bounds=Bounds(steps=50_000, chars=2_000_000))


@pytest.mark.parametrize(
    "text", ["{% include 'x' %}", "{% import '/etc/passwd' as p %}", "{{ lipsum(9) }}", "{{ a.b }}"]
)
def test_what_is_not_there_ends_the_request_only(text: str) -> None:
    with pytest.raises(Fault, match="cannot render"):
        ChatTemplate(text).render(HI)


def test_names_of_the_template_hide_no_charge() -> None:
    loops = "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}"
    with pytest.raises(FolderError, match="steps"):
        ChatTemplate(
            "{% set charge = 1 %}{% set environment = 1 %}{% set concatenate = 1 %}" + loops, bounds=Bounds(steps=5000)
        )


def test_ordinary_templates_keep_their_meaning() -> None:
    text = (
        "{% for m in messages if m.role == 'user' %}{{ loop.index0 }}{% else %}none{% endfor %}"
        "{% set a, b = 1, [2, 3] %}{{ a }}{{ b[-1] }}{% for k, v in {'x': 1}.items() %}{{ k ~ '=' ~ v }}{% endfor %}"
        "{{ messages[::-1][0].role }}{{ messages | selectattr('role', 'equalto', 'user') | list | length }}"
        "{% set x %}<{{ a }}>{% endset %}{{ x }}{% macro f(y) %}({{ y }}{{ caller() }}){% endmacro %}"
        "{% call f('z') %}!{% endcall %}{{ 3 % 2 }}{{ 'b' in ('a', 'b') }}{% generation %}g{% endgeneration %}"
        "{% for i in [1, 2, 3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}"
        "{{ strftime_now('%Y') | length }}"
    )
    assert ChatTemplate(text).render(HI) == "013x=1user1<1>(z!)1Trueg14"
