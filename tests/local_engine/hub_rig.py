"""Folders with the templates of model families, a hub over them, and streams that say what a test wants."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

from engine_models import END, SPECS

from dragoman.adapters.validation import load_validator
from dragoman.local_engine.engine import Options
from dragoman.local_engine.export.decoder import Options as Layout
from dragoman.local_engine.export.write import export_random
from dragoman.local_engine.hub import HubEngine, whole
from dragoman.local_engine.requests import Delta, Finished, Generation, Usage
from dragoman.local_engine.stream import Streams

TEMPLATES = Path(__file__).parent / "templates"
CPU = Options(device="cpu", threads=1)
HI = [{"role": "user", "content": "hi"}]
LONG = 4096
Json = dict[str, Any]


def make_folder(target: Path, family: str) -> Path:
    """A tiny model of random weights with a long context and the template of a family; `family` names the folder."""
    spec = dataclasses.replace(SPECS["llama"], max_positions=LONG, bos=END + 1)
    export_random(spec, target, Layout("fp32", "gqa", LONG), 12)
    if family != "plain":
        (target / "chat_template.jinja").write_text((TEMPLATES / f"{family}.jinja").read_text())
    (target / "dragoman.json").write_text(json.dumps({"name": family}))
    return target


class Scripted:
    """Streams of one text per choice, three characters at a time."""

    def __init__(self, *texts: str, stop: str | None = None) -> None:
        self._texts = texts
        self._stop = stop

    async def run(self, request: Generation) -> AsyncGenerator[Delta | Finished, None]:
        for index, text in enumerate(self._texts):
            for at in range(0, len(text), 3):
                yield Delta(index, text[at : at + 3], (1,))
            yield Finished(index, "stop", Usage(len(request.prompt), -(-len(text) // 3), 2), self._stop)


def says(hub: HubEngine, *texts: str, stop: str | None = None) -> HubEngine:
    return HubEngine(hub._engine, cast(Streams, Scripted(*texts, stop=stop)))


async def chunks(hub: HubEngine, **request: Any) -> list[Json]:
    """The chunks of a chat request, each of them judged by the hub's schema."""
    found = [chunk async for chunk in hub.chat({"model": "m", "messages": HI, **request})]
    for chunk in found:
        load_validator("hub/chat.event").check(chunk)
    return found


async def reply(hub: HubEngine, **request: Any) -> Json:
    found = whole(await chunks(hub, **request))
    load_validator("hub/chat.reply").check(found)
    return found


def tool(name: str, parameters: Json | None = None, **more: Any) -> Json:
    return {"type": "function", "function": {"name": name, "parameters": parameters, **more}}
