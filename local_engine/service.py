"""The service of a model folder: chat, completions and embeddings in hub form, as requests and chunks without HTTP.

    request -> chat_planner | completions -> GenerationRequest -> Engine -> Delta, Finished -> writer -> chunks
               (template, parameters, grammar)                                         (reasoning, tool calls)

Blocking work (rendering, tokenizing, compiling a grammar, embedding) runs in threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path as FieldPath
from dragoman.local_engine.guidance.grammar_masks import GrammarCompiler
from dragoman.local_engine.hub_api.chat_planner import ChatFormat, ChatPlanner
from dragoman.local_engine.hub_api.chat_writer import ChatChunkWriter
from dragoman.local_engine.hub_api.completions import CompletionChunkWriter, CompletionsPlan, plan_completions
from dragoman.local_engine.hub_api.embeddings import answer_embeddings
from dragoman.local_engine.hub_api.reply_accumulator import collect_reply
from dragoman.local_engine.hub_api.request_parameters import fill_in_defaults
from dragoman.local_engine.model_folder.files import FolderError, read_text
from dragoman.local_engine.model_folder.folder import ModelFolder, open_folder
from dragoman.local_engine.model_folder.signature import EncoderSignature
from dragoman.local_engine.prompts.chat_template import ChatTemplate
from dragoman.local_engine.text.detokenizer import TokenBytes, make_decode
from dragoman.local_engine.text.reasoning_parser import find_reasoning_markers
from dragoman.local_engine.text.tool_call_formats import find_tool_call_format

from .engine import Engine, EngineOptions
from .event_streams import EventStreams
from .generation import Delta, Finished, GenerationRequest

if TYPE_CHECKING:
    from .embedder import Embedder

__all__ = ["EngineService", "collect_reply"]


class EngineService:
    """A loaded model: an engine, or an embedder. Its name is `name` in dragoman.json, else the folder's name."""

    collect_reply = staticmethod(collect_reply)

    def __init__(
        self, engine: Engine | None = None, streams: EventStreams | None = None, *, embedder: Embedder | None = None
    ) -> None:
        """Raises FolderError if the chat template or a setting in dragoman.json is invalid."""
        self._engine = engine
        self._streams = streams
        self._embedder = embedder
        self._planner: ChatPlanner | None = None
        owner = engine or embedder
        if owner is None:
            raise ValueError("a service needs an engine or an embedder")
        self.folder: ModelFolder = owner.folder
        self.name = str(self.folder.settings.get("name") or self.folder.path.resolve().name)
        if engine is not None:
            self._streams = streams or EventStreams(engine, asyncio.get_running_loop())
            self._bytes = TokenBytes(engine.tokenizer)
            self._planner = _create_planner(engine)

    @classmethod
    async def load(cls, path: Path, options: EngineOptions | None = None) -> EngineService:
        """Load the folder of a decoder or an encoder. Raises FolderError and ProviderError."""
        from .embedder import Embedder

        options = options or EngineOptions()
        folder = await asyncio.to_thread(open_folder, path)
        if isinstance(folder.signature, EncoderSignature):
            load = partial(Embedder.load, path, options.device, index=options.index, threads=options.threads)
            return cls(embedder=await asyncio.to_thread(load))
        return cls(await asyncio.to_thread(Engine.load, path, options))

    def close(self) -> None:
        """Fail all requests and end the engine. Blocks for one engine step."""
        if self._engine is not None:
            self._engine.close()

    def statistics(self) -> JsonObject:
        """Numbers for a status page: the device, and for a decoder running sequences and totals."""
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
    def operations(self) -> tuple[str, ...]:
        """The operations that this model supports."""
        if self._embedder is not None:
            return ("embeddings",)
        return ("chat", "completions") if self._planner else ("completions",)

    async def chat(self, request: JsonObject) -> AsyncGenerator[JsonObject]:
        """Answer a chat request; yield chunks. Without `stream`, or if requested, the last has usage. Raises Fault."""
        if self._planner is None or self._streams is None:
            raise self._build_unsupported_fault(
                "chat", "it has no chat template" if self._engine else "it is an encoder"
            )
        request = fill_in_defaults(request, self.folder.sampling)
        plan = await asyncio.to_thread(self._planner.plan, request)
        writer = ChatChunkWriter(plan, self.name, self._bytes)
        started = False
        async with aclosing(self._run(plan.generation, ("messages",), request)) as events:
            async for event in events:
                for chunk in [*([] if started else writer.begin()), *writer.write(event)]:
                    yield chunk
                started = True
        for chunk in writer.end():
            yield chunk

    async def completions(self, request: JsonObject) -> AsyncGenerator[JsonObject]:
        """Answer a completions request; yield chunks. Raises Fault."""
        engine = self._engine
        if engine is None:
            raise self._build_unsupported_fault("completions", "it is an encoder")
        request = fill_in_defaults(request, self.folder.sampling)
        decode, bos = make_decode(engine.tokenizer), self.folder.bos
        plan = await asyncio.to_thread(plan_completions, request, partial(_encode, engine, True), decode, bos)
        writer = CompletionChunkWriter(plan, self.name, self._bytes)
        started = False
        async with aclosing(self._run_all(plan, request)) as events:
            async for prompt, event in events:
                for chunk in [*([] if started else writer.begin()), *writer.write(prompt, event)]:
                    yield chunk
                started = True
        for chunk in [*([] if started else writer.begin()), *writer.end()]:
            yield chunk

    async def embeddings(self, request: JsonObject) -> JsonObject:
        """Answer an embeddings request. Raises Fault."""
        if self._embedder is None:
            raise self._build_unsupported_fault("embeddings", "it is a decoder; embeddings need an encoder")
        return await asyncio.to_thread(answer_embeddings, self._embedder, request, self.name)

    async def _run(
        self, generation: GenerationRequest, path: FieldPath, request: JsonObject
    ) -> AsyncGenerator[Delta | Finished, None]:
        """Run a generation; yield its events. Faults get the paths of the hub request."""
        assert self._streams is not None
        try:
            async with aclosing(self._streams.run(generation)) as events:
                async for event in events:
                    yield event
        except Fault as fault:
            if fault.path == ("prompt",) or fault.code == "context_length_exceeded":
                fault.path = path
            elif fault.path == ("max_tokens",) and "max_completion_tokens" in request:
                fault.path = ("max_completion_tokens",)
            elif fault.path == ("logit_bias",):
                fault.value = request.get("logit_bias")
            raise

    async def _run_all(
        self, plan: CompletionsPlan, request: JsonObject
    ) -> AsyncGenerator[tuple[int, Delta | Finished], None]:
        """Run all prompts; yield their events as they arrive. The first fault cancels the others."""
        if plan.skip_generation:
            return
        queue: asyncio.Queue[tuple[int, Delta | Finished | Exception | None]] = asyncio.Queue()

        async def drain(prompt: int, generation: GenerationRequest) -> None:
            try:
                async with aclosing(self._run(generation, plan.paths[prompt], request)) as events:
                    async for event in events:
                        queue.put_nowait((prompt, event))
            except Exception as error:  # noqa: BLE001  raised again below
                queue.put_nowait((prompt, error))
            else:
                queue.put_nowait((prompt, None))

        tasks = [asyncio.create_task(drain(index, one)) for index, one in enumerate(plan.generations)]
        unfinished = len(tasks)
        try:
            while unfinished:
                prompt, event = await queue.get()
                if isinstance(event, Exception):
                    raise event
                if event is None:
                    unfinished -= 1
                else:
                    yield prompt, event
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _build_unsupported_fault(self, operation: str, reason: str) -> Fault:
        return Fault(
            "invalid_request", f"{self.name} does not support {operation}: {reason}", ("model",), code="wrong_model"
        )


def _create_planner(engine: Engine) -> ChatPlanner | None:
    folder = engine.folder
    source = _read_template(folder)
    if source is None:
        return None
    template = ChatTemplate(source, folder.tokenizer_config)
    try:
        chat_format = ChatFormat(
            template, find_tool_call_format(source, folder.settings), find_reasoning_markers(source, folder.settings)
        )
    except ValueError as error:
        raise FolderError(f"{folder.path / 'dragoman.json'}: {error}") from None
    added = engine.tokenizer.get_added_tokens_decoder().values()
    special = [token.content for token in added if token.special]
    compiler = GrammarCompiler(engine.tokenizer, engine.limits.vocab, folder.eos)
    return ChatPlanner(chat_format, compiler, partial(_encode, engine, False), special)


def _read_template(folder: ModelFolder) -> str | None:
    """Read the folder's template, or the file that `template` in dragoman.json names."""
    given = folder.settings.get("template")
    if given is None:
        return folder.template
    source = read_text(folder.path, given) if isinstance(given, str) else None
    if source is None:
        raise FolderError(f"{folder.path / 'dragoman.json'}: template is {given!r}, which is not a file of the folder")
    return source


def _encode(engine: Engine, add_special: bool, text: str) -> list[int]:
    found: list[int] = engine.tokenizer.encode(text, add_special_tokens=add_special).ids
    return found
