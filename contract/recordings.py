"""Recordings: the responses of an endpoint, byte by byte with their times, for replays without a network.

There is one file for each exchange. Its name is the hash of the request: method, path and query after the base URL, and
the body as canonical JSON. The hash leaves out headers, so that a recording serves any API key. If a request is sent
again, the next take has the next number: `HASH.json`, `HASH-2.json`, ... A label can precede the hash:
`chat-streamed.HASH.json`. Secrets are masked before a file is written.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from pathlib import Path

from .exchange import Chunk, Request, Response, Transport, UnreachableError
from .json_types import JsonObject
from .masks import Mask

__all__ = ["RecordingTransport", "ReplayTransport", "find_takes", "hash_request", "read_take"]

VERSION = 1
_DROPPED_HEADERS = ("set-cookie", "date", "connection", "transfer-encoding", "content-length")


def hash_request(method: str, path: str, body: bytes) -> str:
    """Hash a request, for the name of its file. `path` is the part of the URL after the base URL."""
    try:
        text = json.dumps(json.loads(body), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except (ValueError, RecursionError):
        text = body.decode("utf-8", "replace")
    return hashlib.sha256(f"{method} {path}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def find_takes(folder: Path, key: str) -> list[Path]:
    """Find the recordings of one request, in order, whatever their labels."""
    found: list[Path] = []
    while more := _find_file(folder, _name_take(key, len(found) + 1)):
        found.append(more)
    return found


def _find_file(folder: Path, name: str) -> Path | None:
    file = folder / name
    return file if file.exists() else next(folder.glob(f"*.{name}"), None)


def _name_take(key: str, number: int) -> str:
    return f"{key}.json" if number == 1 else f"{key}-{number}.json"


def read_take(file: Path) -> Response:
    """Read the response of a recording. Raises ValueError if the file is not a recording."""
    try:
        answer = json.loads(file.read_text("utf-8"))["answer"]
        return Response(
            answer["status"],
            tuple((name, value) for name, value in answer["headers"]),
            tuple(Chunk(chunk["at"], _decode_chunk(chunk)) for chunk in answer["chunks"]),
            answer.get("broken"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} is not a recording: {error!r}") from None


class RecordingTransport:
    """A transport that records every exchange of another transport. `label` begins the names of the next files."""

    def __init__(self, inner: Transport, folder: Path, mask: Mask) -> None:
        self._inner, self._folder, self._mask = inner, folder, mask
        self._seen: Counter[str] = Counter()
        self.label = ""

    async def send(self, request: Request) -> Response:
        response = await self._inner.send(request)
        key = hash_request(request.method, request.path, request.body)
        self._seen[key] += 1
        name = f"{self.label}." * bool(self.label) + _name_take(key, self._seen[key])
        self._folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self._serialize(request, response), indent=1, ensure_ascii=False)
        (self._folder / name).write_text(self._mask(text), "utf-8")
        return response

    async def close(self) -> None:
        await self._inner.close()

    def _serialize(self, request: Request, response: Response) -> JsonObject:
        return {
            "recording": VERSION,
            "request": {
                "method": request.method,
                "path": request.path,
                "headers": self._mask.mask_headers(request.headers),
                "body": request.body.decode("utf-8", "replace"),
            },
            "answer": {
                "status": response.status,
                "headers": [[name, value] for name, value in response.headers if name not in _DROPPED_HEADERS],
                "chunks": [_encode_chunk(chunk) for chunk in response.chunks],
                "broken": response.broken,
            },
        }


class ReplayTransport:
    """A transport that answers from recordings, without delays."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: Counter[str] = Counter()

    async def send(self, request: Request) -> Response:
        key = hash_request(request.method, request.path, request.body)
        found = find_takes(self._folder, key)
        if not found:
            raise UnreachableError(f"{self._folder} has no recording of {request.method} {request.path} ({key})")
        file = found[min(self._seen[key], len(found) - 1)]
        self._seen[key] += 1
        try:
            return read_take(file)
        except ValueError as error:
            raise UnreachableError(str(error)) from None

    async def close(self) -> None:
        pass


def _encode_chunk(chunk: Chunk) -> JsonObject:
    """Write UTF-8 as text, other bytes as base64."""
    at = round(chunk.at, 4)
    try:
        return {"at": at, "text": chunk.data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"at": at, "base64": base64.b64encode(chunk.data).decode("ascii")}


def _decode_chunk(chunk: JsonObject) -> bytes:
    return base64.b64decode(chunk["base64"]) if "base64" in chunk else str(chunk["text"]).encode()
