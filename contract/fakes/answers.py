"""What a fake's model says, before any dialect has a word in it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from dragoman.contract.dialects import dialect

from .samples import sample

__all__ = [
    "SENTENCE",
    "Answer",
    "Ask",
    "Json",
    "ToolCall",
    "attend",
    "call",
    "calls",
    "filled",
    "objects",
    "pieces",
    "prompts_of",
    "refusal",
    "say",
    "text_of",
    "think",
]

Json: TypeAlias = dict[str, Any]

SENTENCE = "The dragoman bows to both courts: “grüß Gott, καλημέρα, 你好 👋🏽” – and the talks begin."
THOUGHTS = "They greet me in three tongues, so I answer in all of them 🤔."
REFUSAL = "I can’t help with that request."
WEATHER: Json = {
    "name": "get_weather",
    "parameters": {"properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@dataclass(frozen=True, slots=True)
class Ask:
    """One request as the fake's model sees it, and how it is to behave. `number` counts the fake's requests from 1;
    `body` is a request of Responses as chat, `asked` as it came."""

    dialect: str
    profile: str
    body: Mapping[str, Any]
    model: str
    number: int
    stream: bool
    origin: str
    args: Mapping[str, float | str]
    protocol: str = "chat"
    asked: Mapping[str, Any] = field(default_factory=dict)

    def figure(self, name: str) -> float:
        return float(self.args[name])

    def word(self, name: str) -> str:
        return str(self.args[name])

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        return objects(self.body.get("messages"))

    @property
    def prompts(self) -> list[str]:
        """The prompts of a completions request."""
        return prompts_of(self.body)

    @property
    def choices(self) -> int:
        """How many are wanted, for each prompt."""
        wanted = self.body.get("n")
        return wanted if isinstance(wanted, int) and 0 < wanted <= 128 else 1

    @property
    def include_usage(self) -> bool:
        options = self.body.get("stream_options")
        return isinstance(options, Mapping) and options.get("include_usage") is True


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`arguments` is JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answer:
    """`finish` is OpenAI's word, or any other, sent as it is; `extra` joins the reply, or its last chunk."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str = "stop"
    extra: Mapping[str, Any] | None = None


def say(ask: Ask) -> Answer:
    """A fixed sentence; `say` replaces it, `words` repeats it up to that many words."""
    text = str(ask.args.get("say") or SENTENCE)
    wanted = int(ask.args.get("words", 0))
    if wanted:
        words = text.split()
        text = " ".join(words[number % len(words)] for number in range(wanted))
    return Answer(text=text)


def think(ask: Ask) -> Answer:
    return replace(say(ask), reasoning=THOUGHTS)


def refusal(ask: Ask) -> Answer:
    """A refusal: in a field of its own if the dialect has one, else as text."""
    own = dialect(ask.dialect).reply_form("chat", ask.profile).get("refusals", False)
    return Answer(refusal=REFUSAL) if own else Answer(text=REFUSAL)


def calls(ask: Ask, count: int = 1) -> Answer:
    """Calls of the request's first tools, or of `get_weather`; once the results are there, they are told in text."""
    return _told(ask) or _calling(ask, _tools(ask), count)


def call(ask: Ask) -> Answer:
    """A call of the tool `name`, or of the first, with the JSON text `arguments` or made-up ones."""
    name = ask.word("name")
    tools = [tool for tool in _tools(ask) if not name or tool.get("name") == name]
    made = _calling(ask, tools or [{**WEATHER, "name": name or WEATHER["name"]}], 1)
    given = ask.word("arguments")
    return replace(made, calls=(replace(made.calls[0], arguments=given),)) if given else made


def use(ask: Ask) -> Answer:
    """What `call` does; once the results are there, they are told in text."""
    return _told(ask) or call(ask)


def attend(ask: Ask) -> Answer:
    """What a model would do: call the tool that it must call, tell what tools said, call those that the user names;
    else JSON where the request wants it, reasoning where it wants that, and text as long as it may be; count where
    told to."""
    choice = ask.body.get("tool_choice")
    if _forces(choice):
        return _calling(ask, _tools(ask), 1)
    if told := _told(ask):
        return told
    asked = _last_user_text(ask) if choice != "none" else ""
    named = [tool for tool in _tools(ask) if re.search(rf"\b{re.escape(str(tool.get('name')))}\b", asked)]
    if named:
        return _calling(ask, named, 1 if ask.body.get("parallel_tool_calls") is False else len(named))
    said = filled(ask) if _wants_json(ask) else _bounded(ask, _count(ask) or say(ask))
    return replace(said, reasoning=THOUGHTS) if _wants_reasoning(ask) else said


def _count(ask: Ask) -> Answer | None:
    """A long answer, for who asks to count up to hundreds."""
    wanted = re.search(r"\bcount\b.*\bhundred\b", _last_user_text(ask), re.IGNORECASE)
    return Answer(text=" ".join(map(str, range(1, 201)))) if wanted else None


def _bounded(ask: Ask, said: Answer) -> Answer:
    """No longer than the request allows: words stand for tokens."""
    limit = ask.body.get("max_completion_tokens", ask.body.get("max_tokens"))
    words = re.findall(r"\s*\S+|\s+$", said.text)
    if not isinstance(limit, int) or len(words) <= limit:
        return said
    return replace(said, text="".join(words[:limit]), finish="length")


def filled(ask: Ask) -> Answer:
    """JSON text that fits the request's response format."""
    wanted = ask.body.get("response_format")
    described = wanted.get("json_schema") if isinstance(wanted, Mapping) else None
    schema = described.get("schema") if isinstance(described, Mapping) else None
    value = {"answer": SENTENCE} if schema is None else sample(schema)
    return Answer(text=json.dumps(value, ensure_ascii=False))


def text_of(message: Mapping[str, Any]) -> str:
    """A message's text, whether its content is a string or parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return " ".join(str(part["text"]) for part in objects(content) if "text" in part)


def prompts_of(body: Mapping[str, Any]) -> list[str]:
    """The prompts as texts, tokens as their numbers; one that is empty where there is none."""
    prompt = body.get("prompt")
    if not isinstance(prompt, list) or all(isinstance(token, int) for token in prompt):
        return [_prompt_text(prompt)]
    return [_prompt_text(one) for one in prompt]


def _prompt_text(prompt: Any) -> str:
    return " ".join(map(str, prompt)) if isinstance(prompt, list) else str(prompt or "")


def pieces(text: str) -> list[str]:
    """About one word each; together they are the text."""
    return re.findall(r"\s*\S+|\s+$", text)


def objects(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a JSON array; nothing of any other value: an unvalidated request may hold anything."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _results(ask: Ask) -> list[Mapping[str, Any]]:
    """The tool messages at the end of the conversation, oldest first."""
    found: list[Mapping[str, Any]] = []
    for message in reversed(ask.messages):
        if message.get("role") != "tool":
            break
        found.insert(0, message)
    return found


def _told(ask: Ask) -> Answer | None:
    texts = [text_of(message) for message in _results(ask)]
    return Answer(text=f"The tools said: {' | '.join(texts)}") if texts else None


def _last_user_text(ask: Ask) -> str:
    users = [message for message in ask.messages if message.get("role") == "user"]
    return text_of(users[-1]) if users else ""


def _forces(choice: Any) -> bool:
    return choice == "required" or (isinstance(choice, Mapping) and isinstance(choice.get("function"), Mapping))


def _wants_json(ask: Ask) -> bool:
    wanted = ask.body.get("response_format")
    return isinstance(wanted, Mapping) and wanted.get("type") in ("json_object", "json_schema")


def _wants_reasoning(ask: Ask) -> bool:
    """Each dialect's switch for it."""
    switches = ask.body.get("chat_template_kwargs"), ask.body.get("thinking")
    if any(isinstance(one, Mapping) and (one.get("enable_thinking") or one.get("budget_tokens")) for one in switches):
        return True
    return ask.body.get("reasoning_effort") not in (None, "none")


def _tools(ask: Ask) -> list[Mapping[str, Any]]:
    """The functions to choose from: the one that `tool_choice` names, else those of the request."""
    tools = objects([tool.get("function") for tool in objects(ask.body.get("tools"))])
    choice = ask.body.get("tool_choice")
    for chosen in objects([choice.get("function")] if isinstance(choice, Mapping) else []):
        name = chosen.get("name")
        tools = [tool for tool in tools if tool.get("name") == name] or tools
    return tools


def _calling(ask: Ask, tools: list[Mapping[str, Any]], count: int) -> Answer:
    tools = tools or [WEATHER]
    made = tuple(_call(ask, number, tools[number % len(tools)]) for number in range(count))
    return Answer(calls=made, finish="tool_calls")


def _call(ask: Ask, number: int, tool: Mapping[str, Any]) -> ToolCall:
    arguments = sample(tool.get("parameters") or {"type": "object"})
    return ToolCall(
        id=f"call_fake{ask.number}x{number}",
        name=str(tool.get("name")),
        arguments=json.dumps(arguments, ensure_ascii=False),
    )
