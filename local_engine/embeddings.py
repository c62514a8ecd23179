"""Texts to vectors, with an encoder folder: batches of similar length, pooled and normalised as the folder says."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dragoman.adapters.faults import Fault

from .folder import ModelFolder, open_folder
from .places import FolderError
from .ports import Encoder
from .providers import Device, Provider, choose

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

__all__ = ["Embedder", "batches"]

BATCH_TOKENS = 4096
"""Tokens, padding included, of one run."""
Vectors = NDArray[np.float32]


def batches(lengths: Sequence[int], most: int = BATCH_TOKENS) -> Iterator[list[int]]:
    """Indices of texts by length, in groups of which the padded size is at most `most` tokens, or one text."""
    group: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if group and (len(group) + 1) * lengths[index] > most:
            yield group
            group = []
        group.append(index)
    if group:
        yield group


class Embedder:
    """A loaded encoder. Its methods may be called from any thread; they block."""

    def __init__(
        self, folder: ModelFolder, tokenizer: Tokenizer, session: InferenceSession, ports: Encoder, provider: Provider
    ) -> None:
        self.folder = folder
        self.tokenizer = tokenizer
        self.provider = provider
        self.width = ports.width
        self.failed: str | None = None
        self._session = session
        self._ports = ports
        self._since: dict[int, float] = {}

    @property
    def step_seconds(self) -> float:
        """For how long the oldest run has been running."""
        return max((time.monotonic() - since for since in [*self._since.values()]), default=0.0)

    @classmethod
    def load(cls, path: Path, device: Device = "auto", *, index: int = 0, threads: int = 0) -> Embedder:
        """Open a folder and its session. Raises FolderError and ProviderError."""
        from .detok import load_tokenizer
        from .session import open_session

        provider = choose(device, index)
        folder = open_folder(path, provider.device)
        ports = folder.ports
        if not isinstance(ports, Encoder):
            raise FolderError(f"{folder.file} is a decoder; embeddings need an encoder, with last_hidden_state")
        session, provider = open_session(folder.file, provider, threads=threads, fallback=device == "auto")
        return cls(folder, load_tokenizer(folder.tokenizer), session, ports, provider)

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text, with the special ones that the tokenizer puts around it."""
        found: list[int] = self.tokenizer.encode(text).ids
        return found

    def embed(self, texts: Sequence[Sequence[int]]) -> Vectors:
        """One vector per text of tokens: (texts, width). Raises Fault for a text that is empty or too long."""
        for place, text in enumerate(texts):
            if not 0 < len(text) <= self.folder.context:
                code = "context_length_exceeded" if text else None
                message = f"text {place} has {len(text)} tokens; 1 to {self.folder.context} are served"
                raise Fault("invalid_request", message, ("input", place), code=code)
        vectors = np.zeros((len(texts), self.width), np.float32)
        for group in batches([len(text) for text in texts]):
            vectors[group] = self._run([texts[index] for index in group])
        if self.folder.normalize:
            vectors /= np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32(1e-12))
        return vectors

    def _run(self, texts: Sequence[Sequence[int]]) -> Vectors:
        longest = max(len(text) for text in texts)
        ids = np.zeros((len(texts), longest), np.int64)
        mask = np.zeros_like(ids)
        for row, text in enumerate(texts):
            ids[row, : len(text)] = text
            mask[row, : len(text)] = 1
        given = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
            "position_ids": np.broadcast_to(np.arange(longest), ids.shape).copy(),
        }
        feeds: dict[str, Any] = {name: given[name] for name in self._ports.inputs}
        self._since[threading.get_ident()] = time.monotonic()
        try:
            found = np.asarray(self._session.run([self._ports.output], feeds)[0], np.float32)
        except Exception as error:
            if self.provider.device == "cuda":
                self.failed = f"CUDA failed: {error}"  # its errors stay with the process
            raise Fault("internal", f"the encoder failed: {error}") from error
        finally:
            del self._since[threading.get_ident()]
        return found if self._ports.pooled else self._pooled(found, mask)

    def _pooled(self, hidden: Vectors, mask: NDArray[np.int64]) -> Vectors:
        if self.folder.pooling == "cls":
            first: Vectors = hidden[:, 0]
            return first
        if self.folder.pooling == "last":
            last: Vectors = hidden[np.arange(len(hidden)), mask.sum(-1) - 1]
            return last
        kept = mask[..., None].astype(np.float32)
        mean: Vectors = (hidden * kept).sum(1) / kept.sum(1)
        return mean
