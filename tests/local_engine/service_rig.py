"""Services over tiny models with the chat templates of model families, and streams with scripted text."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import TypeAlias, cast

from tiny_models import END, SEED, SPECS

from dragoman.adapters.call import JsonObject
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonValue
from dragoman.local_engine.engine import Engine, EngineOptions
from dragoman.local_engine.event_streams import EventStreams
from dragoman.local_engine.export.decoder_graph import ExportOptions
from dragoman.local_engine.export.exporter import export_random_model
from dragoman.local_engine.generation import Delta, Finished, GenerationRequest, Usage
from dragoman.local_engine.service import EngineService, collect_reply

Engines: TypeAlias = Callable[[str], Engine]
Services: TypeAlias = Callable[[str], EngineService]
TEMPLATES = Path(__file__).parent / "templates"
CPU = EngineOptions(device="cpu", threads=1)
HI = [{"role": "user", "content": "hi"}]
LONG_CONTEXT = 4096
SCRIPT_STEP = 3
"""Characters per scripted delta, which counts as one token."""


def export_family(target: Path, family: str) -> Path:
    """Export a tiny model with a long context and the chat template of a family; `plain` has no template."""
    spec = dataclasses.replace(SPECS["llama"], max_positions=LONG_CONTEXT, bos=END + 1)
    export_random_model(spec, target, ExportOptions("fp32", "gqa", LONG_CONTEXT), SEED)
    if family != "plain":
        (target / "chat_template.jinja").write_text((TEMPLATES / f"{family}.jinja").read_text())
    (target / "dragoman.json").write_text(json.dumps({"name": family}))
    return target


class ScriptedStreams:
    """Replaces EventStreams: each choice is one of the texts, in deltas of a few characters."""

    def __init__(self, *texts: str, stop: str | None = None) -> None:
        self._texts = texts
        self._stop = stop

    async def run(self, request: GenerationRequest) -> AsyncGenerator[Delta | Finished, None]:
        for index, text in enumerate(self._texts):
            for start in range(0, len(text), SCRIPT_STEP):
                yield Delta(index, text[start : start + SCRIPT_STEP], (1,))
            usage = Usage(len(request.prompt), -(-len(text) // SCRIPT_STEP), 2)
            yield Finished(index, "stop", usage, self._stop)


def script(service: EngineService, *texts: str, stop: str | None = None) -> EngineService:
    """A service with the same engine whose choices are these texts."""
    return EngineService(service._engine, cast(EventStreams, ScriptedStreams(*texts, stop=stop)))


async def stream_chat(service: EngineService, **request: JsonValue) -> list[JsonObject]:
    """Send a chat request; return its chunks, each checked with the hub's schema."""
    chunks = [chunk async for chunk in service.chat({"model": "m", "messages": HI, **request})]
    for chunk in chunks:
        load_validator("hub/chat.event").check(chunk)
    return chunks


async def send_chat(service: EngineService, **request: JsonValue) -> JsonObject:
    """Send a chat request; return its reply, checked with the hub's schema."""
    reply = collect_reply(await stream_chat(service, **request))
    load_validator("hub/chat.reply").check(reply)
    return reply


def function_tool(name: str, parameters: JsonObject | None = None) -> JsonObject:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}
