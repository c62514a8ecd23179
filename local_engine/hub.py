"""A model folder behind the hub's forms: chat, completions, embeddings, as requests and events without HTTP.

    request -> planning -> Generation -> engine -> Delta, Finished -> chatting | completing -> events
               (template, parameters, grammar)                       (reasoning, tool calls)

What blocks (rendering, tokenising, compiling a grammar, embedding) runs in threads, so the event loop goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path as Place

from .chatting import ChatWriter
from .completing import Completions, CompletionWriter, plan_completions
from .detok import TokenBytes, decoder
from .engine import Engine, Options
from .folder import ModelFolder, open_folder
from .guidance import Guides
from .places import FolderError, read_text
from .planning import Family, Planner
from .ports import Encoder
from .reasoning import find_marks
from .requests import Delta, Finished, Generation
from .stream import Streams
from .template import ChatTemplate
from .toolforms import find_form
from .vectors import embed
from .whole import whole

if TYPE_CHECKING:
    from .embeddings import Embedder

__all__ = ["HubEngine", "whole"]


class HubEngine:
    """A decoder with its streams, or an encoder. The model's name is dragoman.json's `name`, else the folder's."""

    whole = staticmethod(whole)

    def __init__(
        self, engine: Engine | None = None, streams: Streams | None = None, *, embedder: Embedder | None = None
    ) -> None:
        """Raises FolderError for a chat template, or settings of dragoman.json, that cannot be used."""
        self._engine = engine
        self._streams = streams
        self._embedder = embedder
        self._planner: Planner | None = None
        owner = engine or embedder
        if owner is None:
            raise ValueError("a hub needs an engine or an embedder")
        self.folder: ModelFolder = owner.folder
        self.name = str(self.folder.settings.get("name") or self.folder.path.resolve().name)
        if engine is not None:
            self._streams = streams or Streams(engine, asyncio.get_running_loop())
            self._bytes = TokenBytes(engine.tokenizer)
            self._planner = _planner(engine)

    @classmethod
    async def load(cls, path: Path, options: Options | None = None) -> HubEngine:
        """Open a folder of either kind. Raises FolderError and ProviderError."""
        from .embeddings import Embedder

        options = options or Options()
        folder = await asyncio.to_thread(open_folder, path)
        if isinstance(folder.ports, Encoder):
            load = partial(Embedder.load, path, options.device, index=options.index, threads=options.threads)
            return cls(embedder=await asyncio.to_thread(load))
        return cls(await asyncio.to_thread(Engine.load, path, options))

    def close(self) -> None:
        """End what runs. Blocks for one step of the engine."""
        if self._engine is not None:
            self._engine.close()

    def statistics(self) -> dict[str, Any]:
        """Where the model runs, and, of a decoder, what is running and what was done so far."""
        if self._engine is not None:
            return self._engine.statistics()
        embedder = self._embedder
        assert embedder is not None
        return {
            "device": embedder.provider.device,
            "note": embedder.provider.note,
            "step_seconds": round(embedder.step_seconds, 3),
            "failed": embedder.failed,
        }

    @property
    def verbs(self) -> tuple[str, ...]:
        """What this folder can be asked for."""
        if self._embedder is not None:
            return ("embeddings",)
        return ("chat", "completions") if self._planner else ("completions",)

    async def chat(self, request: JsonObject) -> AsyncGenerator[JsonObject]:
        """A chat request's events. Usage comes last, always where the request does not stream. Raises Fault."""
        if self._planner is None or self._streams is None:
            raise self._cannot("chat", "it has no chat template" if self._engine else "it is an encoder")
        plan = await asyncio.to_thread(self._planner.plan, request)
        writer = ChatWriter(plan, self.name, self._bytes)
        begun = False
        async with aclosing(self._events(plan.generation, ("messages",), request)) as events:
            async for event in events:
                for chunk in [*([] if begun else writer.begin()), *writer.take(event)]:
                    yield chunk
                begun = True
        for chunk in writer.end():
            yield chunk

    async def completions(self, request: JsonObject) -> AsyncGenerator[JsonObject]:
        """A completions request's events. Raises Fault."""
        engine = self._engine
        if engine is None:
            raise self._cannot("completions", "it is an encoder")
        decode, bos = decoder(engine.tokenizer), self.folder.bos
        plan = await asyncio.to_thread(plan_completions, request, partial(_encode, engine, True), decode, bos)
        writer = CompletionWriter(plan, self.name, self._bytes)
        begun = False
        async with aclosing(self._all(plan, request)) as events:
            async for prompt, event in events:
                for chunk in [*([] if begun else writer.begin()), *writer.take(prompt, event)]:
                    yield chunk
                begun = True
        for chunk in [*([] if begun else writer.begin()), *writer.end()]:
            yield chunk

    async def embeddings(self, request: JsonObject) -> JsonObject:
        """An embeddings request's reply. Raises Fault."""
        if self._embedder is None:
            raise self._cannot("embeddings", "it is a decoder; embeddings need an encoder's folder")
        return await asyncio.to_thread(embed, self._embedder, request, self.name)

    async def _events(
        self, generation: Generation, place: Place, request: JsonObject
    ) -> AsyncGenerator[Delta | Finished, None]:
        """The engine's events, its faults with the request's own paths."""
        assert self._streams is not None
        try:
            async with aclosing(self._streams.run(generation)) as events:
                async for event in events:
                    yield event
        except Fault as fault:
            if fault.path == ("prompt",) or fault.code == "context_length_exceeded":
                fault.path = place
            elif fault.path == ("max_tokens",) and "max_completion_tokens" in request:
                fault.path = ("max_completion_tokens",)
            elif fault.path == ("logit_bias",):
                fault.value = request.get("logit_bias")
            raise

    async def _all(self, plan: Completions, request: JsonObject) -> AsyncGenerator[tuple[int, Delta | Finished], None]:
        """The events of all prompts, as they come; the first fault ends them all."""
        if plan.nothing:
            return
        queue: asyncio.Queue[tuple[int, Delta | Finished | Exception | None]] = asyncio.Queue()

        async def drain(prompt: int, generation: Generation) -> None:
            try:
                async with aclosing(self._events(generation, plan.paths[prompt], request)) as events:
                    async for event in events:
                        queue.put_nowait((prompt, event))
            except Exception as error:  # noqa: BLE001  raised again below
                queue.put_nowait((prompt, error))
            else:
                queue.put_nowait((prompt, None))

        tasks = [asyncio.create_task(drain(place, one)) for place, one in enumerate(plan.generations)]
        left = len(tasks)
        try:
            while left:
                prompt, event = await queue.get()
                if isinstance(event, Exception):
                    raise event
                if event is None:
                    left -= 1
                else:
                    yield prompt, event
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _cannot(self, verb: str, why: str) -> Fault:
        return Fault("invalid_request", f"{self.name} does not serve {verb}: {why}", ("model",), code="wrong_model")


def _planner(engine: Engine) -> Planner | None:
    folder = engine.folder
    source = _template(folder)
    if source is None:
        return None
    template = ChatTemplate(source, folder.tokenizer_config)
    try:
        family = Family(template, find_form(source, folder.settings), find_marks(source, folder.settings))
    except ValueError as error:
        raise FolderError(f"{folder.path / 'dragoman.json'}: {error}") from None
    added = engine.tokenizer.get_added_tokens_decoder().values()
    special = [token.content for token in added if token.special]
    guides = Guides(engine.tokenizer, engine.limits.vocab, folder.eos)
    return Planner(family, guides, partial(_encode, engine, False), special)


def _template(folder: ModelFolder) -> str | None:
    """The folder's template; `template` of dragoman.json names another file of the folder."""
    given: Any = folder.settings.get("template")
    if given is None:
        return folder.template
    source = read_text(folder.path, given) if isinstance(given, str) else None
    if source is None:
        raise FolderError(f"{folder.path / 'dragoman.json'}: template is {given!r}, which is no file of the folder")
    return source


def _encode(engine: Engine, special: bool, text: str) -> list[int]:
    found: list[int] = engine.tokenizer.encode(text, add_special_tokens=special).ids
    return found
