"""Chat templates: those of common model families, their input, and harmful templates."""

from __future__ import annotations

import pytest
from service_rig import HI, TEMPLATES

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.local_engine.model_folder.files import FolderError
from dragoman.local_engine.prompts.chat_template import ChatTemplate
from dragoman.local_engine.prompts.template_input import convert_messages, read_template_variables
from dragoman.local_engine.sandbox import Bounds
from dragoman.local_engine.text.reasoning_parser import THINK_MARKERS, find_reasoning_markers
from dragoman.local_engine.text.tool_call_formats import find_tool_call_format
from tests.tables import for_each

TOOLS = [{"type": "function", "function": {"name": "clock", "description": "", "parameters": {"type": "object"}}}]
FAMILIES = {
    "hermes": "hermes",
    "qwen_thinking": "hermes",
    "llama3": "llama3",
    "mistral": "mistral",
    "mistral_args": "mistral-args",
    "pythonic": "pythonic",
}


def read_template(name: str) -> str:
    return (TEMPLATES / f"{name}.jinja").read_text()


@pytest.mark.parametrize(("name", "format_name"), FAMILIES.items())
def test_a_template_shows_its_tool_call_format_and_markers(name: str, format_name: str) -> None:
    text = read_template(name)
    found = find_tool_call_format(text, {})
    assert found is not None and found.name == format_name
    assert find_reasoning_markers(text, {}) == (THINK_MARKERS if name == "qwen_thinking" else None)
    prompt = ChatTemplate(text, {"bos_token": {"content": "<s>"}}).render(HI, TOOLS)
    assert "hi" in prompt and "clock" in prompt
    assert prompt.startswith("<s>") == (name in ("llama3", "mistral"))


def test_a_conversation_with_tool_calls_is_rendered() -> None:
    text = read_template("mistral")
    call = {"id": "call_abc", "type": "function", "function": {"name": "clock", "arguments": '{"zone": "ü"}'}}
    request: JsonObject = {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
        ]
    }
    prompt = ChatTemplate(text).render(convert_messages(request, text, find_tool_call_format(text, {})))
    assert prompt.startswith('[INST]a\nb[/INST][TOOL_CALLS][{"name": "clock", "arguments": {"zone": "ü"}, "id": "')


def test_a_rejection_by_the_template_is_an_invalid_request() -> None:
    with pytest.raises(Fault, match="have to take turns") as raised:
        ChatTemplate(read_template("mistral")).render([*HI, *HI])
    assert (raised.value.kind, raised.value.path) == ("invalid_request", ("messages",))


def test_a_request_can_turn_reasoning_off_and_on() -> None:
    template = ChatTemplate(read_template("qwen_thinking"))
    assert THINK_MARKERS.is_closed_by(template.render(HI, **read_template_variables({"reasoning_effort": "none"})))
    assert THINK_MARKERS.is_opened_by(
        template.render(HI, **read_template_variables({"chat_template_kwargs": {"always": True}}))
    )
    with pytest.raises(Fault) as raised:
        read_template_variables({"chat_template_kwargs": {"messages": []}})
    assert raised.value.path == ("chat_template_kwargs", "messages")


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


@for_each("text", HARMFUL)
def test_a_harmful_template_is_rejected_with_its_folder(text: str) -> None:
    with pytest.raises(FolderError, match="the chat template"):
        ChatTemplate(text, bounds=Bounds(steps=50_000, chars=2_000_000))


@pytest.mark.parametrize(
    "text", ["{% include 'x' %}", "{% import '/etc/passwd' as p %}", "{{ lipsum(9) }}", "{{ a.b }}"]
)
def test_an_undefined_name_fails_the_request_only(text: str) -> None:
    with pytest.raises(Fault, match="cannot render"):
        ChatTemplate(text).render(HI)


def test_template_variables_cannot_replace_the_sandbox_functions() -> None:
    loops = "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}"
    with pytest.raises(FolderError, match="steps"):
        ChatTemplate(
            "{% set charge = 1 %}{% set environment = 1 %}{% set concatenate = 1 %}" + loops, bounds=Bounds(steps=5000)
        )


def test_the_sandbox_does_not_change_ordinary_templates() -> None:
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
