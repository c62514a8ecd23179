"""The answers of a fake's model, before a dialect writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dragoman.contract.dialects import load_dialect
from dragoman.contract.json_types import JsonObject, JsonValue

from .schema_samples import make_sample

__all__ = [
    "SENTENCE",
    "Answer",
    "ModelRequest",
    "ToolCall",
    "answer_as_model",
    "answer_with_call",
    "answer_with_calls",
    "answer_with_json",
    "answer_with_reasoning",
    "answer_with_refusal",
    "answer_with_text",
    "read_prompts",
    "read_text",
    "select_objects",
    "split_words",
]

SENTENCE = "The dragoman bows to both courts: “grüß Gott, καλημέρα, 你好 👋🏽” – and the talks begin."
THOUGHTS = "They greet me in three tongues, so I answer in all of them 🤔."
REFUSAL = "I can’t help with that request."
WEATHER: JsonObject = {
    "name": "get_weather",
    "parameters": {"properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request as the fake's model reads it, with the arguments of the behaviour. `number` counts the requests from
    1. `body` is a chat or completions request; a request of Responses or Messages is converted to chat, and `original`
    is the body before that."""

    dialect: str
    profile: str
    body: Mapping[str, JsonValue]
    model: str
    number: int
    stream: bool
    origin: str
    args: Mapping[str, float | str]
    protocol: str = "chat"
    original: Mapping[str, JsonValue] = field(default_factory=dict)

    def number_arg(self, name: str) -> float:
        return float(self.args[name])

    def text_arg(self, name: str) -> str:
        return str(self.args[name])

    @property
    def messages(self) -> list[Mapping[str, JsonValue]]:
        return select_objects(self.body.get("messages"))

    @property
    def prompts(self) -> list[str]:
        """The prompts of a completions request."""
        return read_prompts(self.body)

    @property
    def choices(self) -> int:
        """How many choices the request wants for each prompt."""
        wanted = self.body.get("n")
        return wanted if isinstance(wanted, int) and 0 < wanted <= 128 else 1

    @property
    def include_usage(self) -> bool:
        options = self.body.get("stream_options")
        return isinstance(options, Mapping) and options.get("include_usage") is True


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model says. `finish` is the finish reason in OpenAI's or any other wording, `stopped` the stop sequence
    that ended the text; `blocks` are further blocks of a Messages reply, before its text; `extra` has fields to add to
    the reply or to its last chunk."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str = "stop"
    stopped: str = ""
    blocks: tuple[Mapping[str, JsonValue], ...] = ()
    extra: Mapping[str, JsonValue] | None = None


def answer_with_text(request: ModelRequest) -> Answer:
    """Answer with a fixed sentence. The argument `say` replaces it, `words` repeats it up to that many words."""
    text = str(request.args.get("say") or SENTENCE)
    wanted = int(request.args.get("words", 0))
    if wanted:
        words = text.split()
        text = " ".join(words[number % len(words)] for number in range(wanted))
    return _stop_early(request, Answer(text=text))


def answer_with_reasoning(request: ModelRequest) -> Answer:
    return replace(answer_with_text(request), reasoning=THOUGHTS)


def answer_with_refusal(request: ModelRequest) -> Answer:
    """Answer with a refusal: in its own field if the dialect has one, else as text."""
    form = "messages" if request.protocol == "messages" else "chat"
    has_field = load_dialect(request.dialect).reply_form(form, request.profile).get("refusals", False)
    return Answer(refusal=REFUSAL) if has_field else Answer(text=REFUSAL)


def answer_with_calls(request: ModelRequest, count: int = 1) -> Answer:
    """Call the request's first tools, or `get_weather`; answer with text once the request has the results."""
    return _answer_from_results(request) or _build_calls(request, _available_tools(request), count)


def answer_with_call(request: ModelRequest) -> Answer:
    """Call the tool `name`, or the first one, with the JSON text `arguments` or with generated arguments."""
    name = request.text_arg("name")
    tools = [tool for tool in _available_tools(request) if not name or tool.get("name") == name]
    answer = _build_calls(request, tools or [{**WEATHER, "name": name or WEATHER["name"]}], 1)
    given = request.text_arg("arguments")
    return replace(answer, calls=(replace(answer.calls[0], arguments=given),)) if given else answer


def answer_with_call_or_results(request: ModelRequest) -> Answer:
    """Call a tool as `answer_with_call` does; answer with text once the request has the results."""
    return _answer_from_results(request) or answer_with_call(request)


def answer_as_model(request: ModelRequest) -> Answer:
    """Answer as a model would: call the forced tool, else repeat the tool results, else call the tools that the user
    names, else write text. The text is JSON if the request wants it, has reasoning if the request wants it, and counts
    if the user asks for it; the request's token limit cuts it off."""
    choice = request.body.get("tool_choice")
    if _forces(choice):
        return _build_calls(request, _available_tools(request), 1)
    if results := _answer_from_results(request):
        return results
    text = _last_user_text(request) if choice != "none" else ""
    named = [tool for tool in _available_tools(request) if re.search(rf"\b{re.escape(str(tool.get('name')))}\b", text)]
    if named:
        return _build_calls(request, named, 1 if request.body.get("parallel_tool_calls") is False else len(named))
    if _wants_json(request):
        answer = answer_with_json(request)
    else:
        answer = _limit_length(request, _answer_with_count(request) or answer_with_text(request))
    return replace(answer, reasoning=THOUGHTS) if _wants_reasoning(request) else answer


def _answer_with_count(request: ModelRequest) -> Answer | None:
    """Answer with a long text if the user asks to count to hundreds."""
    wanted = re.search(r"\bcount\b.*\bhundred\b", _last_user_text(request), re.IGNORECASE)
    return Answer(text=" ".join(map(str, range(1, 201)))) if wanted else None


def _stop_early(request: ModelRequest, answer: Answer) -> Answer:
    """End the text before the first stop sequence of the request."""
    stop = request.body.get("stop")
    sequences = [stop] if isinstance(stop, str) else stop if isinstance(stop, list) else []
    ends = [(answer.text.find(one), one) for one in sequences if isinstance(one, str) and one in answer.text]
    if not ends:
        return answer
    end, found = min(ends)
    return replace(answer, text=answer.text[:end], stopped=found)


def _limit_length(request: ModelRequest, answer: Answer) -> Answer:
    """Cut the text off at the token limit of the request; one word counts as one token."""
    limit = request.body.get("max_completion_tokens", request.body.get("max_tokens"))
    words = re.findall(r"\s*\S+|\s+$", answer.text)
    if not isinstance(limit, int) or len(words) <= limit:
        return answer
    return replace(answer, text="".join(words[:limit]), finish="length")


def answer_with_json(request: ModelRequest) -> Answer:
    """Answer with JSON text that matches the response format of the request."""
    wanted = request.body.get("response_format")
    described = wanted.get("json_schema") if isinstance(wanted, Mapping) else None
    schema = described.get("schema") if isinstance(described, Mapping) else None
    value = {"answer": SENTENCE} if schema is None else make_sample(schema)
    return Answer(text=json.dumps(value, ensure_ascii=False))


def read_text(message: Mapping[str, JsonValue]) -> str:
    """Read the text of a message; its content is a string or a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return " ".join(str(part["text"]) for part in select_objects(content) if "text" in part)


def read_prompts(body: Mapping[str, JsonValue]) -> list[str]:
    """Read the prompts as texts, tokens as their numbers. A body without a prompt has one empty prompt."""
    prompt = body.get("prompt")
    if not isinstance(prompt, list) or all(isinstance(token, int) for token in prompt):
        return [_prompt_text(prompt)]
    return [_prompt_text(one) for one in prompt]


def _prompt_text(prompt: JsonValue) -> str:
    return " ".join(map(str, prompt)) if isinstance(prompt, list) else str(prompt or "")


def split_words(text: str) -> list[str]:
    """Split a text into pieces of about one word; joined, they are the text."""
    return re.findall(r"\s*\S+|\s+$", text)


def select_objects(value: JsonValue) -> list[Mapping[str, JsonValue]]:
    """Select the objects of a JSON array. Any other value has none, as an unvalidated request may hold anything."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _tool_results(request: ModelRequest) -> list[Mapping[str, JsonValue]]:
    """The tool messages at the end of the conversation, the oldest first."""
    found: list[Mapping[str, JsonValue]] = []
    for message in reversed(request.messages):
        if message.get("role") != "tool":
            break
        found.insert(0, message)
    return found


def _answer_from_results(request: ModelRequest) -> Answer | None:
    texts = [read_text(message) for message in _tool_results(request)]
    return Answer(text=f"The tools said: {' | '.join(texts)}") if texts else None


def _last_user_text(request: ModelRequest) -> str:
    users = [message for message in request.messages if message.get("role") == "user"]
    return read_text(users[-1]) if users else ""


def _forces(choice: JsonValue) -> bool:
    return choice == "required" or (isinstance(choice, Mapping) and isinstance(choice.get("function"), Mapping))


def _wants_json(request: ModelRequest) -> bool:
    wanted = request.body.get("response_format")
    return isinstance(wanted, Mapping) and wanted.get("type") in ("json_object", "json_schema")


def _wants_reasoning(request: ModelRequest) -> bool:
    """Read the switch of each dialect for reasoning."""
    switches = request.body.get("chat_template_kwargs"), request.body.get("thinking")
    if any(isinstance(one, Mapping) and (one.get("enable_thinking") or one.get("budget_tokens")) for one in switches):
        return True
    return request.body.get("reasoning_effort") not in (None, "none")


def _available_tools(request: ModelRequest) -> list[Mapping[str, JsonValue]]:
    """The functions that may be called: the one that `tool_choice` names, else all functions of the request."""
    tools = select_objects([tool.get("function") for tool in select_objects(request.body.get("tools"))])
    choice = request.body.get("tool_choice")
    for chosen in select_objects([choice.get("function")] if isinstance(choice, Mapping) else []):
        name = chosen.get("name")
        tools = [tool for tool in tools if tool.get("name") == name] or tools
    return tools


def _build_calls(request: ModelRequest, tools: list[Mapping[str, JsonValue]], count: int) -> Answer:
    tools = tools or [WEATHER]
    calls = tuple(_build_call(request, number, tools[number % len(tools)]) for number in range(count))
    return Answer(calls=calls, finish="tool_calls")


def _build_call(request: ModelRequest, number: int, tool: Mapping[str, JsonValue]) -> ToolCall:
    arguments = make_sample(tool.get("parameters") or {"type": "object"})
    return ToolCall(
        id=f"call_fake{request.number}x{number}",
        name=str(tool.get("name")),
        arguments=json.dumps(arguments, ensure_ascii=False),
    )
