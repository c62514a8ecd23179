"""Recordings: what an endpoint answered, byte by byte with its timing, to be played again without a network.

One file for each exchange, named by the hash of the request: method, path and query after the base address, and the
body as canonical JSON. Headers are left out of the hash, so that a recording holds for any key. The same request again
is the next take: `HASH.json`, `HASH-2.json`, ... Secrets are masked before anything is written.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from .masks import Mask
from .wire import Answer, Asked, Chunk, Transport, Unreachable

__all__ = ["Recorder", "Replayer", "key_of", "read_take", "takes"]

VERSION = 1
_DROPPED = ("set-cookie", "date", "connection", "transfer-encoding", "content-length")


def key_of(method: str, path: str, body: bytes) -> str:
    """The hash of a request, as it is in the names of files. `path` is what follows the base address."""
    try:
        text = json.dumps(json.loads(body), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except ValueError:
        text = body.decode("utf-8", "replace")
    return hashlib.sha256(f"{method} {path}\n{text}".encode()).hexdigest()[:32]


def takes(folder: Path, key: str) -> list[Path]:
    """The recordings of one request, in their order."""
    first = folder / f"{key}.json"
    found = [first] if first.exists() else []
    while (more := folder / f"{key}-{len(found) + 1}.json").exists() and found:
        found.append(more)
    return found


def read_take(file: Path) -> Answer:
    """Raises ValueError where the file is no recording."""
    try:
        answer = json.loads(file.read_text("utf-8"))["answer"]
        return Answer(
            answer["status"],
            tuple((name, value) for name, value in answer["headers"]),
            tuple(Chunk(chunk["at"], _bytes(chunk)) for chunk in answer["chunks"]),
            answer.get("broken"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} is no recording: {error!r}") from None


class Recorder:
    """A transport that keeps what passes through it."""

    def __init__(self, inner: Transport, folder: Path, mask: Mask) -> None:
        self._inner, self._folder, self._mask = inner, folder, mask
        self._seen: Counter[str] = Counter()

    async def send(self, asked: Asked) -> Answer:
        answer = await self._inner.send(asked)
        key = key_of(asked.method, asked.path, asked.body)
        self._seen[key] += 1
        take = "" if self._seen[key] == 1 else f"-{self._seen[key]}"
        self._folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self._written(asked, answer), indent=1, ensure_ascii=False)
        (self._folder / f"{key}{take}.json").write_text(self._mask(text), "utf-8")
        return answer

    async def close(self) -> None:
        await self._inner.close()

    def _written(self, asked: Asked, answer: Answer) -> dict[str, Any]:
        return {
            "recording": VERSION,
            "request": {
                "method": asked.method,
                "path": asked.path,
                "headers": self._mask.headers(asked.headers),
                "body": asked.body.decode("utf-8", "replace"),
            },
            "answer": {
                "status": answer.status,
                "headers": [[name, value] for name, value in answer.headers if name not in _DROPPED],
                "chunks": [_chunk(chunk) for chunk in answer.chunks],
                "broken": answer.broken,
            },
        }


class Replayer:
    """A transport that answers from recordings, without waiting."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: Counter[str] = Counter()

    async def send(self, asked: Asked) -> Answer:
        key = key_of(asked.method, asked.path, asked.body)
        found = takes(self._folder, key)
        if not found:
            raise Unreachable(f"{self._folder} has no recording of {asked.method} {asked.path} ({key})")
        file = found[min(self._seen[key], len(found) - 1)]
        self._seen[key] += 1
        try:
            return read_take(file)
        except ValueError as error:
            raise Unreachable(str(error)) from None

    async def close(self) -> None:
        pass


def _chunk(chunk: Chunk) -> dict[str, Any]:
    """Bytes that are text stay readable, others go as base64."""
    at = round(chunk.at, 4)
    try:
        return {"at": at, "text": chunk.data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"at": at, "base64": base64.b64encode(chunk.data).decode("ascii")}


def _bytes(chunk: dict[str, Any]) -> bytes:
    return base64.b64decode(chunk["base64"]) if "base64" in chunk else str(chunk["text"]).encode()
