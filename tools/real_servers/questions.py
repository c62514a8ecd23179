"""The questions: calls of the official SDK, and what a right answer to each has.

Temperature 0 makes the answers of one server comparable: the facts of an answer are equal if nothing was lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import openai
from openai import AsyncOpenAI
from pydantic import BaseModel, ConfigDict

__all__ = ["QUESTIONS", "Facts", "Question", "WrongAnswer"]

Facts: TypeAlias = dict[str, Any]
Ask: TypeAlias = Callable[[AsyncOpenAI, str], Awaitable[Facts]]


class WrongAnswer(Exception):
    """The SDK got an answer, but it is not what was asked for."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question. `expected` is what the facts of a right answer have; `ignored` names those that may differ between
    two right answers."""

    name: str
    protocol: str
    ask: Ask
    expected: Mapping[str, Any]
    ignored: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        """The name as a part of a file's name."""
        return re.sub(r"[^a-z0-9_]+", "-", self.name.lower()).strip("-")

    def check(self, facts: Facts) -> None:
        """Raise WrongAnswer if the facts lack something expected. `...` means any value that is not empty."""
        for key, value in self.expected.items():
            if facts[key] != value and (value is not ... or not facts[key]):
                raise WrongAnswer(f"{key}: {json.dumps(facts[key], ensure_ascii=False)}"[:200])


class Person(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    age: int


USER: Any = [{"role": "user", "content": "What is dragoman?"}]
WEATHER: Any = [{"role": "user", "content": "What is the weather in Paris?"}]
PERSON: Any = [{"role": "user", "content": "Make an object: the name is Anna, the age is 30."}]
FIXED: Any = {"temperature": 0, "max_tokens": 60}
_PARAMETERS: Any = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
_WEATHER: Any = {"name": "get_weather", "description": "The weather in a city.", "parameters": _PARAMETERS}
TOOLS: Any = [{"type": "function", "function": _WEATHER}]
FLAT_TOOLS: Any = [{"type": "function", **_WEATHER, "strict": False}]
_CALL: Any = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
    ],
}
RESULT: Any = [*WEATHER, _CALL, {"role": "tool", "tool_call_id": "call_1", "content": "18 degrees and sunny"}]
FORMAT: Any = {
    "type": "json_schema",
    "json_schema": {"name": "person", "strict": True, "schema": Person.model_json_schema()},
}
TEXT_FORMAT: Any = {"format": {"type": "json_schema", **FORMAT["json_schema"]}}
CALLS = [["get_weather", {"city": "Paris"}]]


def read_calls(calls: Any) -> Facts:
    """Read the tool calls of a message: names with arguments, and names alone."""
    found = calls or []
    return {
        "calls": [[call.function.name, json.loads(call.function.arguments)] for call in found],
        "called": [call.function.name for call in found],
    }


async def chat(client: AsyncOpenAI, model: str, messages: Any = USER, **more: Any) -> Facts:
    reply = await client.chat.completions.create(model=model, messages=messages, **{**FIXED, **more})
    choice = reply.choices[0]
    return {
        "text": choice.message.content,
        **read_calls(choice.message.tool_calls),
        "finish": choice.finish_reason,
        "finishes": [one.finish_reason for one in reply.choices],
        "usage": reply.usage is not None and reply.usage.total_tokens > 0,
        "logprobs": [len(one.top_logprobs) for one in (choice.logprobs and choice.logprobs.content) or []],
    }


async def chat_stream(client: AsyncOpenAI, model: str, messages: Any = USER, **more: Any) -> Facts:
    async with client.chat.completions.stream(model=model, messages=messages, **{**FIXED, **more}) as stream:
        texts = [event.delta async for event in stream if event.type == "content.delta"]
        reply = await stream.get_final_completion()
    return {
        "text": reply.choices[0].message.content,
        "object": _holds_object(reply.choices[0].message.content),
        "deltas": "".join(texts) or None,
        **read_calls(reply.choices[0].message.tool_calls),
        "finish": reply.choices[0].finish_reason,
        "finishes": [one.finish_reason for one in reply.choices],
        "usage": reply.usage is not None and reply.usage.total_tokens > 0,
    }


async def exceed_context(client: AsyncOpenAI, model: str) -> Facts:
    """Ask more than the model can read. OpenAI's code for it is what agents look for to shorten the conversation."""
    try:
        facts = await chat(client, model, [{"role": "user", "content": "Hello, dragoman. " * 1500}])
    except openai.BadRequestError as error:
        return {"code": error.code}
    return {"code": None, **facts}


async def parse_person(client: AsyncOpenAI, model: str) -> Facts:
    reply = await client.chat.completions.parse(model=model, messages=PERSON, response_format=Person, **FIXED)
    return {"parsed": reply.choices[0].message.parsed is not None, "text": reply.choices[0].message.content}


async def parse_object(client: AsyncOpenAI, model: str) -> Facts:
    facts = await chat(client, model, PERSON, response_format={"type": "json_object"})
    return {**facts, "object": _holds_object(facts["text"])}


async def completion(client: AsyncOpenAI, model: str, prompt: Any = "What is dragoman", **more: Any) -> Facts:
    reply = await client.completions.create(model=model, prompt=prompt, **{**FIXED, **more})
    return {
        "texts": [choice.text for choice in reply.choices],
        "finish": [choice.finish_reason for choice in reply.choices],
        "choices": len(reply.choices),
        "usage": reply.usage is not None and reply.usage.total_tokens > 0,
    }


async def completion_stream(client: AsyncOpenAI, model: str) -> Facts:
    stream = await client.completions.create(model=model, prompt="What is dragoman", stream=True, **FIXED)
    choices = [choice async for chunk in stream for choice in chunk.choices]
    return {
        "text": "".join(choice.text for choice in choices),
        "finish": next((choice.finish_reason for choice in reversed(choices) if choice.finish_reason), None),
    }


async def embed(client: AsyncOpenAI, model: str, inputs: Any, **more: Any) -> Facts:
    reply = await client.embeddings.create(model=model, input=inputs, **more)
    vectors = [one.embedding for one in reply.data]
    are_numbers = all(isinstance(vector, list) and all(isinstance(one, float) for one in vector) for vector in vectors)
    return {
        "count": len(vectors),
        "numbers": are_numbers,
        "first": [round(vector[0], 5) for vector in vectors] if are_numbers else None,
        "lengths": sorted({len(vector) for vector in vectors}),
    }


async def respond(client: AsyncOpenAI, model: str, given: Any = "What is dragoman?", **more: Any) -> Facts:
    reply = await client.responses.create(model=model, input=given, temperature=0, max_output_tokens=60, **more)
    return read_response(reply)


async def respond_stream(client: AsyncOpenAI, model: str, given: Any = "What is dragoman?", **more: Any) -> Facts:
    asked: Any = {"model": model, "input": given, "temperature": 0, "max_output_tokens": 60, **more}
    async with client.responses.stream(**asked) as stream:
        texts = [event.delta async for event in stream if event.type == "response.output_text.delta"]
        reply = await stream.get_final_response()
    return {**read_response(reply), "deltas": "".join(texts) or None}


async def continue_response(client: AsyncOpenAI, model: str) -> Facts:
    first = await client.responses.create(model=model, input="Hello", temperature=0, max_output_tokens=60)
    return await respond(client, model, previous_response_id=first.id)


async def parse_response(client: AsyncOpenAI, model: str) -> Facts:
    reply = await client.responses.parse(
        model=model, input=PERSON[0]["content"], text_format=Person, temperature=0, max_output_tokens=60
    )
    return {"parsed": reply.output_parsed is not None, "text": reply.output_text}


def read_response(reply: Any) -> Facts:
    calls = [item for item in reply.output if item.type == "function_call"]
    return {
        "text": reply.output_text or None,
        "object": _holds_object(reply.output_text),
        "calls": [[call.name, json.loads(call.arguments)] for call in calls],
        "status": reply.status,
        "usage": reply.usage is not None and reply.usage.total_tokens > 0,
    }


def _holds_object(text: str | None) -> bool:
    try:
        return isinstance(json.loads(text or ""), dict)
    except ValueError:
        return False


def _bind(ask: Callable[..., Awaitable[Facts]], *given: Any, **more: Any) -> Ask:
    """Return the call with these arguments after the client and the model."""
    return lambda client, model: ask(client, model, *given, **more)


_STOP = {"text": ..., "finish": "stop"}
_CALLED = {"calls": CALLS, "finish": "tool_calls"}
_NAMED = {"called": ["get_weather"]}  # what a small model writes into a forced call is its own affair
_COMPLETED = {"text": ..., "status": "completed"}
_FORCED: Any = {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "get_weather"}}}
_TWO: Any = {"n": 2, "temperature": 0.01, "seed": 1}  # some servers refuse several choices at temperature 0
_USAGE: Any = {"stream_options": {"include_usage": True}}
_FINISH = ("finish", "finishes")  # OpenAI ends a forced call with stop, other servers with tool_calls
_UNASKED = ("usage",)  # a stream has usage only if the request asks for it, but some servers always send it

QUESTIONS: tuple[Question, ...] = (
    Question("chat", "chat", chat, _STOP),
    Question("usage", "chat", chat, {"usage": True}),
    Question("chat, streamed", "chat", chat_stream, {**_STOP, "deltas": ...}, _UNASKED),
    Question("chat, streamed, usage", "chat", _bind(chat_stream, **_USAGE), {**_STOP, "usage": True}),
    Question("max_tokens", "chat", _bind(chat, max_tokens=3), {"text": ..., "finish": "length"}),
    Question(
        "max_completion_tokens",
        "chat",
        _bind(chat, max_tokens=None, max_completion_tokens=3),
        {"text": ..., "finish": "length"},
    ),
    Question("stop", "chat", _bind(chat, stop=["proxy"]), {"text": "dragoman is a ", "finish": "stop"}),
    Question("n: 2", "chat", _bind(chat, **_TWO), {**_STOP, "finishes": ["stop", "stop"]}, _UNASKED),
    Question(
        "n: 2, streamed",
        "chat",
        _bind(chat_stream, **_TWO),
        {**_STOP, "finishes": ["stop", "stop"]},
        (*_UNASKED, "deltas"),
    ),
    Question("logprobs", "chat", _bind(chat, logprobs=True, top_logprobs=2), {**_STOP, "logprobs": ...}),
    Question("tools", "chat", _bind(chat, WEATHER, tools=TOOLS), _CALLED),
    Question("tools, streamed", "chat", _bind(chat_stream, WEATHER, tools=TOOLS), _CALLED, _UNASKED),
    Question("tools, required", "chat", _bind(chat, WEATHER, tools=TOOLS, tool_choice="required"), _NAMED, _FINISH),
    Question("tools, one forced", "chat", _bind(chat, WEATHER, **_FORCED), _NAMED, _FINISH),
    Question(
        "tools, forced, streamed",
        "chat",
        _bind(chat_stream, WEATHER, **_FORCED),
        _NAMED,
        (*_FINISH, *_UNASKED),
    ),
    Question("a tool's result", "chat", _bind(chat, RESULT, tools=TOOLS), _STOP),
    Question("json_schema, parsed", "chat", parse_person, {"parsed": True}),
    Question(
        "json_schema, streamed", "chat", _bind(chat_stream, PERSON, response_format=FORMAT), {"object": True}, _UNASKED
    ),
    Question("json_object", "chat", parse_object, {"object": True}),
    Question("context exceeded", "chat", exceed_context, {"code": "context_length_exceeded"}),
    Question("completions", "completions", completion, {"texts": ...}),
    Question("completions, streamed", "completions", completion_stream, {"text": ..., "finish": ...}),
    Question("completions, two prompts", "completions", _bind(completion, ["Hello", "What"]), {"choices": 2}),
    Question("embeddings, default", "embeddings", _bind(embed, "Hello"), {"count": 1, "numbers": True}),
    Question(
        "embeddings, floats",
        "embeddings",
        _bind(embed, "Hello", encoding_format="float"),
        {"count": 1, "numbers": True},
    ),
    Question("embeddings, two inputs", "embeddings", _bind(embed, ["Hello", "Bye"]), {"count": 2, "numbers": True}),
    Question("embeddings, tokens", "embeddings", _bind(embed, [[40, 41, 42]]), {"count": 1, "numbers": True}),
    Question("Responses", "responses", respond, _COMPLETED),
    Question("Responses, streamed", "responses", respond_stream, {**_COMPLETED, "deltas": ...}),
    Question("Responses, continued", "responses", continue_response, _COMPLETED),
    Question("Responses, tools", "responses", _bind(respond, WEATHER, tools=FLAT_TOOLS), {"calls": CALLS}),
    Question(
        "Responses, tools, streamed", "responses", _bind(respond_stream, WEATHER, tools=FLAT_TOOLS), {"calls": CALLS}
    ),
    Question("Responses, json_schema", "responses", parse_response, {"parsed": True}),
    Question(
        "Responses, json_schema, streamed",
        "responses",
        _bind(respond_stream, PERSON, text=TEXT_FORMAT),
        {"object": True},
    ),
)
